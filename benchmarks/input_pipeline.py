"""What delivering batches costs at the size of LJSpeech, and whether an accelerator would wait.

    python benchmarks/input_pipeline.py [--work FOLDER] [--rounds 5] [--torch-python PYTHON]

Makes a synthetic cache of 13,100 utterances (3.6 GB in float32 and float16; kept in --work, else in
a temporary folder) and measures, interleaved, in one run: a memcpy of the same bytes, both readers,
one `np.load` per utterance inside tf.data, and PyTorch's DataLoader where there is a torch.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from chart import write_bars
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.synthetic_cache import LJSPEECH_UTTERANCES, make_stores, named_stores
from myxtts.bench.timing import Cost, Stall, Target
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.batches.readers import host_batches
from myxtts.data.store.packed_cache import PackedCache, open_cache

BATCH_SIZE = 48
NPY_UTTERANCES = 1_500
STALL_BATCHES = 150
ALIVE = 6  # four prefetched, one in use, one being made
STEP_BARS = {20: 0.99, 10: 0.97}
TYPES = ("float32", "float16")


def main() -> None:
    run_in_work(run, _parse())


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Make the caches, measure everything, print it, and return the bars."""
    for dtype in TYPES:
        make_stores(work, asked.utterances, dtype)
    start_ups = start_up_bars(work)
    caches = {dtype: open_cache(*named_stores(work, dtype)) for dtype in TYPES}
    for cache in caches.values():
        _warm(cache)
    some = next(iter(caches.values()))
    plan = plan_epoch(some.text_lengths, some.mel_lengths, BatchOptions(batch_size=BATCH_SIZE))
    bars = delivery_bars(work, caches, plan, asked)
    bars += stall_bars(caches["float16"], plan, asked.rounds)
    show_toggles(work)
    return start_ups + bars


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the synthetic cache here, and reuse it")
    parser.add_argument("--utterances", type=int, default=LJSPEECH_UTTERANCES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch-python", default=sys.executable, help="an interpreter with torch")
    parser.add_argument("--svg", type=Path, help="draw the cost of a delivery here")
    return parser.parse_args()


# The cost of a delivery


def delivery_bars(
    work: Path, caches: dict[str, PackedCache], plan: BatchPlan, asked: argparse.Namespace
) -> list[Target]:
    """CPU per 1000 utterances of every loader, next to a memcpy of the same float32 bytes."""
    rounds = asked.rounds
    variants = _variants(work, caches, plan, asked.torch_python)
    results = timing.interleaved(variants, rounds)
    limit = results["memcpy"]
    sizes = _batch_bytes(plan, caches["float32"])
    print(
        f"\nDelivering {len(timing.planned(plan)):,} utterances in batches of {BATCH_SIZE}: "
        f"{sizes.sum() / 1e9:.2f} GB as float32, padding included; medians of {rounds} rounds"
    )
    rows = [_row(name, costs, limit) for name, costs in results.items() if costs[0] is not None]
    print(timing.table(("loader", "CPU-s / 1000", "x memcpy", "samples/s"), rows))
    _print_casts(results, limit)
    if asked.svg:
        _draw(asked.svg, results)
    return _show(_delivery_bars(results))


def _variants(
    work: Path, caches: dict[str, PackedCache], plan: BatchPlan, torch_python: str
) -> dict[str, Callable[[], Cost | None]]:
    count = len(timing.planned(plan))
    copy = partial(memcpy, caches["float32"], plan)
    variants: dict[str, Callable] = {
        "memcpy": lambda: timing.measure(copy, count),
        # A reader's batches live until they are used: what copies cost that live as long.
        f"memcpy, {ALIVE} batches alive": lambda: timing.measure(lambda: _alive(copy()), count),
    }
    for dtype, cache in caches.items():
        # Rows into padded batches and nothing else: no thread, no tensors.
        make = partial(host_batches, cache, plan)
        variants[f"padded copy, one thread, {dtype}"] = partial(timing.measure, make, count)
        for reader in ("host", "native"):
            make = partial(_batches, cache, plan, reader)
            name = f"{reader}, {dtype}"
            variants[name] = partial(timing.measure, make, count)
            if dtype != "float32":
                make = partial(_cast, make)
                variants[f"{name} + cast to float32"] = partial(timing.measure, make, count)
    chosen = timing.planned(plan)[:NPY_UTTERANCES]
    for dtype, cache in caches.items():
        files = timing.write_npy_files(cache, chosen.tolist(), work / f"npy-{dtype}")
        paths = [files[position] for position in chosen.tolist()]
        make = partial(timing.naive_batches, paths, BATCH_SIZE)
        variants[f"np.load in tf.data, {dtype}"] = partial(timing.measure, make, len(paths))
        variants[f"DataLoader, {dtype}"] = partial(dataloader, work, paths, torch_python)
    return variants


def memcpy(cache: PackedCache, plan: BatchPlan) -> Iterator[np.ndarray]:
    """Copy as many bytes as each batch has, from one region after the other of the mapped mels."""
    source = cache.columns["mel"].array.reshape(-1).view(np.uint8)
    at = 0
    for size in _batch_bytes(plan, cache).tolist():
        at = at if at + size <= len(source) else 0
        fresh = np.empty(size, np.uint8)
        fresh[:] = source[at : at + size]
        at += size
        yield fresh


def _alive(copies: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    kept: deque[np.ndarray] = deque(maxlen=ALIVE)
    for copy in copies:
        kept.append(copy)
        yield copy


def _batch_bytes(plan: BatchPlan, cache: PackedCache) -> np.ndarray:
    """The bytes of each padded batch, with features in the cache's type."""
    columns = [data.column for name, data in cache.columns.items() if name != "tokens"]
    per_frame = sum(column.row_bytes for column in columns)
    tokens = 4 * plan.tokens.astype(np.int64)
    return plan.sizes * (plan.frames.astype(np.int64) * per_frame + tokens)


def _batches(cache: PackedCache, plan: BatchPlan, reader: str):
    from myxtts.data.batches import graph_reader

    options = graph_reader.ReaderOptions(native=reader == "native")
    return graph_reader.cached_batches(cache, plan, options)


def _cast(make: Callable) -> Iterator:
    """What the step does first with a batch of float16, here on the CPU."""
    import tensorflow as tf

    for batch in make():
        yield tf.cast(batch["mel"], tf.float32)


def dataloader(work: Path, paths: list[str], python: str) -> Cost | None:
    """PyTorch's DataLoader on the same files, or nothing where there is no torch."""
    listing = work / "files.txt"
    listing.write_text("\n".join(paths), encoding="utf-8")
    script = Path(__file__).with_name("torch_dataloader.py")
    command = [python, str(script), str(listing), str(BATCH_SIZE), "2", "3"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cost = json.loads(answer.splitlines()[-1]).get("cost")
    return Cost(**cost) if cost else None


def _row(name: str, costs: list[Cost], limit: list[Cost]) -> tuple[str, ...]:
    cost = timing.median_cost(costs)
    ratio = timing.cpu_ratio(costs, limit)
    return name, f"{cost.cpu_per_1000:.4f}", f"{ratio:.2f}", f"{cost.samples_per_second:,.0f}"


def _draw(path: Path, results: dict[str, list[Cost]]) -> None:
    """Draw what delivering float16 costs; the memcpy is that of the same batches as float32."""
    names = ("memcpy", "host, float16", "native, float16", "DataLoader, float16")
    names += ("np.load in tf.data, float16",)
    rows = [
        (name.replace(", float16", ""), timing.median_cost(results[name]).cpu_per_1000, own)
        for name, own in zip(names, (False, True, True, False, False), strict=True)
        if results[name][0] is not None
    ]
    machine = timing.describe_machine().partition(", load")[0]
    note = (
        f"batches of {BATCH_SIZE} from {LJSPEECH_UTTERANCES:,} utterances stored as float16 "
        f"(memcpy: the same as float32); {machine}"
    )
    write_bars(path, "CPU-seconds per 1,000 utterances delivered", rows, "s", note)


def _print_casts(results: dict[str, list[Cost]], limit: list[Cost]) -> None:
    for reader in ("host", "native"):
        read = results[f"{reader}, float16"]
        total = timing.cpu_ratio(results[f"{reader}, float16 + cast to float32"], limit)
        alone = timing.cpu_ratio(read, limit)
        print(
            f"{reader}, float16: delivered {alone:.2f} x, the cast {total - alone:.2f} x, "
            f"total {total:.2f} x memcpy of the float32 bytes"
        )
    if results["DataLoader, float32"][0] is None:
        print("DataLoader: torch is not installed: not measured")


def _delivery_bars(results: dict[str, list[Cost]]) -> list[Target]:
    limit, bars = results["memcpy"], []
    for reader, most in (("host", 1.15), ("native", 1.4)):
        for kind in ("float32", "float16", "float16 + cast to float32"):
            ratio = timing.cpu_ratio(results[f"{reader}, {kind}"], limit)
            what = f"{reader} reader, stored {kind}, CPU over a memcpy of the float32 bytes"
            bars.append(Target(what, ratio, most))
        for dtype in TYPES:
            for loader, least in (("np.load in tf.data", 7), ("DataLoader", 3)):
                other = results[f"{loader}, {dtype}"]
                if other[0] is not None:
                    ratio = timing.cpu_ratio(other, results[f"{reader}, {dtype}"])
                    what = f"{loader}, {dtype} .npy, CPU over the {reader} reader, {dtype}"
                    bars.append(Target(what, ratio, least, at_most=False))
    return bars


# The simulated accelerator


def stall_bars(cache: PackedCache, plan: BatchPlan, rounds: int) -> list[Target]:
    """Utilisation with 20 and 10 ms a batch, against a loader that has everything in memory."""
    plan = timing.head(plan, STALL_BATCHES)
    ready = list(_batches(cache, plan, "host"))
    loaders = {
        "do-nothing": lambda: ready,
        "native": partial(_batches, cache, plan, "native"),
        "host": partial(_batches, cache, plan, "host"),
    }
    variants = {
        (name, step): partial(timing.simulate, make, step / 1e3)
        for step in STEP_BARS
        for name, make in loaders.items()
    }
    results = {
        key: timing.pooled(found) for key, found in timing.interleaved(variants, rounds).items()
    }
    print(f"\nSimulated accelerator, float16, {len(plan)} batches, {rounds} rounds")
    rows = [
        (name, f"{step} ms", _percent(stall.utilisation), f"{stall.p99_ms:.2f}")
        for (name, step), stall in results.items()
    ]
    print(timing.table(("loader", "step", "utilisation", "99th percentile of waits, ms"), rows))
    return _show(_stall_bars(results))


def _stall_bars(results: dict[tuple[str, int], Stall]) -> list[Target]:
    bars = []
    for step, least in STEP_BARS.items():
        most = results["do-nothing", step].utilisation
        for reader in ("native", "host"):
            share = 100 * results[reader, step].utilisation / most
            what = f"{reader} reader, utilisation at {step} ms over that of a do-nothing loader"
            bars.append(Target(what, share, 100 * least, at_most=False, unit="%"))
    return bars


# Start-up, memory and toggles, each in a process of its own


@dataclass(frozen=True)
class Toggle:
    """A way to open and read a cache."""

    name: str
    dtype: str = "float16"
    native: bool = True
    overlap: bool = True
    mapped: bool = True
    in_memory: bool = False
    prefetch: int = 4


@dataclass(frozen=True)
class Behaviour:
    """What a toggle changes."""

    first_batch_seconds: float
    megabytes: float
    cost: Cost
    stall: Stall


TOGGLES = (
    Toggle("native (default)"),
    Toggle("host: native off", native=False),
    Toggle("native, overlap off", overlap=False),
    Toggle("host, overlap off", native=False, overlap=False),
    Toggle("host, memory mapping off", native=False, mapped=False),
    Toggle("native, memory_cache", in_memory=True),
    Toggle("host, memory_cache", native=False, in_memory=True),
    Toggle("native, prefetch 1", prefetch=1),
    Toggle("native, prefetch 16", prefetch=16),
)


def start_up_bars(work: Path) -> list[Target]:
    """Seconds to the first batch and growth of memory, of each reader in a fresh process."""
    bars = []
    for dtype in TYPES:
        for native in (True, False):
            name = f"{'native' if native else 'host'} reader, {dtype}"
            seen = timing.in_fresh_process(behaviour, work, Toggle(name, dtype, native))
            what = f"{name}, opening the cache to the first batch, verification off"
            bars.append(Target(what, seen.first_batch_seconds, 2, unit="s"))
            what = f"{name}, growth of RssAnon over an epoch"
            bars.append(Target(what, seen.megabytes, 200, unit="MB"))
        seconds = timing.in_fresh_process(verification_seconds, work, dtype)
        print(f"verification reads every byte before that: + {seconds:.2f} s for {dtype}")
    return _show(bars)


def show_toggles(work: Path) -> None:
    """What each switch changes, side by side."""
    rows = []
    for toggle in TOGGLES:
        seen = timing.in_fresh_process(behaviour, work, toggle)
        rows.append(
            (
                toggle.name,
                f"{seen.first_batch_seconds:.2f}",
                f"{seen.megabytes:,.0f}",
                f"{seen.cost.cpu_per_1000:.4f}",
                f"{seen.cost.samples_per_second:,.0f}",
                _percent(seen.stall.utilisation),
                f"{seen.stall.p99_ms:.2f}",
            )
        )
    header = (
        "toggles, float16",
        "first batch, s",
        "RssAnon, MB",
        "CPU-s / 1000",
        "samples/s",
        "utilisation at 10 ms",
        "p99 wait, ms",
    )
    print("\n" + timing.table(header, rows))


def behaviour(work: Path, toggle: Toggle) -> Behaviour:
    """Open a cache, take a batch, go through an epoch twice, and feed a simulated accelerator."""
    from myxtts.data.batches import graph_reader

    before = timing.anonymous_megabytes()
    began = time.perf_counter()
    stores = named_stores(work, toggle.dtype)
    cache = open_cache(*stores, mapped=toggle.mapped, in_memory=toggle.in_memory)
    lengths = (cache.text_lengths, cache.mel_lengths)
    plan = plan_epoch(*lengths, BatchOptions(batch_size=BATCH_SIZE))
    options = graph_reader.ReaderOptions(
        native=toggle.native, overlap=toggle.overlap, prefetch=toggle.prefetch
    )
    batches = graph_reader.cached_batches(cache, plan, options)
    next(iter(batches))
    first = time.perf_counter() - began
    most = [before]
    count = len(timing.planned(plan))
    timing.measure(lambda: _watching(batches, most), count)
    cost = timing.measure(lambda: batches, count)
    stall = timing.simulate(lambda: islice(batches, STALL_BATCHES), 0.01)
    return Behaviour(first, max(most) - before, cost, stall)


def verification_seconds(work: Path, dtype: str) -> float:
    """What checking every checksum of the stores takes."""
    began = time.perf_counter()
    problems = [problem for store in named_stores(work, dtype) for problem in store.verify()]
    if problems:
        raise SystemExit(f"the synthetic cache is damaged: {problems[0]}; delete it")
    return time.perf_counter() - began


def _watching(batches, most: list[float]) -> Iterator:
    for batch in batches:
        most.append(timing.anonymous_megabytes())
        yield batch


def _warm(cache: PackedCache) -> None:
    """Have the kernel hold the cache in memory, so that no disk is measured."""
    for data in cache.columns.values():
        data.array.reshape(-1).view(np.uint8)[::4096].sum()


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _show(bars: list[Target]) -> list[Target]:
    for bar in bars:
        print(bar)
    return bars


if __name__ == "__main__":
    main()
