"""Every target of speed beside what this machine does: a program, see --help."""

import sys

from myxtts.cli.bench import main

if __name__ == "__main__":
    sys.exit(main())
