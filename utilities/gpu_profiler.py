"""What holds training back, measured: old name of `myxtts profile`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from myxtts.cli.profile import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
