"""How a text is read, for people: normalised, word by word, with vowels, and how well."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from myxtts.text.cleaners import normalise
from myxtts.text.errors import TextError
from myxtts.text.language import SpokenWord
from myxtts.text.languages import LANGUAGES, get_language
from myxtts.text.phonemes import has_reader, open_reader, phonemize, speak, unreadable_characters


class ShownText(NamedTuple):
    """A text as it is normalised and spoken, its words, and what is not spoken."""

    normalised: str
    phonemes: str
    words: list[SpokenWord]
    notes: list[str]


def show_text(text: str, language: str) -> ShownText:
    """Read a text and say what was decided about each word."""
    clean = normalise(text, language)
    reader = open_reader(language) if has_reader(language) else None
    words = reader.explain(clean) if reader else []
    notes = []
    lost = Counter(unreadable_characters(clean, language, by_espeak=reader is None))
    if lost:
        shown = " ".join(f"{character!r}" for character in lost)
        notes.append(f"{lost.total()} characters are not spoken: {shown}")
    return ShownText(clean, phonemize([clean], language)[0], words, notes)


def vowelise(text: str, language: str) -> str:
    """Write the vowels that writers of a language leave out."""
    row = get_language(language)
    if row.vowelise is None:
        raise TextError(f"{row.name} ({row.code}) is not vowelised: {_those_with('vowelise')}")
    return row.vowelise(normalise(text, language), speak)


def judge(language: str, test_sets: Path) -> list[list[str]]:
    """Measure how well a language is read, as a table with a header."""
    row = get_language(language)
    if row.judge is None:
        raise TextError(f"{row.name} ({row.code}) has no test sets: {_those_with('judge')}")
    return row.judge(test_sets, speak)


def _those_with(part: str) -> str:
    codes = [code for code, row in LANGUAGES.items() if getattr(row, part) is not None]
    return f"choose one of {', '.join(codes)}"
