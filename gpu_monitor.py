"""What cores, memory, disks and GPUs do while something trains: a program, see --help."""

import sys

from myxtts.cli.monitor import main

if __name__ == "__main__":
    sys.exit(main())
