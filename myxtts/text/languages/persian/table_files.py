"""The tables of the Persian front end, as files of the package."""

import os
from pathlib import Path

import numpy as np

TABLES = Path(__file__).with_name("tables")


def table_path(name: str) -> Path:
    """Find a table: MYXTTS_PERSIAN_TABLES names a folder whose tables come before our own."""
    own = os.environ.get("MYXTTS_PERSIAN_TABLES")
    if own and (Path(own) / name).exists():
        return Path(own) / name
    return TABLES / name


def read_arrays(name: str) -> dict[str, np.ndarray]:
    """Read all arrays of a table."""
    with np.load(table_path(name), allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def read_rows(name: str) -> list[list[str]]:
    """Read a table of tab-separated columns; lines that start with a number sign are comments."""
    path = table_path(name)
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]
