"""Parts of speech of Persian words, from a table of their checksums."""

import zlib
from functools import cache
from typing import NamedTuple

import numpy as np

from myxtts.text.languages.persian.table_files import read_arrays

PARTS = "N AJ V NUM RES ADV CONJ CL PRO P DET PUNC POSTP INT".split()
MOST_LEAN = 7  # levels of `lean` and `asks` are 0 to this


class WordClass(NamedTuple):
    """The likeliest part of speech, the next one, and how much the word leans to an ezafe.

    `asks` says how much it asks the word before it for one. Both are levels from 0 to 7.
    """

    part: str
    second: str
    lean: int
    asks: int


def class_of(word: str) -> WordClass | None:
    """Look a word up; None where the table does not have it."""
    code = _classes().get(zlib.crc32(word.encode()))
    return None if code is None else unpack(code)


def pack(word_class: WordClass) -> int:
    """Write a class as 16 bits."""
    part, second = PARTS.index(word_class.part), PARTS.index(word_class.second)
    return part << 12 | second << 8 | word_class.lean << 4 | word_class.asks


def unpack(code: int) -> WordClass:
    """Read what `pack` wrote."""
    return WordClass(PARTS[code >> 12], PARTS[code >> 8 & 15], code >> 4 & 15, code & 15)


@cache
def _classes() -> dict[int, int]:
    arrays = read_arrays("word_classes.npz")
    keys = np.cumsum(arrays["key_steps"].astype(np.uint64))
    return dict(zip(keys.tolist(), arrays["codes"].tolist(), strict=True))
