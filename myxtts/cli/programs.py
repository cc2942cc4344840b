"""The programs at the root of the project that check and measure loading."""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli import terminal
from myxtts.cli.settings import check_corpus, resolve_settings
from myxtts.config.config import DataConfig
from myxtts.config.flags import add_flags
from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.bench.checks import Check

FAILED = 1  # exit code
TEST_DATA, TEST_CLAUSES = "./data/performance_test", 200


def bottleneck_fix(settings: Path, argv: Sequence[str] | None = None) -> int:
    """`test_gpu_bottleneck_fix.py`, about the settings in a file."""
    about = "check that batches reach the step without a call of Python per utterance"

    def find(folder: Path) -> "Iterable[Check]":
        from myxtts.bench.checks import check_loading
        from myxtts.config.io import load_config

        return check_loading(load_config(settings), settings.name, folder)

    return _check("test_gpu_bottleneck_fix.py", about, argv, find)


def gpu_utilization(argv: Sequence[str] | None = None) -> int:
    """`test_gpu_utilization.py`."""
    about = "check that an accelerator is busy at least 70 % of the time"

    def find(folder: Path) -> "Iterable[Check]":
        from myxtts.bench.checks import check_utilisation

        return check_utilisation(folder)

    return _check("test_gpu_utilization.py", about, argv, find)


def performance(argv: Sequence[str] | None = None) -> int:
    """`test_performance.py`."""
    about = "how fast batches are loaded, and what holds them up"
    parser = terminal.Parser("test_performance.py", description=about)
    make = f"make the built-in corpus first, in --test-data-path (default: {TEST_DATA})"
    parser.add_argument("--create-test-data", action="store_true", help=make)
    about = f"the corpus to load (default: {DataConfig.dataset_path})"
    parser.add_argument("--test-data-path", metavar="CORPUS", dest="corpus", help=about)
    about = "how many batches to load (default: %(default)s)"
    parser.add_argument("--num-batches", type=int, default=100, metavar="N", help=about)
    add_flags(parser, ["data.batch_size"])
    terminal.add_verbose(parser)
    parser.set_defaults(config=None)
    return terminal.run(_measure, parser.parse_args(argv))


def _measure(args: argparse.Namespace) -> None:
    from myxtts.bench.performance import describe, measure
    from myxtts.cli.commands.bench import make_built_in
    from myxtts.data.features.corpora import read_parts
    from myxtts.workflows.prepare import prepare_part

    if args.num_batches < 2:
        raise UserError(f"--num-batches must be at least 2, got {args.num_batches}")
    if args.create_test_data:
        args.corpus = make_built_in(args.corpus or TEST_DATA, TEST_CLAUSES)
    config = resolve_settings(args).config
    check_corpus(config.data)
    # What is measured is reading the cache, as every epoch but the first does.
    for part in read_parts(config.data):
        prepare_part(part, config.data, print)
    terminal.import_tensorflow()  # before the clock runs
    print(describe(measure(config, args.num_batches)))


def _check(
    name: str, about: str, argv: Sequence[str] | None, find: "Callable[[Path], Iterable[Check]]"
) -> int:
    parser = terminal.Parser(name, description=about)
    terminal.add_verbose(parser)

    def run(args: argparse.Namespace) -> int:
        terminal.import_tensorflow()
        from myxtts.bench.checks import describe

        with tempfile.TemporaryDirectory(prefix="myxtts-check-") as folder:
            checks = list(find(Path(folder)))
        print(f"{name}: {about}\n{describe(checks)}")
        return FAILED if any(one.holds is False for one in checks) else 0

    return terminal.run(run, parser.parse_args(argv))
