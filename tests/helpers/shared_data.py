"""Where real recordings and reference vectors lie, when a checkout has them next to it."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("MYXTTS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


def shared(name: str) -> Path:
    """Return the path of a shared data set, or skip the calling test and name what is absent."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"real data {name!r} is not next to this checkout (set MYXTTS_SHARED_DATA)")
    return path
