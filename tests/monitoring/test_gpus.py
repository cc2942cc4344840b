import os
import subprocess
import sys
from ctypes import Structure, c_uint, c_ulonglong
from types import SimpleNamespace

import pytest

from myxtts.monitoring import gpus
from myxtts.monitoring.gpus import GpuReader, GpuSample, throttle_words


class NVMLError(Exception):
    """As in nvidia-ml-py: made of a number, with a text that it looks up."""

    TEXTS = {3: "Not Supported", 9: "Driver Not Loaded", 12: "NVML Shared Library Not Found"}
    TEXTS |= {1: "Uninitialized", 6: "Not Found", 13: "Function Not Found", 15: "GPU is lost"}

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return self.TEXTS[self.value]


class Utilization(Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class Memory(Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


def process(pid, memory):
    return SimpleNamespace(
        pid=pid, usedGpuMemory=memory, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF
    )


class FakeNvml:
    """The part of nvidia-ml-py that is used; `fails` maps a function to its error's number."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def __init__(self, count=1, reasons=0x0, processes=(), fails=()):
        self.count, self.reasons, self.processes = count, reasons, processes
        self.fails = dict(fails)
        self.is_open = False

    def __getattribute__(self, name):
        if name.startswith("nvml"):
            if name in self.fails:
                raise_error = self.fails[name]
                return lambda *arguments: _raise(NVMLError(raise_error))
            if name != "nvmlInit" and not self.is_open:
                return lambda *arguments: _raise(NVMLError(1))
        return super().__getattribute__(name)

    def nvmlInit(self):
        self.is_open = True

    def nvmlShutdown(self):
        self.is_open = False

    def nvmlSystemGetDriverVersion(self):
        return "570.86.15"

    def nvmlSystemGetProcessName(self, pid):
        return f"/opt/bin/process{pid} --fast"

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index):
        return SimpleNamespace(index=index)

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA L4"

    def nvmlDeviceGetUtilizationRates(self, handle):
        return Utilization(gpu=87 - handle.index, memory=41)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return Memory(total=24_000_000_000, free=18_000_000_000, used=6_000_000_000)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 65_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 72_000

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return {0: 71}[sensor]

    def nvmlDeviceGetClockInfo(self, handle, type):
        return {1: 1590, 2: 6251}[type]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return list(self.processes)


def _raise(error):
    raise error


L4 = GpuSample(
    index=0,
    name="NVIDIA L4",
    utilisation=87,
    memory_used_mb=6000.0,
    memory_total_mb=24000.0,
    power_w=65.5,
    power_limit_w=72.0,
    temperature_c=71,
    sm_clock_mhz=1590,
    memory_clock_mhz=6251,
    throttling=("power cap", "thermal, by software"),
)


def test_a_sample_has_every_value_that_the_gpu_reports():
    reader = GpuReader.open(FakeNvml(reasons=0x24))
    assert reader.reason == ""
    assert reader.driver == "570.86.15"
    assert reader.read() == (L4,)
    assert L4.memory_percent == 25.0


def test_every_gpu_is_read():
    assert [gpu.utilisation for gpu in GpuReader.open(FakeNvml(count=3)).read()] == [87, 86, 85]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("nvmlDeviceGetUtilizationRates", ["utilisation"]),
        ("nvmlDeviceGetMemoryInfo", ["memory_used_mb", "memory_total_mb", "memory_percent"]),
        ("nvmlDeviceGetPowerUsage", ["power_w"]),
        ("nvmlDeviceGetEnforcedPowerLimit", ["power_limit_w"]),
        ("nvmlDeviceGetTemperature", ["temperature_c"]),
        ("nvmlDeviceGetClockInfo", ["sm_clock_mhz", "memory_clock_mhz"]),
    ],
)
def test_only_what_a_gpu_does_not_report_is_none(query, fields):
    (found,) = GpuReader.open(FakeNvml(reasons=0x24, fails={query: 3})).read()
    for name in (*GpuSample.__dataclass_fields__, "memory_percent"):
        assert getattr(found, name) == (None if name in fields else getattr(L4, name)), name


def test_an_older_driver_says_by_its_older_call_what_holds_the_clocks_down():
    fails = {"nvmlDeviceGetCurrentClocksEventReasons": 13}
    (found,) = GpuReader.open(FakeNvml(reasons=0x8, fails=fails)).read()
    assert found.throttling == ("hardware slowdown",)
    fails["nvmlDeviceGetCurrentClocksThrottleReasons"] = 13
    (found,) = GpuReader.open(FakeNvml(reasons=0x8, fails=fails)).read()
    assert found.throttling is None


def test_an_idle_gpu_is_not_throttled():
    assert throttle_words(0x0) == throttle_words(0x1) == ()
    assert throttle_words(0x40 | 0x80) == ("thermal, by hardware", "power brake")


def test_a_lost_gpu_says_so():
    reader = GpuReader.open(FakeNvml(fails={"nvmlDeviceGetHandleByIndex": 15}))
    assert reader.read() == (GpuSample(0, "GPU 0", problem="GPU is lost"),)
    assert reader.processes() == ()


@pytest.mark.parametrize(
    ("nvml", "reason"),
    [
        (FakeNvml(fails={"nvmlInit": 12}), f"{gpus.NO_DRIVER} (NVML Shared Library Not Found)"),
        (FakeNvml(fails={"nvmlInit": 9}), f"{gpus.NO_DRIVER} (Driver Not Loaded)"),
        (FakeNvml(count=0), gpus.NO_GPU),
    ],
)
def test_nothing_to_read_is_a_state_with_a_reason(nvml, reason):
    reader = GpuReader.open(nvml)
    assert reader.reason == reason
    assert reader.read() == reader.processes() == ()
    assert reader.driver is None
    assert not nvml.is_open
    reader.close()


def test_without_the_package_the_reason_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    reader = GpuReader.open()
    assert reader.reason == "nvidia-ml-py is not installed: pip install 'myxtts[gpu]'"
    assert reader.read() == ()


def test_a_closed_reader_has_nothing_more_to_say():
    nvml = FakeNvml()
    reader = GpuReader.open(nvml)
    reader.close()
    assert not nvml.is_open
    assert reader.read() == () and reader.reason == gpus.CLOSED


def test_processes_are_named_and_the_largest_is_first():
    foreign = 2**31 - 1  # of another container: no such process is here
    running = [process(foreign, None), process(os.getpid(), 5_000_000_000)]
    found = GpuReader.open(FakeNvml(processes=running)).processes()
    assert [(one.gpu, one.pid, one.memory_mb) for one in found] == [
        (0, os.getpid(), 5000.0),
        (0, foreign, None),
    ]
    assert found[0].name.startswith(os.path.basename(sys.executable)[:6])
    assert found[1].name == f"process{foreign} --fast"


def test_a_process_that_nobody_knows_is_said_to_be_unknown():
    fails = {"nvmlSystemGetProcessName": 6}
    nvml = FakeNvml(processes=[process(2**31 - 1, 1_000_000)], fails=fails)
    (found,) = GpuReader.open(nvml).processes()
    assert found.name == "a process that cannot be seen from here"


def test_the_drivers_own_program_names_gpus_too(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    program.write_text('#!/bin/sh\n[ "$1" = --query-gpu=name ] && echo "NVIDIA L4" && echo "T4"\n')
    program.chmod(0o755)
    assert gpus.names_by_nvidia_smi() == ("NVIDIA L4", "T4")
    program.write_text("#!/bin/sh\necho cannot talk to the driver; exit 9\n")
    assert gpus.names_by_nvidia_smi() == ()


def test_without_that_program_there_are_no_names(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.names_by_nvidia_smi() == ()


def test_a_program_that_hangs_is_no_answer(monkeypatch):
    monkeypatch.setattr(gpus.shutil, "which", lambda name: name)
    late = subprocess.TimeoutExpired("nvidia-smi", 20)
    monkeypatch.setattr(gpus.subprocess, "run", lambda *a, **k: _raise(late))
    assert gpus.names_by_nvidia_smi() == ()
