"""Old name of `myxtts synthesize`."""

import sys

from myxtts.cli.synthesize import main

if __name__ == "__main__":
    sys.exit(main())
