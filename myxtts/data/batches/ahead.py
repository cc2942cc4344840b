"""Work on the utterances of batches in threads, ahead of whoever takes the batches."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

Item = TypeVar("Item")


class Plan(Protocol):
    """Which utterances share a batch: their positions in the cache, batch by batch."""

    def __len__(self) -> int: ...

    def __getitem__(self, batch: int, /) -> np.ndarray: ...


def worked_ahead(
    plan: Plan,
    work: Callable[[int], Item],
    is_wanted: Callable[[int], bool],
    workers: int,
    ahead: int,
    urgent: int | None = None,
) -> Iterator[tuple[int, dict[int, Item]]]:
    """Do the work of each batch's wanted positions in threads, some batches ahead, in order.

    Where work further ahead than `urgent` batches is left, half of the threads do it: cores that
    nothing waits for are better left to the step.
    """
    workers = max(1, workers)
    urgent = ahead if urgent is None else min(urgent, ahead)
    steady = max(1, workers // 2)
    line = _Line(_wanted(plan, is_wanted), work)
    reaches = [ahead if rank < steady else urgent for rank in range(workers)]
    threads = [threading.Thread(target=line.run, args=(reach,), daemon=True) for reach in reaches]
    for thread in threads:
        thread.start()
    try:
        for number in range(len(plan)):
            yield number, line.take(number)
    finally:
        line.stop()
        for thread in threads:
            thread.join()


@dataclass
class _Work:
    """A batch in the line: what is still to be begun, what is under way, and what came of it."""

    number: int
    waiting: list[int]  # positions, the next one last
    running: int = 0
    found: dict[int, Any] = field(default_factory=dict)
    error: BaseException | None = None


class _Line(Generic[Item]):
    """Batches in the order of the plan, which threads work on from the front."""

    def __init__(self, batches: Iterator[list[int]], work: Callable[[int], Item]):
        self._batches, self._work = enumerate(batches), work
        self._known: dict[int, _Work] = {}
        self._last: _Work | None = None  # the one whose positions are handed out
        self._taken = 0  # the batch that the reader has, or waits for
        self._stopped = False
        self._changed = threading.Condition()

    def run(self, reach: int) -> None:
        """Work until nothing is left, never further ahead of the reader than `reach` batches."""
        while (task := self._next(reach)) is not None:
            batch, position = task
            found = error = None
            try:
                found = self._work(position)
            except BaseException as raised:  # the reader's, in its turn
                error = raised
            with self._changed:
                batch.running -= 1
                batch.found[position] = found
                batch.error = batch.error or error
                if not batch.running and not batch.waiting:
                    self._changed.notify_all()

    def take(self, number: int) -> dict[int, Item]:
        """What came of a batch, as soon as all of it is there."""
        with self._changed:
            self._taken = number
            self._changed.notify_all()
            while not self._is_done(number):
                self._changed.wait()
            batch = self._known.pop(number)
        if batch.error is not None:
            raise batch.error
        return batch.found

    def stop(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _is_done(self, number: int) -> bool:
        batch = self._known.get(number)
        return batch is not None and not batch.waiting and not batch.running

    def _next(self, reach: int) -> tuple[_Work, int] | None:
        """The next position to work on, once it is near enough; None where there is no more."""
        with self._changed:
            while not self._stopped:
                if self._last is None or not self._last.waiting:
                    if not self._advance():
                        return None
                    continue
                if self._last.number <= self._taken + reach:
                    self._last.running += 1
                    return self._last, self._last.waiting.pop()
                self._changed.wait()
            return None

    def _advance(self) -> bool:
        """Open the next batch; one of which nothing is wanted is done at once."""
        for number, positions in self._batches:
            self._last = self._known[number] = _Work(number, positions[::-1])
            if positions:
                return True
            self._changed.notify_all()
        return False


def _wanted(plan: Plan, is_wanted: Callable[[int], bool]) -> Iterator[list[int]]:
    for number in range(len(plan)):
        yield [i for i in dict.fromkeys(plan[number].tolist()) if is_wanted(i)]
