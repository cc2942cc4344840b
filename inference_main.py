"""Old name of `myxtts synthesize`."""

import sys

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.commands.synthesize"))
