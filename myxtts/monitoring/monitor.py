"""`PerformanceMonitor`: named timers, step times, cache counts and the machine, for any script."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import perf_counter
from typing import Any

from myxtts.monitoring.evidence import Evidence
from myxtts.monitoring.system import SystemSampler
from myxtts.monitoring.timers import StageTimers
from myxtts.monitoring.verdict import (
    Verdict,
    diagnose,
    distribution,
    waiting_grade,
    waiting_share,
)

KEPT_STEPS = 100_000


class PerformanceMonitor:
    """Collects what a training script measures, and says what holds it back.

    As the profiler of the data engine (`config.data.profiler`) it also counts the cache's hits,
    misses and errors. Calls may come from any thread.
    """

    def __init__(self, interval: float = 1.0, clock: Callable[[], float] = perf_counter):
        self.sampler = SystemSampler(interval)
        self._timers, self._clock = StageTimers(clock), clock
        self._calls: Counter[str] = Counter()
        self._cache: Counter[str] = Counter()
        self._steps: deque[tuple[float, float, int]] = deque(maxlen=KEPT_STEPS)
        self._lock = threading.Lock()

    # What is measured

    def start(self) -> None:
        """Sample the machine in the background from now on."""
        self.sampler.start()

    def stop(self) -> None:
        """Stop sampling; what was measured stays."""
        self.sampler.stop()

    @contextmanager
    def time_operation(self, operation_name: str) -> Iterator[None]:
        """Time a `with` block under a name; an operation inside another counts separately."""
        with self._lock:
            self._calls[operation_name] += 1
        with self._timers.time(operation_name):
            yield

    profile_operation = time_operation

    def log_step_timing(self, data_s: float, compute_s: float, batch_size: int) -> None:
        """Take one step: seconds of waiting for its batch, seconds of computing, utterances."""
        with self._lock:
            self._steps.append((data_s, compute_s, batch_size))

    def record_cache_hit(self, count: int = 1) -> None:
        self._count("hits", count)

    def record_cache_miss(self, count: int = 1) -> None:
        self._count("misses", count)

    def record_cache_error(self, count: int = 1) -> None:
        self._count("errors", count)

    def _count(self, what: str, count: int) -> None:
        with self._lock:
            self._cache[what] += count

    # What it reports

    def verdict(self) -> Verdict | None:
        """What holds the steps back, if any were logged."""
        evidence = self._evidence()
        return diagnose(evidence) if evidence else None

    def get_bottleneck_analysis(self) -> dict[str, Any]:
        """All figures, for programs to read: the verdict, steps, operations, cache and machine."""
        with self._lock:
            steps, cache = list(self._steps), dict(self._cache)
            calls = dict(self._calls)
        analysis: dict[str, Any] = {
            "operations": {
                name: {"seconds": seconds, "calls": calls.get(name, 0)}
                for name, seconds in self._timers.totals().items()
            },
            "cache": {name: cache.get(name, 0) for name in ("hits", "misses", "errors")},
            "system": {name: mean._asdict() for name, mean in self.sampler.summary().items()},
            "system_reasons": dict(self.sampler.reasons),
        }
        verdict = self.verdict()
        if verdict is not None:
            data_ms = [1e3 * data for data, _, _ in steps]
            compute_ms = [1e3 * compute for _, compute, _ in steps]
            seconds = sum(data + compute for data, compute, _ in steps)
            analysis |= {
                "bottleneck": verdict.stage,
                "verdict": verdict.sentence,
                "recommendations": [verdict.change] if verdict.change else [],
                "utilisation": verdict.utilisation,
                "data_ms": asdict(distribution(data_ms)),
                "compute_ms": asdict(distribution(compute_ms)),
                "loading": waiting_grade(waiting_share(sum(data_ms), sum(compute_ms))),
                "samples_per_second": sum(size for *_, size in steps) / max(1e-9, seconds),
            }
        return analysis

    def get_summary_report(self) -> str:
        """The same as text, one item per line."""
        found = self.get_bottleneck_analysis()
        lines = ["Performance summary:"]
        if "verdict" in found:
            data, compute = found["data_ms"], found["compute_ms"]
            lines += [
                f"  Steps: {len(self._steps):,}, {found['samples_per_second']:,.1f} samples/s",
                f"  Data: mean {data['mean']:.1f} ms, p99 {data['p99']:.1f} ms: loading is "
                f"{found['loading']}",
                f"  Compute: mean {compute['mean']:.1f} ms, p99 {compute['p99']:.1f} ms",
                f"  Verdict: {found['verdict']}",
            ]
        else:
            lines.append("  Steps: none was logged (log_step_timing)")
        for name, one in sorted(found["operations"].items(), key=lambda item: -item[1]["seconds"]):
            each = 1e3 * one["seconds"] / max(1, one["calls"])
            lines.append(f"  {name}: {one['calls']:,} x {each:.2f} ms = {one['seconds']:.2f} s")
        cache = found["cache"]
        if any(cache.values()):
            lookups = cache["hits"] + cache["misses"]
            share = f" ({100 * cache['hits'] / lookups:.1f} % found)" if lookups else ""
            lines.append(
                f"  Cache: {cache['hits']:,} hits, {cache['misses']:,} misses, "
                f"{cache['errors']:,} errors{share}"
            )
        lines += [f"  {line}" for line in self._machine_lines(found["system"])]
        return "\n".join(lines)

    def _evidence(self) -> Evidence | None:
        with self._lock:
            steps = list(self._steps)
        if not steps:
            return None
        data = 1e3 * sum(one[0] for one in steps) / len(steps)
        compute = 1e3 * sum(one[1] for one in steps) / len(steps)
        return Evidence(len(steps), data + compute, compute, wait_ms=data, load_ms=data)

    def _machine_lines(self, system: dict[str, Any]) -> list[str]:
        if not system:
            return ["Machine: not sampled (start_performance_monitoring)"]
        shown = {"cpu_percent": "CPU", "memory_percent": "Memory"}
        lines = [
            f"{word}: mean {system[name]['mean']:.1f} %, at most {system[name]['maximum']:.1f} %"
            for name, word in shown.items()
            if name in system
        ]
        gpus = sorted(name for name in system if name.endswith(".utilisation"))
        for name in gpus:
            mean = system[name]["mean"]
            lines.append(f"{name.partition('.')[0]}: some kernel ran {mean:.1f} % of the time")
        if not gpus:
            lines.append(f"GPU: {self.sampler.reasons.get('gpus') or 'none'}")
        return lines


_own: PerformanceMonitor | None = None
_guard = threading.Lock()


def get_performance_monitor() -> PerformanceMonitor:
    """The monitor of this process, made on first use."""
    global _own
    with _guard:
        _own = _own or PerformanceMonitor()
        return _own


def start_performance_monitoring() -> PerformanceMonitor:
    """Sample the machine in the background from now on; returns the monitor of this process."""
    monitor = get_performance_monitor()
    monitor.start()
    return monitor


def stop_performance_monitoring() -> None:
    """Stop sampling; what was measured stays."""
    get_performance_monitor().stop()


def print_performance_report() -> None:
    """Print the report of this process's monitor."""
    print(get_performance_monitor().get_summary_report())
