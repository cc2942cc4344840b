"""`myxtts tune`: batch size, reader, workers and prefetch depth by short measurements."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.settings import add_corpus, check_corpus, resolve_settings
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.flags import FLAGS
from myxtts.config.io import Resolved
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.bench.tuning import Tuning

_SWITCH = "training.auto_tune"


def add(verbs: argparse._SubParsersAction) -> None:
    about = "choose reader, workers, prefetch depth and batch size by measuring, without training"
    parser = add_command(verbs, "tune", about, run)
    add_corpus(parser, (flag.field for flag in FLAGS if flag.field != _SWITCH))
    about = "write the settings there as YAML (default: print them)"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=about)
    about = "an accelerator that takes so long stands in for the model"
    parser.add_argument("--simulate-step-ms", type=float, default=0.0, metavar="MS", help=about)
    parser.epilog = (
        "What is given by flag, file or environment is left as it is. `myxtts train --auto-tune` "
        "does the same before a run begins."
    )


def run(args: argparse.Namespace) -> None:
    if args.simulate_step_ms < 0:
        raise UserError(f"--simulate-step-ms must be above 0, got {args.simulate_step_ms}")
    resolved = resolve_settings(args)
    check_corpus(resolved.config.data)
    import_tensorflow()
    tuning = measure(resolved.config, given_settings(resolved), args.simulate_step_ms)
    print(tuning)
    if args.output:
        tuning.write(args.output)
        print(f"\nwrote {args.output}; train with it: myxtts train --config {args.output}")
    else:
        print(f"\n{tuning.as_yaml()}", end="")


def tuned_for_run(resolved: Resolved, resume: bool | Path | None) -> XTTSConfig:
    """The settings of a run that tunes itself when it begins; a resumed one has them already."""
    from myxtts.bench.tuning import settle_run

    given = given_settings(resolved)
    return settle_run(resolved.config, resume, given, lambda config: measure(config, given))


def given_settings(resolved: Resolved) -> dict[str, str]:
    """Who has settled a setting, where somebody has: nothing else is there to be chosen."""
    kinds = ("environment ", "flag ", "file ")
    return {path: by for path, by in resolved.origins.items() if by.startswith(kinds)}


def measure(config: XTTSConfig, given: Mapping[str, str], simulate_ms: float = 0.0) -> "Tuning":
    """Open the corpus and measure, with a progress bar for each."""
    from myxtts.bench.tuning import tune_trainer
    from myxtts.training.trainer import XTTSTrainer

    trainer = XTTSTrainer(config)
    with progress("preparing") as report:
        trainer.prepare_datasets(report)
    with progress("tuning", "measurements") as report:
        return tune_trainer(trainer, simulate_ms=simulate_ms, given=given, report=report)
