"""The program `test_performance.py`: how fast batches come, and what holds them up."""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from myxtts.cli import terminal
from myxtts.cli.settings import check_corpus, resolve_settings
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.flags import add_flags
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.monitoring.verdict import GOOD_MS, loading_grade

FULL_PERCENT = 90.0
TEST_DATA, TEST_CLAUSES = "./data/performance_test", 200


@dataclass(frozen=True)
class Measurement:
    """What loading some batches cost; the first one, which opens everything, stands apart."""

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


def main(argv: Sequence[str] | None = None) -> int:
    about = __doc__.partition(": ")[2]
    parser = terminal.Parser("test_performance.py", description=about)
    make = f"make the built-in corpus first, in --test-data-path (default: {TEST_DATA})"
    parser.add_argument("--create-test-data", action="store_true", help=make)
    about = f"the corpus to load (default: {DataConfig.dataset_path})"
    parser.add_argument("--test-data-path", metavar="CORPUS", dest="corpus", help=about)
    parser.add_argument("--num-batches", type=int, default=100, metavar="N", help="(default: 100)")
    add_flags(parser, ["data.batch_size"])
    terminal.add_verbose(parser)
    parser.set_defaults(config=None)
    return terminal.run(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    if args.num_batches < 2:
        raise UserError(f"--num-batches must be at least 2, got {args.num_batches}")
    if args.create_test_data:
        args.corpus = _create_test_data(args.corpus or TEST_DATA)
    config = resolve_settings(args).config
    check_corpus(config.data)
    _prepare(config.data)
    print(describe(measure(config, args.num_batches)))


def measure(config: XTTSConfig, num_batches: int) -> Measurement:
    """Load batches, epoch after epoch, as fast as they come."""
    import psutil

    terminal.import_tensorflow()  # before the clock runs
    from myxtts.data.batches.training_data import TrainingData

    data = TrainingData(config)
    source = _batches(data)
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


def _create_test_data(target: str) -> str:
    from myxtts.demo_corpus.corpus import make_demo

    with progress("speaking") as report:
        return str(make_demo(target, speakers=1, clauses=TEST_CLAUSES, progress=report))


def _prepare(data: DataConfig) -> None:
    """Fill the cache: what is measured is reading it, as every epoch but the first does."""
    from myxtts.cli.commands.prepare import prepare_part
    from myxtts.cli.corpora import read_parts

    for part in read_parts(data):
        prepare_part(part, data)


def _batches(data) -> Iterator[dict]:
    epoch = 0
    while True:
        yield from data.train_batches(epoch)
        epoch += 1


def _timed_next(source: Iterator[dict]) -> tuple[float, int]:
    """Wait for a batch; return the milliseconds it took and the samples that are in it."""
    began = time.perf_counter()
    batch = next(source)
    return 1e3 * (time.perf_counter() - began), int(batch["mel"].shape[0])
