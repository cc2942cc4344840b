"""Sentences that voices tend to skip, repeat or never end, by kind of difficulty."""

from typing import NamedTuple

from myxtts.errors import UserError
from myxtts.text.languages import LANGUAGES, get_language


class HardSentence(NamedTuple):
    """A sentence and its kind of difficulty."""

    kind: str
    text: str


def hard_sentences(language: str) -> tuple[HardSentence, ...]:
    """Return the hard sentences of a language, kind by kind."""
    by_kind = get_language(language).hard_sentences
    if not by_kind:
        known = ", ".join(code for code, row in LANGUAGES.items() if row.hard_sentences)
        raise UserError(f"there are no hard sentences in {language!r}, only in {known}")
    return tuple(HardSentence(kind, text) for kind, texts in by_kind.items() for text in texts)
