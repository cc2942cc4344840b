"""Annotated Persian texts as rows of words, with the ezafe of each and how it is spoken."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from myxtts.text.cleaners import normalise
from myxtts.text.languages.persian.alignment import align
from myxtts.text.languages.persian.inventory import FARSDAT, from_notation
from myxtts.text.languages.persian.words import Word, split_words

EZAFE = "e1"


class Sentence(NamedTuple):
    """Words, whether each has an ezafe (None: not known), and its phonemes without it."""

    words: list[Word]
    ezafes: list[bool | None]
    spoken: list[str | None]


def read_farsdat(path: Path) -> Iterator[Sentence]:
    """Read the sentences of FarsDat.csv."""
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield annotate(row["Grapheme"], row["Phoneme"], FARSDAT)


def annotate(written: str, phonemes: str, notation: dict[str, str]) -> Sentence:
    """Give every word of a sentence its phonemes, and say whether `e1` ends them."""
    words = split_words(normalise(written, "fa"))[1]
    spoken = [from_notation(word, notation) for word in phonemes.split()]
    ezafes: list[bool | None] = [None] * len(words)
    sounds: list[str | None] = [None] * len(words)
    for rows, columns in align([word.text for word in words], spoken):
        if rows.stop - rows.start != 1 or columns.stop == columns.start:
            if rows.stop > rows.start and columns.stop > columns.start:
                ezafes[rows.stop - 1] = _has_ezafe(words[rows.stop - 1].text, spoken[columns.stop - 1])
            continue
        last = spoken[columns.stop - 1]
        at = rows.start
        ezafes[at] = _has_ezafe(words[at].text, last)
        sounds[at] = bare("".join(spoken[columns]), words[at].text)
    return Sentence(words, ezafes, sounds)


def bare(spoken: str, written: str) -> str:
    """Take the marks, the ezafe and the glide before it off a spoken word."""
    word = spoken.replace("2", "").replace("-", "")
    if word.endswith(EZAFE):
        word = word[: -len(EZAFE)] + ("e" if _is_silent_he(written, word) else "")
        has_glide = written.endswith(("ه", "ا", "و", "ای", "وی", "ی")) and word[-2:-1] in "eɒui"
        word = word[:-1] if has_glide and word[-2:] != "ej" or written.endswith("ه") and word.endswith("j") else word
    return word.replace("1", "")


def _has_ezafe(written: str, spoken: str) -> bool:
    word = spoken.replace("2", "")
    return word.endswith(EZAFE) and not _is_silent_he(written, word)


def _is_silent_he(written: str, spoken: str) -> bool:
    """Whether `e1` is only the silent he at the end of a word: an ezafe would follow a glide."""
    return written.endswith("ه") and spoken[-3:-2] not in ("j", "h")
