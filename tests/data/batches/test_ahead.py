"""Threads that work ahead of whoever takes the batches."""

import threading

import numpy as np
import pytest

from myxtts.data.batches.ahead import worked_ahead
from myxtts.data.batches.plan import BatchPlan

PATIENCE = 60.0  # seconds until a thread that should have come is given up


def simple_plan(batches: int, size: int = 1) -> BatchPlan:
    count = batches * size
    zeros = np.zeros(batches, np.int32)
    return BatchPlan(np.arange(count), np.arange(0, count + 1, size), zeros, zeros)


@pytest.mark.parametrize("ahead", [0, 1, 3, 20])
def test_work_is_done_in_order_and_so_far_ahead(ahead):
    begun = []

    def work(position):
        begun.append(position)
        return 10 * position

    results = worked_ahead(simple_plan(8, 2), work, lambda i: i % 2 == 0, 1, ahead)
    for number, found in results:
        assert found == {2 * number: 20 * number}
        assert len(begun) <= min(8, number + ahead + 1)
    assert sorted(begun) == list(range(0, 16, 2))


def test_an_error_in_the_work_reaches_the_reader():
    def work(position):
        raise OSError(f"recording {position}")

    with pytest.raises(OSError, match="recording 0"):
        list(worked_ahead(simple_plan(3), work, lambda i: True, 2, 1))


class Begun:
    """Which thread began the work on each position."""

    def __init__(self):
        self.threads: dict[int, int] = {}
        self._changed = threading.Condition()

    def __call__(self, position: int) -> int:
        with self._changed:
            self.threads[position] = threading.get_ident()
            self._changed.notify_all()
        return position

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.threads) >= count, PATIENCE)


def test_work_goes_on_while_nobody_takes_a_batch():
    begun = Begun()
    results = worked_ahead(simple_plan(40, 2), begun, lambda i: True, 3, ahead=30, urgent=2)
    assert next(results) == (0, {0: 0, 1: 1})
    begun.wait_for(2 * 31)
    assert sorted(begun.threads) == list(range(2 * 31))
    assert [number for number, _ in results] == list(range(1, 40))


def test_the_urgent_is_everybodys_and_the_rest_is_left_to_half_of_the_threads():
    begun, all_here = Begun(), threading.Barrier(4)

    def work(position):
        if position < 4:  # nobody is done before everybody has begun
            all_here.wait(PATIENCE)
        return begun(position)

    results = worked_ahead(simple_plan(60), work, lambda i: True, 4, ahead=50, urgent=3)
    assert next(results) == (0, {0: 0})
    begun.wait_for(51)
    assert len({begun.threads[position] for position in range(4)}) == 4
    assert len({begun.threads[position] for position in range(4, 51)}) <= 2
    results.close()


def test_who_stops_taking_ends_the_threads():
    before, begun = set(threading.enumerate()), Begun()
    results = worked_ahead(simple_plan(1000), begun, lambda i: True, 2, ahead=3)
    next(results)
    begun.wait_for(4)
    results.close()
    assert set(threading.enumerate()) <= before
    assert len(begun.threads) == 4


def test_an_error_comes_in_the_turn_of_its_batch():
    results = worked_ahead(simple_plan(4), [0, 1].__getitem__, lambda i: True, 2, ahead=3)
    assert [next(results), next(results)] == [(0, {0: 0}), (1, {1: 1})]
    with pytest.raises(IndexError):
        next(results)
