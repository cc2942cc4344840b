"""Old name of `myxtts train`, `synthesize` and `config create`, and of `create_default_config`."""

import sys

from myxtts.cli.interrupts import run_program

if __name__ == "__main__":
    sys.exit(run_program("myxtts.cli.train_test_file"))
from myxtts.config.presets import create_default_config  # noqa: E402, F401
