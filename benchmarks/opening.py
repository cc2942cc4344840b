"""How benchmarks begin, and how those with bars end."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from myxtts.bench import timing
from myxtts.bench.timing import Target


def parse_with_flags(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[str]]:
    """What is asked for, and the words behind `--`, which are flags of another command."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:at]), words[at + 1 :]


def run_in_work(
    run: Callable[[Path, argparse.Namespace], Sequence[Target]], asked: argparse.Namespace
) -> None:
    """Say what is run and where, run it in --work or a temporary folder, and count its bars."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    folder = nullcontext(asked.work) if asked.work else tempfile.TemporaryDirectory()
    with folder as work:
        bars = run(Path(work), asked)
    print(f"\n{sum(bar.is_met for bar in bars)} of {len(bars)} bars met")
