"""The program `trainTestFile.py`, mode by mode."""

import argparse
from collections.abc import Sequence

from myxtts.cli import config, terminal
from myxtts.cli.settings import add_settings

MODES = {"create-config": config.create}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("trainTestFile.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("--mode", choices=tuple(MODES), required=True, help="what to do")
    parser.add_argument("--output", metavar="FILE", default=config.OUTPUT, help="where to write")
    add_settings(parser)
    terminal.add_verbose(parser)
    args = parser.parse_args(argv)
    return terminal.run(MODES[args.mode], args)
