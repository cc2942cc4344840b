"""Old name of `myxtts config create` (--mode create-config), and of `create_default_config`."""

import sys

from myxtts.cli.train_test_file import main
from myxtts.config.presets import create_default_config as create_default_config

if __name__ == "__main__":
    sys.exit(main())
