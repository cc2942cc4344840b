"""The programs at the root of the project that check and measure loading."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from myxtts.cli import terminal
from myxtts.cli.settings import corpus_config
from myxtts.config.config import DataConfig
from myxtts.config.flags import add_flags

TEST_DATA, TEST_CLAUSES = "./data/performance_test", 200


def bottleneck_fix(settings: Path, argv: Sequence[str] | None = None) -> int:
    """`test_gpu_bottleneck_fix.py`, about the settings in a file."""
    about = "check that batches reach the step without a call of Python per utterance"
    return _check("test_gpu_bottleneck_fix.py", about, argv, "check_loading", settings)


def gpu_utilization(argv: Sequence[str] | None = None) -> int:
    """`test_gpu_utilization.py`."""
    about = "check that an accelerator is busy at least 70 % of the time"
    return _check("test_gpu_utilization.py", about, argv, "check_utilisation")


def performance(argv: Sequence[str] | None = None) -> int:
    """`test_performance.py`."""
    about = "how fast batches are loaded, and what holds them up"
    args = terminal.parse_program("test_performance.py", about, _add_performance, argv)
    return terminal.run(_measure, args)


def _add_performance(parser: argparse.ArgumentParser) -> None:
    make = f"make the built-in corpus first, in --test-data-path (default: {TEST_DATA})"
    parser.add_argument("--create-test-data", action="store_true", help=make)
    about = f"the corpus to load (default: {DataConfig.dataset_path})"
    parser.add_argument("--test-data-path", metavar="CORPUS", dest="corpus", help=about)
    about = "how many batches to load (default: %(default)s)"
    parser.add_argument("--num-batches", type=int, default=100, metavar="N", help=about)
    add_flags(parser, ["data.batch_size"])
    parser.set_defaults(config=None)


def _measure(args: argparse.Namespace) -> None:
    from myxtts.bench.acceptance import make_built_in
    from myxtts.bench.performance import describe, measure
    from myxtts.data.features.corpora import read_parts
    from myxtts.workflows.prepare import prepare_part

    terminal.check_least(args, num_batches=2)
    if args.create_test_data:
        args.corpus = make_built_in(args.corpus or TEST_DATA, TEST_CLAUSES)
    config = corpus_config(args)
    # What is measured is reading the cache, as every epoch but the first does.
    for part in read_parts(config.data):
        prepare_part(part, config.data, print)
    terminal.import_tensorflow()  # before the clock runs
    print(describe(measure(config, args.num_batches)))


def _check(
    name: str, about: str, argv: Sequence[str] | None, function: str, *arguments: Path
) -> int:
    """Run a function of `bench.checks` in a temporary folder; 1 where a check does not hold."""

    def run(args: argparse.Namespace) -> int:
        terminal.import_tensorflow()
        from myxtts.bench import checks

        with tempfile.TemporaryDirectory(prefix="myxtts-check-") as folder:
            found = list(getattr(checks, function)(*arguments, Path(folder)))
        print(f"{name}: {about}\n{checks.describe(found)}")
        return terminal.FAILED if any(one.holds is False for one in found) else 0

    return terminal.run(run, terminal.parse_program(name, about, lambda parser: None, argv))
