"""What the machine does while something runs: background samples of CPU, memory, disk and GPUs."""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from myxtts.monitoring.cores import available_cores, cgroups, read_small
from myxtts.monitoring.gpus import GpuReader, GpuSample

logger = logging.getLogger(__name__)

# A driver that hangs blocks only the daemon thread.
PATIENCE_SECONDS = 5.0

Sources = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True)
class SystemSample:
    """The machine between two moments; None is what could not be measured."""

    seconds: float  # since the sampler started
    cpu_percent: float | None = None  # of the machine, by all processes
    core_percents: tuple[float, ...] | None = None
    quota_percent: float | None = None  # of the cores that the container grants, by own processes
    others_percent: float | None = None  # of the machine, by processes that are not our own
    memory_used_mb: float | None = None  # of the container, or of the machine where it has no limit
    memory_limit_mb: float | None = None
    memory_percent: float | None = None
    own_memory_mb: float | None = None  # resident; memory shared by own processes counts for each
    disk_read_mb_s: float | None = None
    disk_write_mb_s: float | None = None
    own_read_mb_s: float | None = None
    own_write_mb_s: float | None = None
    gpus: tuple[GpuSample, ...] = ()


class Counters(NamedTuple):
    """What the sources said at one moment; most of it only grows. None: a source failed."""

    seconds: float
    cores: tuple[tuple[float, float], ...] | None  # busy and all seconds of each core
    memory: tuple[float, float] | None  # bytes used, and the limit
    disk: tuple[float, float] | None  # bytes read and written
    own: tuple[float, float] | None  # CPU-seconds, and bytes resident
    own_disk: tuple[float, float] | None  # bytes read and written
    gpus: tuple[GpuSample, ...] | None


class MeanMax(NamedTuple):
    """A value over all samples that have it."""

    mean: float
    maximum: float


class SystemSampler:
    """Samples in a daemon thread and never disturbs the program: what fails becomes None.

    `reasons` says why a source has failed. `sources` takes the place of this machine, or is the
    part of it that is sampled.
    """

    def __init__(
        self,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        keep: int = 3600,
        gpus: GpuReader | None = None,
        sources: Sources | None = None,
        cores: int | None = None,
    ):
        if interval <= 0:
            raise ValueError(f"the interval must be above 0 seconds, got {interval}")
        self.interval, self.clock = interval, clock
        self.cores = cores or available_cores()
        self.samples: deque[SystemSample] = deque(maxlen=keep)
        self.reasons: dict[str, str] = {}
        self._gpus = gpus
        self._sources: Any = sources
        self._before: Counters | None = None
        self._began: float | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def latest(self) -> SystemSample | None:
        """The last sample; there is none before the first interval is over."""
        return self.samples[-1] if self.samples else None

    def start(self) -> "SystemSampler":
        """Begin to sample every interval; a running sampler is left alone."""
        if self._thread is None:
            self._before = None  # a pause belongs to no sample
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="system-samples", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """End sampling; what was sampled stays."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join(PATIENCE_SECONDS)
            self._thread = None

    def __enter__(self) -> "SystemSampler":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def sample(self) -> SystemSample | None:
        """Take a sample of the time since the one before; the first call only begins the time."""
        before, self._before = self._before, self._count()
        if self._began is None:
            self._began = self._before.seconds
        if before is None:
            return None
        sample = sample_between(before, self._before, self._began, self.cores)
        self.samples.append(sample)
        return sample

    def summary(self) -> dict[str, MeanMax]:
        """Return mean and maximum of all that was measured; a GPU's as `gpu0.utilisation`."""
        values: dict[str, list[float]] = {}
        for sample in list(self.samples):
            for name, value in _numbers(sample):
                values.setdefault(name, []).append(value)
        return {name: MeanMax(sum(all_) / len(all_), max(all_)) for name, all_ in values.items()}

    def _run(self) -> None:
        self.sample()
        due = self.clock()
        while True:
            # After a machine has slept, missed samples are not made up for.
            due = max(due + self.interval, self.clock())
            if self._stopped.wait(due - self.clock()):
                return
            self.sample()

    def _count(self) -> Counters:
        if self._sources is None:
            self._sources = machine_sources(self._open_gpus())
        seconds = self.clock()
        return Counters(seconds, *(self._value(name) for name in Counters._fields[1:]))

    def _open_gpus(self) -> GpuReader:
        reader = self._gpus or GpuReader.open()
        if reader.reason:
            self.reasons["gpus"] = reader.reason
        return reader

    def _value(self, name: str) -> Any:
        try:
            return self._sources[name]() if name in self._sources else None
        except Exception as error:  # a driver may fail in any way; training must not
            if name not in self.reasons:
                logger.info("cannot measure %s: %s", name, error)
            self.reasons[name] = f"{type(error).__name__}: {error}"
            return None


def gpu_percent(samples: Iterable[SystemSample]) -> float | None:
    """The mean utilisation of the busiest GPU, or None where no driver reports one."""
    values: dict[int, list[float]] = {}
    for gpu in (gpu for sample in samples for gpu in sample.gpus):
        if gpu.utilisation is not None:
            values.setdefault(gpu.index, []).append(gpu.utilisation)
    return max((sum(all_) / len(all_) for all_ in values.values()), default=None)


