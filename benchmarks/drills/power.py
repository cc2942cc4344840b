"""Cuts of the power: what was not synced is dropped, cut or reordered before the restart."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.drills.cases import Case, Size
from benchmarks.drills.kills import chosen, resume_from, set_up
from benchmarks.drills.subjects import SUBJECTS, recorded

TITLE = "the power is cut: unsynced writes and renames are dropped or reordered"
MOST = {"prepare": 250, "train": 60, "train-vocoder": 30, "finetune": 20, "export a voice": 60}

__all__ = ["TITLE", "cases", "set_up"]


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    for subject in SUBJECTS:
        count = size.count(MOST[subject.name], 2)
        for label, tree in chosen(recorded(folder, subject).cuts, seed, count):
            run = partial(resume_from, subject, folder, tree)
            yield Case(f"{subject.name} {label}", subject.name, run)
