"""What the host has left to do where the cache lies on the device.

    python benchmarks/resident.py [--work FOLDER] [--utterances 13100] [--steps-per-call 16]

A synthetic cache of the size of LJSpeech is copied to a device once, which is not counted, and then
gathered there: a batch at a time, and up to `--steps-per-call` batches of one shape at a time.
There is no GPU here: the CPU stands in for it. The gather itself, which a GPU does, is taken out by
plans of the same utterances in the same batches and calls, but padded to no frames and no tokens:
the same operations are started on the same rows of the plan, and move next to nothing. What is left
is the host's. All variants take turns in one run, next to a memcpy of the bytes that real batches
have.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from input_pipeline import BATCH_SIZE, memcpy
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.synthetic_cache import LJSPEECH_UTTERANCES, make_stores, named_stores
from myxtts.bench.timing import Cost, Target
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.store.packed_cache import PackedCache, open_cache

BAR = 0.2


@dataclass(frozen=True)
class Resident:
    """An epoch of a cache on the device, and how many batches each call of a run would take."""

    cache: PackedCache
    plan: BatchPlan
    calls: list[int]
    batches: Callable[[], Iterator]


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    run_in_work(run, _parse())


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the synthetic cache here, and reuse it")
    parser.add_argument("--utterances", type=int, default=LJSPEECH_UTTERANCES)
    parser.add_argument("--steps-per-call", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Measure every variant in turn, print the table, and return the bars."""
    from myxtts.data.batches import resident

    make_stores(work, asked.utterances, "float16")
    cache = open_cache(*named_stores(work, "float16"))
    many = asked.steps_per_call
    residence = resident.Residence(resident.arrays_of(cache), "/CPU:0")
    residence.count()
    residence.wait()
    variants: dict[str, Callable[[], Cost]] = {}
    plan = plan_of(cache, 1)
    count = len(timing.planned(plan))
    variants["memcpy"] = lambda: timing.measure(partial(memcpy, cache, plan), count)
    variants["native reader"] = lambda: timing.measure(partial(by_host, cache, plan), count)
    for steps in (1, many):
        for name, is_empty in (("with the gather", False), ("the host's part", True)):
            one = on_device(residence, cache, plan_of(cache, steps), steps, is_empty)
            title = f"resident, {steps} a call, {name}"
            variants[title] = partial(timing.measure, partial(taken, one), count)
        print(f"{steps} a call at most: {len(one.calls):,} calls for {len(plan):,} batches")
    for measure in variants.values():
        measure()  # tracing, and the pages of the cache
    results = timing.interleaved(variants, asked.rounds)
    print(
        f"\n{count:,} utterances in {len(plan):,} batches of {BATCH_SIZE}, stored as float16; "
        f"medians of {asked.rounds} rounds"
    )
    rows = [_row(name, costs, results["memcpy"]) for name, costs in results.items()]
    print(timing.table(("batches", "CPU-s / 1000", "x memcpy", "CPU-us a batch"), rows))
    bars = []
    for steps in (1, many):
        costs = results[f"resident, {steps} a call, the host's part"]
        what = f"the host's CPU, {steps} a call, over a memcpy of the same bytes"
        bars.append(Target(what, timing.cpu_ratio(costs, results["memcpy"]), BAR))
    for bar in bars:
        print(bar)
    return bars


def plan_of(cache: PackedCache, steps: int) -> BatchPlan:
    """An epoch, with neighbours of one shape where calls take several."""
    options = BatchOptions(batch_size=BATCH_SIZE, alike=steps)
    return plan_epoch(cache.text_lengths, cache.mel_lengths, options)


def on_device(
    residence: Any, cache: PackedCache, plan: BatchPlan, steps: int, is_empty: bool
) -> Resident:
    """An epoch of the cache that a residence holds; empty where nothing is to be gathered."""
    from myxtts.data.batches import graph_reader, resident

    calls = calls_of(plan, steps)
    if is_empty:
        nothing = np.zeros(len(plan), np.int32)
        plan = BatchPlan(plan.order, plan.bounds, nothing, nothing)
    options = graph_reader.ReaderOptions()
    make_epoch = partial(resident.utterance_epoch, cache, options)
    make = partial(resident.switching, residence, plan, partial(by_host, cache), make_epoch)
    return Resident(cache, plan, calls, make)


def calls_of(plan: BatchPlan, steps: int) -> list[int]:
    """How many batches of one shape in a row each call takes."""
    shapes = list(zip(plan.sizes.tolist(), plan.frames.tolist(), strict=True))
    calls, at = [], 0
    while at < len(shapes):
        alike = takewhile(lambda one, own=shapes[at]: one == own, shapes[at : at + steps])
        calls.append(len(list(alike)))
        at += calls[-1]
    return calls


def by_host(cache: PackedCache, plan: BatchPlan) -> Iterator:
    from myxtts.data.batches import graph_reader

    return iter(graph_reader.cached_batches(cache, plan, graph_reader.ReaderOptions()))


def taken(one: Resident) -> Iterator:
    """An epoch's batches as a run takes them: through its thread, and by so many a call."""
    from myxtts.data.batches import resident
    from myxtts.data.batches.readers import in_background

    batches = in_background(one.batches(), 4)
    for size in one.calls:
        group = list(islice(batches, size))
        yield group[0].tensors() if max(one.calls) == 1 else resident.stacked(group)


def _row(name: str, costs: list[Cost], limit: list[Cost]) -> tuple[str, ...]:
    cost = timing.median_cost(costs)
    ratio = timing.cpu_ratio(costs, limit)
    each = 1e6 * cost.cpu_seconds / max(1, -(-cost.utterances // BATCH_SIZE))
    return name, f"{cost.cpu_per_1000:.4f}", f"{ratio:.3f}", f"{each:,.0f}"


if __name__ == "__main__":
    main()
