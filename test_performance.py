"""How fast batches come, and what holds them up: a program, see --help."""

import sys

from myxtts.cli.performance import main

if __name__ == "__main__":
    sys.exit(main())
