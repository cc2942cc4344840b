"""Whether an utterance costs the same among a million as among a thousand, and start-up.

    python benchmarks/scale.py [--work FOLDER] [--sizes 1000 10000 100000 1000000] [--rounds 5]

The stores are complete but for one thing: all shards share the data files of one real shard of
1,000 utterances through hard links. Every shard has an index of its own, with ids, keys and texts.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.synthetic_cache import make_index, named_stores
from myxtts.bench.timing import Target
from myxtts.data.batches.plan import BatchOptions, plan_epoch
from myxtts.data.store.packed_cache import open_cache

BATCH_SIZE = 48
# As many batches as the smallest corpus has: every utterance is touched once at every size.
BATCHES = 20
DTYPE = "float16"


@dataclass(frozen=True)
class Found:
    """What one fresh process measured."""

    open_seconds: float
    plan_seconds: float
    first_batch_seconds: float
    start_up_cpu_seconds: float
    cpu_per_1000: float
    plan_cpu_per_1000: float

    @property
    def start_up_seconds(self) -> float:
        return self.open_seconds + self.plan_seconds + self.first_batch_seconds

    @property
    def total_cpu_per_1000(self) -> float:
        return self.cpu_per_1000 + self.plan_cpu_per_1000


def main() -> None:
    run_in_work(run, _parse())


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Make the stores, measure both readers at every size, print it, and return the bars."""
    sizes, rounds = asked.sizes, asked.rounds
    for size in sizes:
        make_index(work / f"{size}", work / "template", size, DTYPE)
    variants: dict[tuple[str, int], Callable] = {
        (reader, size): partial(timing.in_fresh_process, look, work, size, reader)
        for reader in ("native", "host")
        for size in sizes
    }
    results = timing.interleaved(variants, rounds)
    print(
        f"\n{DTYPE}, batches of {BATCH_SIZE}; {BATCHES} batches from a mapping that was just made; "
        f"medians of {rounds} rounds, each in a process of its own; importing is not counted"
    )
    print(timing.table(_HEADER, [_row(*key, found) for key, found in results.items()]))
    bars = _bars(results, sizes)
    for bar in bars:
        print(bar)
    return bars


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the synthetic stores here, and reuse them")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


# Measuring


def look(work: Path, size: int, reader: str) -> Found:
    """Open, plan, take the first batch, then a few more."""
    from myxtts.data.batches import graph_reader

    stores = named_stores(work / f"{size}", DTYPE)
    began = timing.cpu_seconds()
    times = [time.perf_counter()]
    cache = open_cache(*stores)
    times.append(time.perf_counter())
    cpu = timing.cpu_seconds()
    options = BatchOptions(batch_size=BATCH_SIZE)
    plan = plan_epoch(cache.text_lengths, cache.mel_lengths, options)
    plan_cpu = timing.cpu_seconds() - cpu
    times.append(time.perf_counter())
    batches = graph_reader.cached_batches(
        cache, plan, graph_reader.ReaderOptions(native=reader == "native")
    )
    source = iter(batches)
    next(source)
    times.append(time.perf_counter())
    start_up_cpu = timing.cpu_seconds() - began
    del source
    count = int(plan.sizes[:BATCHES].sum())
    cost = timing.measure(lambda: islice(batches, BATCHES), count)
    waited = np.diff(times).tolist()
    return Found(*waited, start_up_cpu, cost.cpu_per_1000, 1e3 * plan_cpu / size)


_HEADER = (
    "reader",
    "utterances",
    "open, s",
    "plan, s",
    "first batch, s",
    "start-up, s",
    "start-up, CPU-s",
    "deliver, CPU-s / 1000",
    "plan, CPU-s / 1000",
)


def _row(reader: str, size: int, found: list[Found]) -> tuple[str, ...]:
    return (
        reader,
        f"{size:,}",
        f"{_median(found, 'open_seconds'):.3f}",
        f"{_median(found, 'plan_seconds'):.3f}",
        f"{_median(found, 'first_batch_seconds'):.3f}",
        f"{_median(found, 'start_up_seconds'):.3f}",
        f"{_median(found, 'start_up_cpu_seconds'):.3f}",
        f"{_median(found, 'cpu_per_1000'):.4f}",
        f"{_median(found, 'plan_cpu_per_1000'):.4f}",
    )


def _bars(results: dict[tuple[str, int], list[Found]], sizes: list[int]) -> list[Target]:
    bars, smallest = [], min(sizes)
    for reader in ("native", "host"):
        ratios = [_ratio(results[reader, size], results[reader, smallest]) for size in sizes]
        what = f"{reader} reader, CPU an utterance at any size over that at {smallest:,}"
        bars.append(Target(what, max(ratios), 1.2))
        what = f"{reader} reader, start-up at {max(sizes):,} utterances"
        seconds = _median(results[reader, max(sizes)], "start_up_seconds")
        bars.append(Target(what, seconds, 3, unit="s"))
    return bars


def _ratio(found: list[Found], reference: list[Found]) -> float:
    pairs = zip(found, reference, strict=True)
    return statistics.median(a.total_cpu_per_1000 / b.total_cpu_per_1000 for a, b in pairs)


def _median(found: list[Found], name: str) -> float:
    return statistics.median(getattr(one, name) for one in found)


if __name__ == "__main__":
    main()
