"""Old name of `myxtts train`, `synthesize` and `config create`, and of `create_default_config`."""

import sys

from myxtts.cli.train_test_file import main
from myxtts.config.presets import create_default_config as create_default_config

if __name__ == "__main__":
    sys.exit(main())