def sample_between(
    before: Counters, after: Counters, began: float = 0.0, cores: int = 1
) -> SystemSample:
    """Return what happened between two readings, of a process that may use so many cores."""
    seconds = after.seconds - before.seconds
    used, limit = after.memory or (None, None)
    busy, whole = _core_seconds(before.cores, after.cores)
    own = after.own and before.own and max(0.0, after.own[0] - before.own[0])
    return SystemSample(
        seconds=after.seconds - began,
        cpu_percent=_percent(sum(busy), sum(whole)) if busy else None,
        core_percents=tuple(map(_percent, busy, whole)) or None,
        quota_percent=None if own is None else _percent(own, seconds * cores),
        others_percent=_percent(sum(busy) - own, sum(whole)) if busy and own is not None else None,
        memory_used_mb=_megabytes(used),
        memory_limit_mb=_megabytes(limit),
        memory_percent=_percent(*after.memory) if after.memory else None,
        own_memory_mb=_megabytes(after.own[1]) if after.own else None,
        **_speeds(("disk_read_mb_s", "disk_write_mb_s"), before.disk, after.disk, seconds),
        **_speeds(("own_read_mb_s", "own_write_mb_s"), before.own_disk, after.own_disk, seconds),
        gpus=after.gpus or (),
    )


def machine_sources(gpus: GpuReader) -> dict[str, Callable[[], Any]]:
    """Return what is read of this machine, by the names of `Counters`."""
    tree = _ProcessTree()
    return {
        "cores": _read_cores,
        "memory": MemoryLimit().read,
        "disk": _read_disks,
        "own": tree.read_use,
        "own_disk": tree.read_disk,
        "gpus": gpus.read,
    }


class MemoryLimit:
    """The memory that the container may take: the tightest cgroup above the process, if any."""

    def __init__(self, root: Path = Path("/")):
        self.limit: int | None = None
        for mount, controller, limit_file, usage_file in (
            ("sys/fs/cgroup", "", "memory.max", "memory.current"),
            ("sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            for folder in cgroups(root, controller, root / mount):
                limit = read_small(folder / limit_file)
                # The first version has a huge number for no limit, the second the word "max".
                if limit.isdecimal() and int(limit) < (self.limit or psutil.virtual_memory().total):
                    self.limit, self._usage = int(limit), folder / usage_file

    def read(self) -> tuple[float, float]:
        """Return the bytes that are used and the limit, which is the machine's if there is none."""
        if self.limit is None:
            memory = psutil.virtual_memory()
            return memory.total - memory.available, memory.total
        # The kernel drops cached files that are not in use before an allocation fails.
        lines = read_small(self._usage.with_name("memory.stat")).splitlines()
        kept = dict(line.split() for line in lines)
        droppable = kept.get("total_inactive_file", kept.get("inactive_file", 0))
        return max(0, int(read_small(self._usage)) - int(droppable)), self.limit


class _ProcessTree:
    """This process and its children. What a child has used is its parent's when it has ended."""

    def __init__(self) -> None:
        self.root = psutil.Process()
        self.processes = [self.root]

    def read_use(self) -> tuple[float, float]:
        self.processes = [self.root, *self.root.children(recursive=True)]
        cpu = memory = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                cpu += sum(process.cpu_times()[:4])  # its own and that of its ended children
                memory += process.memory_info().rss
        return cpu, memory

    def read_disk(self) -> tuple[float, float]:
        """Of the processes that `read_use` has just found."""
        if not hasattr(self.root, "io_counters"):
            raise OSError("this system does not count the disk use of a process")
        read = written = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                counted = process.io_counters()
                read, written = read + counted.read_bytes, written + counted.write_bytes
        return read, written


def _read_cores() -> tuple[tuple[float, float], ...]:
    return tuple(_busy_and_all(times) for times in psutil.cpu_times(percpu=True))


def _busy_and_all(times: Any) -> tuple[float, float]:
    """Waiting for a disk is not being busy; a guest's time is in the user's already."""
    known = times._asdict()
    whole = sum(known.values()) - known.get("guest", 0.0) - known.get("guest_nice", 0.0)
    return whole - times.idle - known.get("iowait", 0.0), whole


def _read_disks(root: Path = Path("/")) -> tuple[float, float]:
    """Physical disks only, where the system distinguishes them: no byte counts twice."""
    disks = psutil.disk_io_counters(perdisk=True)
    physical = [name for name in disks if (root / "sys/block" / name / "device").exists()]
    if not physical:
        whole = psutil.disk_io_counters()
        if whole is None:
            raise OSError("no disk is counted here")
        return whole.read_bytes, whole.write_bytes
    chosen = [disks[name] for name in physical]
    return sum(d.read_bytes for d in chosen), sum(d.write_bytes for d in chosen)


_Pairs = Sequence[tuple[float, float]] | None


def _core_seconds(before: _Pairs, after: _Pairs) -> tuple[list[float], list[float]]:
    """Busy and all seconds of each core; nothing where they are unknown or their number changed."""
    if not before or not after or len(before) != len(after):
        return [], []
    pairs = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after, strict=True)]
    return [busy for busy, _ in pairs], [whole for _, whole in pairs]


def _speeds(
    names: tuple[str, str],
    before: Sequence[float] | None,
    after: Sequence[float] | None,
    seconds: float,
) -> dict[str, Any]:
    if not before or not after or seconds <= 0:
        return dict.fromkeys(names)
    speeds = [max(0.0, b - a) / seconds / 1e6 for a, b in zip(before, after, strict=True)]
    return dict(zip(names, speeds, strict=True))


def _percent(part: float, whole: float) -> float:
    return max(0.0, 100 * part / whole) if whole > 0 else 0.0


def _megabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e6


def _numbers(sample: SystemSample) -> Iterator[tuple[str, float]]:
    """Yield the name and value of every number in a sample but its time."""
    parts: list[tuple[str, Any]] = [("", sample)]
    parts += [(f"gpu{gpu.index}.", gpu) for gpu in sample.gpus]
    for prefix, part in parts:
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, int | float) and field.name not in ("seconds", "index"):
                yield prefix + field.name, value
