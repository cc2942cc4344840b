"""`myxtts profile`: what holds training back, by short runs that differ in one thing each."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from myxtts.cli.settings import (
    DATA_FIELDS,
    MODEL_FIELDS,
    add_settings,
    check_corpus,
    resolve_settings,
)
from myxtts.cli.terminal import Parser, add_command, add_verbose, import_tensorflow
from myxtts.cli.terminal import run as run_command
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

ABOUT = "find out what holds training back: short runs, the verdict, a table and a page"
FOLDER = "runs/profile"
# What else has a say in the time of a step.
STEP_FIELDS = (
    *("training.gradient_accumulation_steps", "training.enable_eager_debug", "training.seed"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    _add_arguments(add_command(verbs, "profile", ABOUT, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `utilities/gpu_profiler.py`."""
    parser = Parser("gpu_profiler.py", description=ABOUT)
    _add_arguments(parser)
    add_verbose(parser)
    return run_command(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    if args.steps < 5:
        raise UserError(f"--steps must be at least 5, got {args.steps}")
    if args.simulate_step_ms < 0:
        raise UserError(f"--simulate-step-ms must be above 0, got {args.simulate_step_ms}")
    config = resolve_settings(args).config
    check_corpus(config.data)
    import_tensorflow()
    from myxtts.bench.profile_report import describe, write
    from myxtts.bench.profiling import profile_training
    from myxtts.training.trainer import XTTSTrainer

    trainer = XTTSTrainer(config)
    with progress("preparing") as report:
        trainer.prepare_datasets(report)
    with progress("profiling", "runs") as report:
        profile = profile_training(
            trainer, steps=args.steps, simulate_ms=args.simulate_step_ms, report=report
        )
    print(describe(profile))
    page = write(profile, args.output, str(config.data.dataset_path))
    print(f"\nthe page is {page}")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "steps of each run; slow ones end earlier (default: 40)"
    parser.add_argument("--steps", type=int, default=40, metavar="N", help=about)
    about = "an accelerator that takes so long stands in for the model"
    parser.add_argument("--simulate-step-ms", type=float, default=0.0, metavar="MS", help=about)
    about = f"where the page and the figures go (default: {FOLDER})"
    parser.add_argument(
        "--output", "-o", type=Path, default=Path(FOLDER), metavar="DIR", help=about
    )
    add_settings(parser, (*DATA_FIELDS, *MODEL_FIELDS, *STEP_FIELDS))
