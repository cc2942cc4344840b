"""Whether loading keeps an accelerator busy: a program, see --help."""

import sys

from myxtts.cli.checks import gpu_utilization

if __name__ == "__main__":
    sys.exit(gpu_utilization())
