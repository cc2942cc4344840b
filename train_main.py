"""Old name of `myxtts train`."""

import sys

from myxtts.cli.train import build_config as build_config
from myxtts.cli.train import main
from myxtts.cli.train import parse_args as parse_args

if __name__ == "__main__":
    sys.exit(main())
