"""`myxtts download`: fetch a public corpus."""

import argparse
import shlex

from myxtts.cli.terminal import add_command
from myxtts.config.config import DataConfig
from myxtts.monitoring.progress import stage_progress


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("download", help="fetch a public corpus")
    corpora = verb.add_subparsers(metavar="CORPUS", required=True)
    about = "fetch LJSpeech (24 h, one speaker, 2.8 GB), verified and resumable"
    parser = add_command(corpora, "ljspeech", about, ljspeech)
    default = DataConfig.dataset_path
    parser.add_argument("target", metavar="TARGET", nargs="?", default=default, help="where to")


def ljspeech(args: argparse.Namespace) -> None:
    from myxtts.data.corpus.download import download_ljspeech

    with stage_progress(in_bytes=("download",)) as report:
        target = download_ljspeech(args.target, progress=report)
    print(f"LJSpeech is in {target}; next: myxtts prepare {shlex.quote(str(target))}")
