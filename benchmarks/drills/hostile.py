"""Hostile input: corpora, recordings, texts, books, settings, weights, voices and downloads.

Every input is refused with a short message or used, within the cost that `Bounds` of its kind
states for its size, and leaves nothing outside of its folder.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

from benchmarks.drills.cases import Case, Outcome, Size
from benchmarks.drills.inputs import (
    audio,
    corpora,
    downloads,
    scripts,
    settings,
    texts,
    traps,
    voices,
    weights,
)
from benchmarks.drills.judging import numbered, try_all

TITLE = "hostile input of every kind, within bounds of time, memory and disk"
KINDS = (corpora, traps, audio, texts, scripts, settings, weights, voices, downloads)
# Judged input by input: this is for what even that cannot end.
_CASE_SECONDS = 3600.0


def set_up(folder: Path, seed: int, size: Size) -> None:
    for kind in KINDS:
        own = _folder(folder, kind)
        own.mkdir(parents=True)
        kind.set_up(own, seed)


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    for kind in KINDS:
        left, number = size.count(kind.COUNT, kind.PER_CASE), 0
        while left > 0:
            count = min(left, kind.PER_CASE)
            run = partial(_try, kind, _folder(folder, kind), 1_000_003 * seed + number, count)
            name = f"{_name(kind)}-{number:03d}"
            yield Case(name, kind.KIND, run, _CASE_SECONDS, megabytes=32_000.0)
            left, number = left - count, number + 1


def _try(kind: ModuleType, folder: Path, seed: int, count: int, work: Path) -> Outcome:
    inputs = numbered(kind.inputs(folder, seed, count))
    return try_all(inputs, work, kind.BOUNDS, kind.warm_up)


def _folder(folder: Path, kind: ModuleType) -> Path:
    return folder / _name(kind)


def _name(kind: ModuleType) -> str:
    return kind.__name__.rpartition(".")[2]
