"""What cores, memory, disks and GPUs do while something trains: a program, see --help."""

import sys

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.commands.monitor"))
