"""`myxtts bench`: the acceptance test of speed, or how fast a corpus becomes batches."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from myxtts import atomic
from myxtts.cli import terminal
from myxtts.cli.settings import DATA_FIELDS, add_corpus, add_settings, check_corpus, corpus_config
from myxtts.cli.terminal import add_command, import_tensorflow, print_line
from myxtts.config.flags import flag_values
from myxtts.config.io import resolve
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

QUICK = {"step_ms": (20,)}
ABOUT = (
    "this machine, the three modes and the loader's switches side by side, graph against eager, "
    "and every target of speed next to what was measured"
)


def add(verbs: argparse._SubParsersAction) -> None:
    verb = add_command(verbs, "bench", ABOUT, acceptance)
    add_options(verb)
    subjects = verb.add_subparsers(metavar="SUBJECT", action=terminal.Subjects)
    about = "samples per second, CPU per 1000, and the stall at simulated step times"
    parser = add_command(subjects, "data", about, data)
    verb.usage = "%(prog)s [options] [settings]\n       %(prog)s data [options] [settings] [CORPUS]"
    add_corpus(parser)
    parser.add_argument("--quick", action="store_true", help="simulate one step time only")


def main(argv: Sequence[str] | None = None) -> int:
    """The program `benchmark_gpu_utilization.py`."""
    args = terminal.parse_program("benchmark_gpu_utilization.py", ABOUT, add_options, argv)
    return terminal.run(acceptance, args)


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
    """Measure, print, and end with the targets; 1 where one is not met."""
    from myxtts.bench import acceptance
    from myxtts.bench.timing import describe_machine

    terminal.check_least(args, simulate_step_ms=0)
    if args.json and (args.json.is_dir() or not os.access(args.json.parent, os.W_OK)):
        raise UserError(f"--json {args.json} cannot be written: name a file in a folder that can")
    command, machine = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), describe_machine()
    resolved = resolve(args.config, flag_values(args), preset=acceptance.MODEL_SIZE)
    config = acceptance.settle(resolved)
    check_corpus(config.data)
    print_line(f"command: {command}\nmachine: {machine}")
    import_tensorflow()
    effort = acceptance.QUICK if args.quick else acceptance.FULL
    found = acceptance.measure(config, args.simulate_step_ms, effort, print_line)
    text, is_met = acceptance.conclude(found)
    print(f"\n{text}")
    if args.json:
        facts = {"command": command, "machine": machine, **acceptance.as_json(found)}
        atomic.write_output(args.json, f"{json.dumps(facts, indent=2)}\n".encode())
    return terminal.OK if is_met else terminal.FAILED


def data(args: argparse.Namespace) -> None:
    config = corpus_config(args)
    import_tensorflow()
    from myxtts.bench.loaders import bench_data

    with progress("measuring") as report:
        print(bench_data(config, progress=report, **(QUICK if args.quick else {})))
