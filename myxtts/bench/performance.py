"""How fast batches are loaded, and what holds them up."""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

from myxtts.config.config import XTTSConfig
from myxtts.monitoring.verdict import GOOD_MS, loading_grade

FULL_PERCENT = 90.0


@dataclass(frozen=True)
class Measurement:
    """The cost of loading batches; the first, which opens everything, is counted separately."""

    first_ms: float
    batch_ms: tuple[float, ...]
    samples: int  # in the batches of `batch_ms`
    reader: str
    cpu_percent: float  # of the machine, by all processes
    own_cpu_percent: float  # of the machine, by this process
    memory_percent: float
    memory_mb: float

    @property
    def samples_per_second(self) -> float:
        return 1e3 * self.samples / sum(self.batch_ms)


def measure(config: XTTSConfig, num_batches: int) -> Measurement:
    """Load batches, epoch after epoch, as fast as they come."""
    import psutil

    from myxtts.data.batches.training_data import TrainingData

    data = TrainingData(config)
    source = chain.from_iterable(map(data.train_batches, count()))
    process = psutil.Process()
    first_ms, _ = _timed_next(source)
    psutil.cpu_percent()  # the percentage is since the call before
    own, began = process.cpu_times(), time.perf_counter()
    timed = [_timed_next(source) for _ in range(num_batches - 1)]
    spent = sum(process.cpu_times()[:2]) - sum(own[:2])
    return Measurement(
        first_ms=first_ms,
        batch_ms=tuple(ms for ms, _ in timed),
        samples=sum(count for _, count in timed),
        reader=data.train_batches().reader,
        cpu_percent=psutil.cpu_percent(),
        own_cpu_percent=100 * spent / (time.perf_counter() - began) / psutil.cpu_count(),
        memory_percent=psutil.virtual_memory().percent,
        memory_mb=process.memory_info().rss / 1e6,
    )


def describe(found: Measurement) -> str:
    """Say what was measured, and what to do about it."""
    ms = found.batch_ms
    deviation = statistics.pstdev(ms)
    speed = found.samples_per_second
    lines = [
        "Data Loading Performance:",
        f"  Average time per batch: {statistics.fmean(ms):.1f}ms ±{deviation:.1f}ms",
        f"  Min/Max time: {min(ms):.1f}ms / {max(ms):.1f}ms",
        f"  First batch: {found.first_ms:.1f}ms",
        f"  Samples per second: {speed:,.1f}",
        f"  Throughput: {60 * speed:,.0f} samples/minute ({found.reader} reader)",
        "",
        "System Performance:",
        f"  CPU Usage: {found.cpu_percent:.1f}% (this process: {found.own_cpu_percent:.1f}%)",
        f"  Memory Usage: {found.memory_percent:.1f}% (this process: {found.memory_mb:,.0f} MB)",
    ]
    troubles = bottlenecks(found)
    lines += [f"  Bottleneck: {trouble}" for trouble in troubles]
    return "\n".join(lines if troubles else [*lines, "  No major bottlenecks detected"])


def bottlenecks(found: Measurement) -> list[str]:
    """Name what holds batches up, and the remedy."""
    mean = statistics.fmean(found.batch_ms)
    others = found.cpu_percent - found.own_cpu_percent
    troubles = []
    if mean >= GOOD_MS:
        troubles.append(
            f"data loading is {loading_grade(mean)}, {mean:.0f} ms a batch "
            f"(good: below {GOOD_MS:.0f}): use smaller batches, or put the cache on a "
            "faster disk (--cache-dir) or in memory (--memory-cache)"
        )
    if found.cpu_percent >= FULL_PERCENT and others > found.own_cpu_percent:
        troubles.append(
            f"the CPU is busy with other work ({others:.0f} % of it): stop that, or measure later"
        )
    if found.memory_percent >= FULL_PERCENT:
        troubles.append(
            f"{found.memory_percent:.0f} % of the memory is taken: use smaller batches, a smaller "
            "prefetch_buffer_size, or no memory_cache"
        )
    return troubles


def _timed_next(source: Iterator[dict]) -> tuple[float, int]:
    """Wait for a batch; return the milliseconds it took and the samples that are in it."""
    began = time.perf_counter()
    batch = next(source)
    return 1e3 * (time.perf_counter() - began), int(batch["mel"].shape[0])
