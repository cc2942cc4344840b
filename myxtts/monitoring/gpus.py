"""What NVIDIA's driver reports: load, memory, power, heat, clocks and processes of its GPUs."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

NOT_INSTALLED = "nvidia-ml-py is not installed: pip install 'myxtts[gpu]'"
NO_DRIVER = "no NVIDIA driver answers"
NO_GPU = "the NVIDIA driver has no GPU"
CLOSED = "the connection to the driver is closed"

# The bits of NVML's reasons for a clock below the highest one; bit 1, idleness, is not throttling.
THROTTLING = {
    0x2: "clocks set by an application",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "held back by a slower GPU",
    0x20: "thermal, by software",
    0x40: "thermal, by hardware",
    0x80: "power brake",
    0x100: "clocks of the display",
    0x200: "limit of the board",
    0x400: "limit for reliability",
}


@dataclass(frozen=True)
class GpuSample:
    """One GPU at one moment; None is not reported, and `problem` says why nothing is."""

    index: int
    name: str
    utilisation: float | None = None  # percent of the time in which some kernel ran
    memory_used_mb: float | None = None
    memory_total_mb: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttling: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def memory_percent(self) -> float | None:
        if self.memory_used_mb is None or not self.memory_total_mb:
            return None
        return 100 * self.memory_used_mb / self.memory_total_mb


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    gpu: int
    pid: int
    name: str
    memory_mb: float | None


class GpuReader:
    """Queries the driver; where there is none, `reason` says why and all answers are empty.

    GPUs are numbered as the driver does, which CUDA_VISIBLE_DEVICES does not change.
    """

    def __init__(self, nvml: ModuleType | None, reason: str = ""):
        self._nvml: Any = nvml
        self.reason = reason

    @classmethod
    def open(cls, nvml: Any = None) -> "GpuReader":
        """Connect to the driver through `pynvml`, or a module that stands in for it."""
        if nvml is None:
            try:
                import pynvml
            except ImportError:
                return cls(None, NOT_INSTALLED)
            nvml = pynvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return cls(None, f"{NO_DRIVER} ({error})")
        reader = cls(nvml)
        if not reader.count:
            reader.close()
            reader.reason = NO_GPU
        return reader

    @property
    def count(self) -> int:
        """How many GPUs the driver has."""
        return (self._ask(self._nvml.nvmlDeviceGetCount) or 0) if self._nvml else 0

    @property
    def driver(self) -> str | None:
        """The version of the driver."""
        return self._ask(self._nvml.nvmlSystemGetDriverVersion) if self._nvml else None

    def read(self) -> tuple[GpuSample, ...]:
        """Return the current sample of each GPU."""
        return tuple(self._sample(index) for index in range(self.count))

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that compute on any GPU, those with most memory first."""
        found = [process for index in range(self.count) for process in self._processes(index)]
        return tuple(sorted(found, key=lambda process: -(process.memory_mb or 0.0)))

    def close(self) -> None:
        if self._nvml:
            nvml, self._nvml, self.reason = self._nvml, None, CLOSED
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:  # the driver was unloaded first
                pass

    def _sample(self, index: int) -> GpuSample:
        nvml = self._nvml
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            return GpuSample(index, f"GPU {index}", problem=str(error))
        load = self._ask(nvml.nvmlDeviceGetUtilizationRates, gpu)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, gpu)
        return GpuSample(
            index=index,
            name=self._ask(nvml.nvmlDeviceGetName, gpu) or f"GPU {index}",
            utilisation=None if load is None else load.gpu,
            memory_used_mb=None if memory is None else memory.used / 1e6,
            memory_total_mb=None if memory is None else memory.total / 1e6,
            power_w=_scaled(self._ask(nvml.nvmlDeviceGetPowerUsage, gpu), 1e-3),
            power_limit_w=_scaled(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu), 1e-3),
            temperature_c=self._ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            sm_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            throttling=self._throttling(gpu),
        )

    def _throttling(self, gpu: Any) -> tuple[str, ...] | None:
        # Drivers before 535 know the call by its older name only.
        for name in ("Event", "Throttle"):
            ask = getattr(self._nvml, f"nvmlDeviceGetCurrentClocks{name}Reasons", None)
            bits = ask and self._ask(ask, gpu)
            if bits is not None:
                return throttle_words(bits)
        return None

    def _processes(self, index: int) -> list[GpuProcess]:
        gpu = self._ask(self._nvml.nvmlDeviceGetHandleByIndex, index)
        running = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, gpu) if gpu else None
        return [
            GpuProcess(
                index, one.pid, self._process_name(one.pid), _scaled(one.usedGpuMemory, 1e-6)
            )
            for one in running or ()
        ]

    def _process_name(self, pid: int) -> str:
        """The first words of its command; the driver may know a process of another container."""
        try:
            command = psutil.Process(pid).cmdline()
        except psutil.Error:
            command = (self._ask(self._nvml.nvmlSystemGetProcessName, pid) or "").split()
        if not command:
            return "a process that cannot be seen from here"
        return " ".join([Path(command[0]).name, *command[1:3]])

    def _ask(self, query: Callable, *arguments: Any) -> Any:
        """Return the answer, or None where this GPU or driver has none."""
        try:
            return query(*arguments)
        except self._nvml.NVMLError:
            return None


def throttle_words(bits: int) -> tuple[str, ...]:
    """Say in words what holds a GPU's clocks down."""
    return tuple(words for bit, words in THROTTLING.items() if bits & bit)


def names_by_nvidia_smi() -> tuple[str, ...]:
    """Return the names of the GPUs by the driver's own program, which needs no package."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):  # there, but of no driver that works
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
