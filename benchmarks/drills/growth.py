"""Watches a process that works for long, and tells what of it grows."""

import contextlib
import mmap
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.drills import children
from benchmarks.drills.cases import CRASHED, HUNG, TRACEBACK, UNBOUNDED, Outcome
from benchmarks.drills.measuring import Clock

WARM_UP = 0.2  # of the work: what grows until then is set up once
_SPAN = 0.2  # of the work at either end of the rest, of which medians are compared
_INTERVAL_SECONDS = 0.05
_LEAST_SAMPLES = 4


@dataclass(frozen=True)
class Limits:
    """What may grow behind the warm-up: some at once, and some with each unit of work."""

    megabytes: float = 24.0
    kilobytes_per_unit: float = 5.0
    threads: int = 2
    descriptors: int = 4


@dataclass(frozen=True)
class Sample:
    """A process at one moment, and how much of its work was done."""

    done: int
    megabytes: float
    threads: int
    descriptors: int


class Counter:
    """How much is done: told by a child, read by its parent."""

    def __init__(self):
        self._shared = mmap.mmap(-1, 8)

    def set(self, value: int) -> None:
        self._shared[:8] = struct.pack("<q", value)

    def get(self) -> int:
        return struct.unpack("<q", self._shared[:8])[0]


def watch(
    work: Callable[[Counter], int | None], total: int, log: Path, seconds: float, limits: Limits
) -> tuple[Outcome | None, str]:
    """Let a child do `total` units of work; what is wrong, or None, and the figures."""
    counter, samples = Counter(), []
    pid = children.start(lambda: work(counter), log)
    process, clock = psutil.Process(pid), Clock(pid)
    is_late = False
    while process.status() != psutil.STATUS_ZOMBIE and not is_late:
        with contextlib.suppress(psutil.Error):
            samples.append(take(process, counter.get()))
        time.sleep(_INTERVAL_SECONDS)
        is_late = clock.seconds() > seconds
    ended = children.finish(pid, log, 0.0 if is_late else 60.0)
    if is_late:
        return Outcome(HUNG, f"{counter.get()} of {total} done after {seconds:.0f} s"), ""
    if ended.has_traceback:
        return Outcome(TRACEBACK, ended.text.strip().splitlines()[-1]), ""
    if ended.code:
        return Outcome(CRASHED, f"exit code {ended.code}: {ended.text[-300:].strip()}"), ""
    return verdict(samples, total, limits)


def take(process: psutil.Process, done: int) -> Sample:
    """A sample of a process."""
    megabytes = process.memory_info().rss / 2**20
    return Sample(done, megabytes, process.num_threads(), process.num_fds())


def verdict(samples: Sequence[Sample], total: int, limits: Limits) -> tuple[Outcome | None, str]:
    """What grows too much behind the warm-up, or None, and the figures in words."""
    early = [one for one in samples if WARM_UP <= one.done / total < WARM_UP + _SPAN]
    late = [one for one in samples if 1 - _SPAN <= one.done / total < 1]
    if min(len(early), len(late)) < _LEAST_SAMPLES:
        return None, f"too short to tell: {len(early)} and {len(late)} samples"
    units = (1 - _SPAN - WARM_UP) * total
    grown = _middle(late, "megabytes") - _middle(early, "megabytes")
    threads = _middle(late, "threads") - _middle(early, "threads")
    descriptors = _middle(late, "descriptors") - _middle(early, "descriptors")
    told = (
        f"{_middle(early, 'megabytes'):.0f} MB, {grown:+.1f} MB in {units:.0f} units "
        f"({1024 * grown / units:+.2f} kB each), {threads:+.0f} threads, "
        f"{descriptors:+.0f} descriptors"
    )
    allowed = limits.megabytes + limits.kilobytes_per_unit * units / 1024
    grows = [
        name
        for name, value, most in (
            ("memory", grown, allowed),
            ("threads", threads, limits.threads),
            ("descriptors", descriptors, limits.descriptors),
        )
        if value > most
    ]
    return (Outcome(UNBOUNDED, f"{', '.join(grows)}: {told}") if grows else None), told


def _middle(samples: Sequence[Sample], name: str) -> float:
    values = sorted(getattr(sample, name) for sample in samples)
    return values[len(values) // 2]
