"""Batches of one shape in a row, to be trained on in one call."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import tensorflow as tf

from myxtts.data.batches.resident import ResidentBatch

Item = tuple[int, int, Mapping[str, tf.Tensor]]


class Group(NamedTuple):
    """Batches of one epoch and one shape, and the row of each in the epoch's plan."""

    epoch: int
    numbers: tuple[int, ...]
    batches: tuple[Mapping[str, tf.Tensor], ...]

    def __len__(self) -> int:
        return len(self.numbers)


def grouped(items: Iterable[Item], room: Callable[[], int]) -> Iterator[Group]:
    """Cut (epoch, number, batch) into groups without changing their order.

    `room` says, as a group begins, how many batches it may have; only where that is more than one
    a batch is taken that may turn out to belong to the next group.
    """
    source = iter(items)
    held = next(source, None)
    while held is not None:
        members, most = [held], room()
        held = None
        while len(members) < most and (held := next(source, None)) is not None:
            if not _fits(held, members[0]):
                break
            members.append(held)
            held = None
        epochs, numbers, batches = zip(*members, strict=True)
        yield Group(epochs[0], numbers, batches)
        del members, batches  # a step has no more use for its batches when it ends
        if held is None:
            held = next(source, None)


def _fits(one: Item, first: Item) -> bool:
    return one[0] == first[0] and _shape(one[2]) == _shape(first[2])


def _shape(batch: Mapping[str, tf.Tensor]) -> tuple:
    """Equal for batches of one shape that come from the same place."""
    if isinstance(batch, ResidentBatch):
        return batch.shape
    return tuple(tuple(x.shape) for x in batch.values())
