"""Old name of `myxtts train`."""

import sys

from myxtts.cli.train import build_config as build_config
from myxtts.cli.train import main

if __name__ == "__main__":
    sys.exit(main())
