"""`myxtts bench`: measure how fast a corpus becomes batches, and how long a step waits for them."""

import argparse

from myxtts.cli.progress import progress
from myxtts.cli.settings import add_corpus, corpus_config
from myxtts.cli.terminal import add_command, import_tensorflow

QUICK = {"step_ms": (20,)}


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("bench", help="measure the way from a corpus to batches")
    subjects = verb.add_subparsers(metavar="SUBJECT", required=True)
    about = "samples per second, CPU per 1000, and the stall at simulated step times"
    parser = add_command(subjects, "data", about, data)
    add_corpus(parser)
    parser.add_argument("--quick", action="store_true", help="simulate one step time only")


def data(args: argparse.Namespace) -> None:
    config = corpus_config(args)
    import_tensorflow()
    from myxtts.data.bench import bench_data

    with progress("measuring") as report:
        result = bench_data(config, progress=report, **(QUICK if args.quick else {}))
    print(result)
