"""How fast batches come, and what holds them up: a program, see --help."""

import sys

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.programs", "performance"))
