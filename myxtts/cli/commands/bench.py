"""`myxtts bench`: the acceptance test of speed, or how fast a corpus becomes batches."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from myxtts.cli import terminal
from myxtts.cli.settings import DATA_FIELDS, add_corpus, add_settings, corpus_config
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.monitoring.progress import progress

QUICK = {"step_ms": (20,)}
ABOUT = (
    "this machine, the three modes and the loader's switches side by side, graph against eager, "
    "and every target of speed beside what was measured"
)
PROGRAM = "benchmark_gpu_utilization.py"


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
    from myxtts.cli.acceptance import run

    return run(args)


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
