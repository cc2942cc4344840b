"""Measuring loaders: CPU time, stalls of a simulated accelerator, and a naive loader to beat."""

import importlib.metadata
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.data.batches.plan import BatchPlan
from myxtts.data.store.packed_cache import PackedCache
from myxtts.monitoring.cores import available_cores

Make = Callable[[], Iterable]


@dataclass(frozen=True, slots=True)
class Cost:
    """What it took to go through some batches without using them."""

    utterances: int
    batches: int
    cpu_seconds: float
    wall_seconds: float

    @property
    def cpu_per_1000(self) -> float:
        """CPU-seconds per thousand utterances, all threads and processes together."""
        return 1e3 * self.cpu_seconds / max(1, self.utterances)

    @property
    def samples_per_second(self) -> float:
        return self.utterances / max(1e-9, self.wall_seconds)

    @property
    def ms_per_batch(self) -> float:
        return 1e3 * self.wall_seconds / max(1, self.batches)


@dataclass(frozen=True, slots=True)
class Stall:
    """How long a simulated accelerator computed, and each of its waits for the next batch."""

    compute_seconds: float
    waits: tuple[float, ...]

    @property
    def utilisation(self) -> float:
        """compute / (compute + wait), between 0 and 1."""
        return self.compute_seconds / (self.compute_seconds + sum(self.waits))

    @property
    def p99_ms(self) -> float:
        return 1e3 * float(np.percentile(self.waits, 99))


@dataclass(frozen=True, slots=True)
class Target:
    """A limit and what was measured against it.

    `aim` is the target in the words that it was set in. `note` says what exactly was measured, or
    why nothing was.
    """

    what: str
    measured: float | None
    limit: float
    at_most: bool = True
    unit: str = "x"
    aim: str = ""
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit

    def __str__(self) -> str:
        aim = f" ({self.aim})" if self.aim else ""
        sense = "at most" if self.at_most else "at least"
        named = f"target: {self.what}{aim}, {sense} {self.limit:,g} {self.unit}".rstrip()
        if self.measured is None:
            return f"{named}: not measured: {self.note}"
        measured = f"measured {self.measured:,.4g} {self.unit}".rstrip()
        note = f" ({self.note})" if self.note else ""
        return f"{named}: {measured}{note}: {'met' if self.is_met else 'NOT met'}"


def measure(make: Make, utterances: int) -> Cost:
    """Drain what `make` returns, which holds so many utterances in all."""
    batches = 0
    cpu, wall = cpu_seconds(), time.perf_counter()
    for _ in make():
        batches += 1
    return Cost(utterances, batches, cpu_seconds() - cpu, time.perf_counter() - wall)


def simulate(make: Make, step_seconds: float) -> Stall:
    """Consume batches as an accelerator does that computes so long and leaves the CPU free.

    The first batch is not counted: start-up is measured separately. A step counts with
    the time that it really took: a busy machine that wakes it late is not the loader's fault.
    """
    source = iter(make())
    compute, waits = 0.0, []
    batch = next(source, None)
    while batch is not None:
        began = time.perf_counter()
        time.sleep(step_seconds)
        computed = time.perf_counter()
        del batch  # a step has no more use for its batch when it ends
        batch = next(source, None)
        if batch is not None:
            compute += computed - began
            waits.append(time.perf_counter() - computed)
    if not waits:
        raise ValueError("a stall needs at least two batches")
    return Stall(compute, tuple(waits))


def pooled(stalls: Sequence[Stall]) -> Stall:
    """Several rounds of the same as one."""
    waits = tuple(wait for stall in stalls for wait in stall.waits)
    return Stall(sum(stall.compute_seconds for stall in stalls), waits)


def interleaved(variants: dict[str, Callable[[], object]], rounds: int) -> dict[str, list]:
    """Run all variants in turn, again and again: what disturbs a round disturbs all of them."""
    results: dict[str, list] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            results[name].append(run())
    return results


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The round of median CPU time."""
    return sorted(costs, key=lambda cost: cost.cpu_per_1000)[len(costs) // 2]


def cpu_ratio(costs: Sequence[Cost], reference: Sequence[Cost]) -> float:
    """The median of the ratios of rounds that ran next to each other."""
    pairs = zip(costs, reference, strict=True)
    return statistics.median(a.cpu_per_1000 / b.cpu_per_1000 for a, b in pairs)


def in_fresh_process(function: Callable, *arguments):
    """Call a function in a process that has done nothing yet but import TensorFlow."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_import_tensorflow) as pool:
        return pool.submit(function, *arguments).result()


def _import_tensorflow() -> None:
    """Importing it and building its first graph are no part of opening a cache."""
    import tensorflow as tf

    list(tf.data.Dataset.range(2).map(lambda number: number + 1))


def cpu_seconds() -> float:
    """CPU time of this process, its threads, and its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def anonymous_megabytes() -> float:
    """Memory that is the process's own: pages of mapped files, which the kernel may drop, are not.

    Where the system does not report it, the peak of resident memory.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_npy_files(
    cache: PackedCache, positions: Iterable[int], folder: Path, dtype: str = ""
) -> dict[int, str]:
    """One .npy of the mel per utterance, as a naive loader has them; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for position in positions:
        path = folder / f"{position}.npy"
        if not path.exists():
            mel = cache.utterance(position)["mel"]
            np.save(path, mel.astype(dtype) if dtype else mel)
        paths[position] = str(path)
    return paths


def naive_batches(paths: Sequence[str], batch_size: int, workers: int = 2, prefetch: int = 4):
    """One call of `np.load` per utterance from inside tf.data, padded to batches and prefetched."""
    import tensorflow as tf

    example = np.load(paths[0])

    def load(path):
        mel = tf.numpy_function(_load_npy, [path], example.dtype)
        return tf.ensure_shape(mel, [None, example.shape[1]])

    dataset = tf.data.Dataset.from_tensor_slices(list(paths))
    dataset = dataset.map(load, num_parallel_calls=workers)
    return dataset.padded_batch(batch_size).prefetch(prefetch)


def _load_npy(name: bytes) -> np.ndarray:
    """Load a file; again where threads got in each other's way in Python 3.11's `ast`."""
    try:
        return np.load(name.decode())
    except SystemError:
        return np.load(name.decode())


def head(plan: BatchPlan, batches: int) -> BatchPlan:
    """The first batches of a plan."""
    return BatchPlan(
        plan.order, plan.bounds[: batches + 1], plan.frames[:batches], plan.tokens[:batches]
    )


def planned(plan: BatchPlan) -> np.ndarray:
    """The positions of all utterances of a plan, in its order."""
    return plan.order[plan.bounds[0] : plan.bounds[-1]]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns in Markdown: the first to the left, the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, rule)
    shown = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        shown.append("| " + " | ".join(cells) + " |")
    return "\n".join(shown)


def describe_machine(packages: Sequence[str] = ("numpy", "scipy", "tensorflow-cpu")) -> str:
    """Cores, processor, load and versions, in one line: a figure means little without them."""
    versions = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{available_cores()} cores, {_processor()}, load {load} (1, 5, 15 min); " + ", ".join(
        versions
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
