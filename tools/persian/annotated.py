"""The sentences of FarsDat, which are written in a notation of their own."""

from collections.abc import Iterator
from pathlib import Path

from myxtts.text.cleaners import normalise
from myxtts.text.languages.persian.annotations import Sentence, annotate, read_pairs
from myxtts.text.languages.persian.inventory import FARSDAT

__all__ = ["Sentence", "read_farsdat"]


def read_farsdat(path: Path) -> Iterator[Sentence]:
    """Read the sentences of FarsDat.csv."""
    for written, phonemes in read_pairs(path):
        yield annotate(normalise(written, "fa"), phonemes, FARSDAT)
