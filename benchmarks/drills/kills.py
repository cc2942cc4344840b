"""SIGKILL before every file operation of a command, in the middle of every write, and at random."""

import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.drills.cases import EQUAL, Case, Outcome, Size
from benchmarks.drills.recorder import State, Tree
from benchmarks.drills.subjects import SUBJECTS, Subject, make, recorded, resume

TITLE = "commands are killed and run again: what they leave equals an undisturbed run's"
MOST = {"finetune": 60}  # of what costs most
RANDOM = {"prepare": 60, "train": 12, "train-vocoder": 6, "finetune": 6, "export a voice": 10}
TIMES = 3  # that a random one is killed before it may finish


def set_up(folder: Path, seed: int, size: Size) -> None:
    make(folder, seed)


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    for subject in SUBJECTS:
        found = recorded(folder, subject)
        most = min(len(found.kills), MOST.get(subject.name, len(found.kills)))
        states = chosen(found.kills, seed, size.count(most, 2))
        for label, tree in states:
            kind = f"{subject.name}, {'in a write' if 'torn' in label else 'before an operation'}"
            run = partial(resume_from, subject, folder, tree)
            yield Case(f"{subject.name} {label}", kind, run)
        for number in range(size.count(RANDOM[subject.name])):
            run = partial(_kill, subject, folder, f"{seed} {number}")
            yield Case(f"{subject.name} random {number}", f"{subject.name}, at random x 3", run)


def chosen(states: list[State], seed: int, count: int) -> list[State]:
    """A sample of the states, in their order."""
    kept = random.Random(seed).sample(range(len(states)), min(len(states), count))
    return [states[at] for at in sorted(kept)]


def resume_from(subject: Subject, made: Path, tree: Tree, work: Path) -> Outcome:
    os.chdir(work)
    tree.write_to(Path(subject.target), made / "blobs")
    return resume(subject, made, recorded(made, subject).expected) or Outcome(EQUAL)


def _kill(subject: Subject, made: Path, seed: str, work: Path) -> Outcome:
    os.chdir(work)
    found, chance = recorded(made, subject), random.Random(seed)
    for _ in range(TIMES):
        subject.run(made, work / "killed.log", chance.uniform(0, found.seconds))
    return resume(subject, made, found.expected) or Outcome(EQUAL)
