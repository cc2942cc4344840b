"""Where public weights lie, when somebody has fetched them."""

from pathlib import Path

import pytest

from myxtts.weights import PUBLIC, default_folder

FOLDER = default_folder()


def public_weights(name: str) -> Path:
    """Return the path of public weights, or skip the calling test and name what is absent."""
    path = FOLDER / PUBLIC[name].filename
    if not path.exists():
        pytest.skip(f"public weights {name!r} are not in {FOLDER} (set MYXTTS_WEIGHTS_DIR)")
    return path
