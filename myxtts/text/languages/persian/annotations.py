"""Texts whose phonemes people wrote down: each word with its ezafe and its sounds."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from myxtts.text.errors import TextError
from myxtts.text.languages.persian.alignment import align
from myxtts.text.languages.persian.inventory import from_notation
from myxtts.text.languages.persian.tokens import Word, split_words

EZAFE, HOMOGRAPH = "e1", "2"  # marks behind the sounds of a word


class Sentence(NamedTuple):
    """Words; of each whether it has an ezafe and its phonemes without it; None: not known."""

    words: list[Word]
    ezafes: list[bool | None]
    spoken: list[str | None]
    homographs: list[bool]
    phonemes: list[str]  # of the whole sentence, spoken word by word, with ezafes


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of a CSV file with columns Grapheme and Phoneme."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if not {"Grapheme", "Phoneme"} <= set(rows.fieldnames or ()):
            raise TextError(f"{path} has no columns Grapheme and Phoneme: give a file of GE2PE")
        for row in rows:
            yield row["Grapheme"], row["Phoneme"]


def annotate(written: str, phonemes: str, notation: dict[str, str]) -> Sentence:
    """Give every word of a normalised text its phonemes and its marks."""
    words = split_words(written)[1]
    spoken = [from_notation(word, notation) for word in phonemes.split()]
    ezafes: list[bool | None] = [None] * len(words)
    sounds: list[str | None] = [None] * len(words)
    homographs = [False] * len(words)
    for rows, columns in align([word.text for word in words], spoken):
        if rows.start == rows.stop or columns.start == columns.stop:
            continue
        at, last = rows.stop - 1, spoken[columns.stop - 1]
        ezafes[at] = _has_ezafe(words[at].text, last.replace(HOMOGRAPH, ""))
        if at == rows.start:
            sounds[at] = bare("".join(spoken[columns]), words[at].text)
            homographs[at] = any(HOMOGRAPH in word for word in spoken[columns])
    return Sentence(words, ezafes, sounds, homographs, [_without_marks(word) for word in spoken])


def bare(spoken: str, written: str) -> str:
    """Take the marks, the ezafe and the glide before it off a spoken word."""
    word = spoken.replace(HOMOGRAPH, "").replace("-", "")
    if word.endswith(EZAFE):
        is_silent = _is_silent_he(written, word)
        word = word[: -len(EZAFE)] + ("e" if is_silent else "")
        if word.endswith(_GLIDES) and not written.endswith(("ی", "ای", "وی")):
            word = word[:-1]
        elif word.endswith(("ij", "ɒj", "uj")):
            word = word[:-1]
    return word.replace("1", "")


def _has_ezafe(written: str, spoken: str) -> bool:
    return spoken.endswith(EZAFE) and not _is_silent_he(written, spoken)


def _is_silent_he(written: str, spoken: str) -> bool:
    """Whether `e1` is only the silent he of a word: an ezafe follows its e, or a glide."""
    return written.endswith("ه") and spoken[-3:-2] not in ("j", "h", "e")


def _without_marks(spoken: str) -> str:
    return spoken.translate(_MARKS)


_GLIDES = ("ej", "ij", "ɒj", "uj", "oj")
_MARKS = str.maketrans("", "", "12-")
