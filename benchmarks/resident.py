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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from input_pipeline import BATCH_SIZE, memcpy
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.resident_loader import ResidentLoader, calls_of, copied
from myxtts.bench.synthetic_cache import LJSPEECH_UTTERANCES, make_stores, named_stores
from myxtts.bench.timing import Cost, Target
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.store.packed_cache import PackedCache, open_cache

if TYPE_CHECKING:
    from myxtts.data.batches.residence import Residence

BAR = 0.2


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
    make_stores(work, asked.utterances, "float16")
    cache = open_cache(*named_stores(work, "float16"))
    many = asked.steps_per_call
    residence = copied(cache, share=1.0)
    if residence is None:
        raise SystemExit("there is no room for a second copy of the cache: lower --utterances")
    variants: dict[str, Callable[[], Cost]] = {}
    plan = plan_of(cache, 1)
    count = len(timing.planned(plan))
    variants["memcpy"] = lambda: timing.measure(partial(memcpy, cache, plan), count)
    variants["native reader"] = lambda: timing.measure(partial(by_host, cache, plan), count)
    for steps in (1, many):
        for name, is_empty in (("with the gather", False), ("the host's part", True)):
            one = on_device(residence, cache, steps, is_empty)
            title = f"resident, {steps} a call, {name}"
            variants[title] = partial(timing.measure, one, count)
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
    residence: "Residence", cache: PackedCache, steps: int, is_empty: bool
) -> ResidentLoader:
    """An epoch of the cache that a residence holds; empty where nothing is to be gathered."""
    plan = plan_of(cache, steps)
    calls = calls_of(plan, steps)
    if is_empty:
        nothing = np.zeros(len(plan), np.int32)
        plan = BatchPlan(plan.order, plan.bounds, nothing, nothing)
    return ResidentLoader(residence, cache, plan, calls)


def by_host(cache: PackedCache, plan: BatchPlan) -> Iterator:
    from myxtts.data.batches import graph_reader

    return iter(graph_reader.cached_batches(cache, plan, graph_reader.ReaderOptions()))


def _row(name: str, costs: list[Cost], limit: list[Cost]) -> tuple[str, ...]:
    cost = timing.median_cost(costs)
    ratio = timing.cpu_ratio(costs, limit)
    each = 1e6 * cost.cpu_seconds / max(1, -(-cost.utterances // BATCH_SIZE))
    return name, f"{cost.cpu_per_1000:.4f}", f"{ratio:.3f}", f"{each:,.0f}"


if __name__ == "__main__":
    main()
