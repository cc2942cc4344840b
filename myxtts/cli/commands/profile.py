"""`myxtts profile`: what holds training back, by short runs that differ in one thing each."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from myxtts.cli.settings import (
    DATA_FIELDS,
    MODEL_FIELDS,
    add_settings,
    add_simulated_step,
    corpus_config,
)
from myxtts.cli.terminal import add_command, check_least, import_tensorflow, parse_program
from myxtts.cli.terminal import run as run_command

ABOUT = "find out what holds training back: short runs, the verdict, a table and a page"
FOLDER = "runs/profile"
# What else affects the time of a step.
STEP_FIELDS = (
    *("training.gradient_accumulation_steps", "training.enable_eager_debug", "training.seed"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    _add_arguments(add_command(verbs, "profile", ABOUT, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `utilities/gpu_profiler.py`."""
    return run_command(run, parse_program("gpu_profiler.py", ABOUT, _add_arguments, argv))


def run(args: argparse.Namespace) -> None:
    check_least(args, steps=5, simulate_step_ms=0)
    config = corpus_config(args)
    import_tensorflow()
    from myxtts.bench.profile_report import describe, write
    from myxtts.bench.profiling import profile_training

    profile = profile_training(config, steps=args.steps, simulate_ms=args.simulate_step_ms)
    print(describe(profile))
    page = write(profile, args.output, config.data.dataset_path)
    print(f"\nthe page is {page}")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "steps of each run; slow ones end earlier (default: 40)"
    parser.add_argument("--steps", type=int, default=40, metavar="N", help=about)
    add_simulated_step(parser)
    about = f"where the page and the figures go (default: {FOLDER})"
    parser.add_argument(
        "--output", "-o", type=Path, default=Path(FOLDER), metavar="DIR", help=about
    )
    add_settings(parser, (*DATA_FIELDS, *MODEL_FIELDS, *STEP_FIELDS))
