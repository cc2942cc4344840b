"""Batches of any reader as arrays, and their comparison bit by bit."""

from collections.abc import Iterable

import numpy as np

Arrays = dict[str, np.ndarray]


def arrays_of(batches: Iterable) -> list[Arrays]:
    """Batches of tensors or arrays as arrays of their own."""
    return [{name: np.array(value) for name, value in batch.items()} for batch in batches]


def assert_same_batches(found: list[Arrays], expected: list[Arrays]) -> None:
    """The same batches in the same order: keys, types, shapes and every bit."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].dtype == other[name].dtype, name
            assert one[name].shape == other[name].shape, name
            assert one[name].tobytes() == other[name].tobytes(), name


def rows_by_index(batches: Iterable[Arrays]) -> dict[int, Arrays]:
    """Every utterance's own part of its batch, unpadded, by its position."""
    rows = {}
    for batch in batches:
        for row, position in enumerate(batch["index"].tolist()):
            frames, tokens = int(batch["mel_lengths"][row]), int(batch["text_lengths"][row])
            lengths = {"tokens": tokens, "mel": frames, "energy": frames, "pitch": frames}
            rows[position] = {
                name: value[row][: lengths[name]] if name in lengths else value[row]
                for name, value in batch.items()
            }
    return rows
