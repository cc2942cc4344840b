"""`myxtts bench`: the acceptance test of speed, or how fast a corpus becomes batches."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from myxtts import atomic
from myxtts.cli import terminal
from myxtts.cli.settings import (
    DATA_FIELDS,
    add_corpus,
    add_settings,
    check_corpus,
    corpus_config,
)
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.flags import flag_values
from myxtts.config.io import resolve
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

QUICK = {"step_ms": (20,)}
ABOUT = (
    "this machine, the three modes and the loader's switches side by side, graph against eager, "
    "and every target of speed next to what was measured"
)
PROGRAM = "benchmark_gpu_utilization.py"
CORPUS, CLAUSES = "./data/gpu_benchmark", 400
BATCH_SIZE, MODEL_SIZE = 16, "tiny"
NOT_MET = 1  # exit code


def add(verbs: argparse._SubParsersAction) -> None:
    verb = add_command(verbs, "bench", ABOUT, acceptance)
    add_options(verb)
    subjects = verb.add_subparsers(metavar="SUBJECT", action=_Subjects)
    about = "samples per second, CPU per 1000, and the stall at simulated step times"
    parser = add_command(subjects, "data", about, data)
    verb.usage = "%(prog)s [options] [settings]\n       %(prog)s data [options] [settings] [CORPUS]"
    add_corpus(parser)
    parser.add_argument("--quick", action="store_true", help="simulate one step time only")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `myxtts bench` under its older name."""
    parser = terminal.Parser(PROGRAM, description=ABOUT)
    add_options(parser)
    terminal.add_verbose(parser)
    return terminal.run(acceptance, parser.parse_args(argv))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the acceptance test takes; each mode is measured, so that none can be chosen."""
    about = "simulate steps of so long (0: take the real one; default: 20 where there is no GPU)"
    parser.add_argument("--simulate-step-ms", type=float, metavar="MS", help=about)
    parser.add_argument("--quick", action="store_true", help="a few batches: figures are rough")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    fields = [field for field in DATA_FIELDS if field != "data.preprocessing_mode"]
    add_settings(parser, (*fields, "model.model_size"))
    parser.epilog = (
        "Without --data the built-in corpus is made in ./data/gpu_benchmark. Unless set, batches "
        "are of 16 and the model is tiny. Caches are made in a temporary folder (in --cache-dir "
        "if given) and removed. The exit code is 1 where a bar or a target is not met; what cannot "
        "be measured here does not count."
    )


def acceptance(args: argparse.Namespace) -> int:
    """Measure, print, and end with the targets; 1 where one is not met.

    What could not be measured here is no failure.
    """
    _check(args)
    from myxtts.bench.acceptance import FULL, QUICK, as_json, measure
    from myxtts.bench.targets import mode_targets, summary, targets, unmet
    from myxtts.bench.timing import describe_machine

    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    machine = describe_machine()
    config = settle(args)
    print(f"command: {command}\nmachine: {machine}", flush=True)
    import_tensorflow()
    show = partial(print, flush=True)
    found = measure(config, args.simulate_step_ms, QUICK if args.quick else FULL, show)
    aims = targets(found)
    missed = unmet([*mode_targets(found), *aims])
    named = ["NOT met: " + "; ".join(missed)] if missed else []
    print("\n".join(["", *map(str, mode_targets(found)), *map(str, aims), *named, summary(aims)]))
    if args.json:
        facts = {"command": command, "machine": machine, **as_json(found)}
        atomic.write_output(args.json, f"{json.dumps(facts, indent=2)}\n".encode())
    return NOT_MET if missed else 0


def settle(args: argparse.Namespace) -> XTTSConfig:
    """Settle every setting; where no corpus is named, make the built-in one if need be."""
    resolved = resolve(args.config, flag_values(args), preset=MODEL_SIZE)
    chosen: dict[str, Any] = {}
    if resolved.origins["data.batch_size"].startswith(("default", "preset")):
        chosen["batch_size"] = BATCH_SIZE
    if resolved.origins["data.dataset_path"] == "default":
        chosen["data_path"] = make_built_in(CORPUS, CLAUSES)
    config = resolved.config.replace(**chosen)
    check_corpus(config.data)
    return config


def make_built_in(folder: str, clauses: int) -> str:
    """Make a built-in corpus of one voice, unless it is there."""
    from myxtts.demo_corpus.corpus import make_demo

    with progress("speaking") as report:
        return str(make_demo(Path(folder), speakers=1, clauses=clauses, progress=report))


def _check(args: argparse.Namespace) -> None:
    """Refuse what would be found out only after minutes."""
    step_ms, file = args.simulate_step_ms, args.json
    if step_ms is not None and not 0 <= step_ms < float("inf"):
        raise UserError(f"--simulate-step-ms must be 0 or more, not {step_ms}")
    if file and (file.is_dir() or not os.access(file.parent, os.W_OK)):
        raise UserError(f"--json {file} cannot be written: name a file in a folder that can be")


def data(args: argparse.Namespace) -> None:
    config = corpus_config(args)
    import_tensorflow()
    from myxtts.bench.loaders import bench_data

    with progress("measuring") as report:
        result = bench_data(config, progress=report, **(QUICK if args.quick else {}))
    print(result)


class _Subjects(argparse._SubParsersAction):
    """Subjects of a verb that has options itself: one before the subject would be lost."""

    def __call__(self, parser, namespace, values, option_string=None):
        kept = {"verbose"}  # has no default that could overwrite it
        lost = [
            name
            for name, value in vars(namespace).items()
            if name not in kept and value != parser.get_default(name)
        ]
        if lost:
            parser.error(f"options go behind the subject {values[0]!r}, not before it")
        super().__call__(parser, namespace, values, option_string)
