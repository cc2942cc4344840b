"""What a part of the drill is made of: cases, and how each can end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# How a case may end, and how it must not.
EQUAL = "equal"  # the same bytes, numbers or samples as without the fault
REPAIRED = "repaired"  # the fault was found and named, and the result is the same again
REFUSED = "refused"  # the command ended with an error that names what is wrong
ACCEPTED = "accepted"  # valid after all, and used within the bounds
GOOD = (EQUAL, REPAIRED, REFUSED, ACCEPTED)

LOST = "LOST"  # something that was finished before is gone or other
WRONG = "WRONG"  # other numbers, without a word
TRACEBACK = "TRACEBACK"  # a stack trace instead of an error
HUNG = "HUNG"  # not done in the time that it may take
UNBOUNDED = "UNBOUNDED"  # too much CPU, memory, disk, threads or descriptors
CRASHED = "CRASHED"  # a signal that nobody sent
BAD = (LOST, WRONG, TRACEBACK, HUNG, UNBOUNDED, CRASHED)


@dataclass(frozen=True)
class Outcome:
    """How a case ended, and what a reader of the table should know of it."""

    result: str
    detail: str = ""
    counts: dict[str, int] | None = None  # of a case that tried many inputs: how many ended how


@dataclass(frozen=True)
class Case:
    """One attack. `name` is unique in its part and the same in every run with the same seed.

    `run` is called in a process of its own, which has imported TensorFlow but not used it yet, with
    an empty folder to work in. What it prints goes to a log that is shown if the case ends badly.
    """

    name: str
    kind: str  # the row of the table that counts it
    run: Callable[[Path], Outcome]
    seconds: float = 300.0  # then it counts as hung
    megabytes: float = 4000.0  # resident memory beyond that of the process at its start


@dataclass(frozen=True)
class Size:
    """How much is tried: the share of all cases that `make drill` runs."""

    share: float

    def count(self, full: int, least: int = 1) -> int:
        return max(least, round(full * self.share))


class Part(Protocol):
    """A module of this folder."""

    TITLE: str

    def set_up(self, folder: Path, seed: int, size: Size) -> None:
        """Make what the cases need, once, in a process of its own; `folder` is kept."""

    def cases(self, folder: Path, seed: int, size: Size) -> Iterator[Case]:
        """The cases, after `set_up`; cheap, and without using TensorFlow."""
