"""Rows of different lengths in one array."""

from collections.abc import Sequence

import numpy as np


def pad_rows(rows: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    """Put rows [length, ...] into one array, with zeros behind their ends."""
    padded = np.zeros((len(rows), max(map(len, rows)), *rows[0].shape[1:]), dtype)
    for row, target in zip(rows, padded, strict=True):
        target[: len(row)] = row
    return padded
