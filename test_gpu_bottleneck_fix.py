"""Whether the settings against a starved GPU are in force: a program, see --help."""

import sys
from pathlib import Path

from myxtts.cli.checks import bottleneck_fix

if __name__ == "__main__":
    sys.exit(bottleneck_fix(Path(__file__).with_name("config_gpu_bottleneck_fix.yaml")))
