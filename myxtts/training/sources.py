"""Where a run's batches come from: a corpus, or any iterable of them."""

from collections.abc import Iterator

import numpy as np


def endless(source, epoch: int, number: int) -> Iterator[tuple[int, int, dict]]:
    """Endless (epoch, number, batch) from any on, of a corpus or of any iterable of batches."""
    if hasattr(source, "stream"):
        yield from source.stream(epoch, number)
        return
    while True:
        for at, batch in enumerate(source):
            if at >= number:
                yield epoch, at, batch
        epoch, number = epoch + 1, 0


def batches_per_epoch(source) -> int:
    if hasattr(source, "stream"):
        return len(source.train_batches())
    try:
        return len(source)
    except TypeError:  # a generator's, or a tf.data.Dataset's of unknown length
        return sum(1 for _ in source)


def name_by_position(index: np.ndarray) -> list[str]:
    """What names the utterances of a dataset whose table we do not have."""
    return [f"number {position}" for position in np.asarray(index).tolist()]
