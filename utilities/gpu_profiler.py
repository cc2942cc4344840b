"""What holds training back, measured: old name of `myxtts profile`."""

import sys

sys.path.insert(0, f"{sys.path[0]}/..")

from myxtts.cli.interrupts import run_program  # noqa: E402

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.commands.profile"))
