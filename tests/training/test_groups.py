"""Batches in groups: of one shape and one epoch, in their order, as many as there is room for."""

import numpy as np
import pytest

from myxtts.training.groups import grouped


def items(*shapes: str):
    """Batches whose shapes are letters; a word is an epoch."""
    for epoch, word in enumerate(shapes):
        for number, letter in enumerate(word):
            yield epoch, number, {"mel": np.zeros([ord(letter)])}


def found(source, room) -> list[tuple[int, tuple[int, ...]]]:
    return [(group.epoch, group.numbers) for group in grouped(source, room)]


def test_neighbours_of_one_shape_share_a_group():
    assert found(items("aabbbac"), lambda: 3) == [
        (0, (0, 1)),
        (0, (2, 3, 4)),
        (0, (5,)),
        (0, (6,)),
    ]


def test_an_epoch_ends_a_group():
    assert found(items("aaa", "aa"), lambda: 4) == [(0, (0, 1, 2)), (1, (0, 1))]


@pytest.mark.parametrize(("room", "sizes"), [(1, [1] * 5), (2, [2, 2, 1]), (9, [5])])
def test_no_group_is_larger_than_there_is_room(room, sizes):
    assert [len(group) for group in grouped(items("aaaaa"), lambda: room)] == sizes


def test_the_room_is_asked_for_as_each_group_begins():
    rooms = iter([2, 1, 4])
    assert [len(group) for group in grouped(items("aaaaaaa"), lambda: next(rooms))] == [2, 1, 4]


def test_with_room_for_one_nothing_is_taken_ahead():
    taken = []

    def source():
        for item in items("aaa"):
            taken.append(item[1])
            yield item

    groups = grouped(source(), lambda: 1)
    next(groups)
    assert taken == [0]


def test_nothing_to_group():
    assert found(iter(()), lambda: 4) == []
