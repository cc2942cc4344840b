"""Old name of `myxtts train`."""

import sys

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.commands.train"))
from myxtts.cli.commands.train import build_config, main, parse_args  # noqa: E402, F401
