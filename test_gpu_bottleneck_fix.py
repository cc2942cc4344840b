"""Whether the settings against a starved GPU are in force: a program, see --help."""

import sys
from pathlib import Path

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    file = Path(__file__).with_name("config_gpu_bottleneck_fix.yaml")
    sys.exit(run_program("myxtts.cli.programs", "bottleneck_fix", file))
