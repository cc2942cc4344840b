"""`myxtts tune`: how batches are made, read and called for, by short measurements."""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.cli.settings import (
    add_corpus,
    add_simulated_step,
    all_but,
    check_corpus,
    resolve_settings,
)
from myxtts.cli.terminal import add_command, check_least, import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.io import Resolved

if TYPE_CHECKING:
    from myxtts.cluster.rendezvous import Worker


def add(verbs: argparse._SubParsersAction) -> None:
    about = "choose how batches are made, read and called for by measuring, without training"
    parser = add_command(verbs, "tune", about, run)
    add_corpus(parser, all_but("training.auto_tune"))
    about = "write the settings there as YAML (default: print them)"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=about)
    add_simulated_step(parser)
    parser.epilog = (
        "What is given by flag, file or environment is left as it is. `myxtts train --auto-tune` "
        "does the same before a run begins."
    )


def run(args: argparse.Namespace) -> None:
    check_least(args, simulate_step_ms=0)
    resolved = resolve_settings(args)
    check_corpus(resolved.config.data)
    import_tensorflow()
    from myxtts.bench.tuning import tune

    tuning = tune(resolved.config, given=resolved.given, simulate_ms=args.simulate_step_ms)
    print(tuning)
    if args.output:
        tuning.write(args.output)
        print(f"\nwrote {args.output}; train with it: myxtts train --config {args.output}")
    else:
        print(f"\n{tuning.as_yaml()}", end="")


def tuned_for_worker(
    resolved: Resolved, worker: "Worker"
) -> Callable[[XTTSConfig], Mapping[str, Any]]:
    """What chooses how one of several workers loads its share of every batch."""
    from myxtts.bench.tuning import tune_loading

    return partial(tune_loading, given=resolved.given, workers=worker.count)


def tuned_for_run(resolved: Resolved, resume: bool | Path | None) -> XTTSConfig:
    """The settings of a run that tunes itself when it begins; a resumed one has them already."""
    from myxtts.bench.tuning import settle_run, tune

    measure = partial(tune, given=resolved.given)
    return settle_run(resolved.config, resume, resolved.given, measure)
