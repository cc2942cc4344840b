"""Latin words inside a text of another script: which there are, and what becomes of them."""

import re
from collections import Counter
from collections.abc import Iterable

from myxtts.text.languages import get_language

_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]+")
_SHOWN = 5


def latin_words(text: str) -> list[str]:
    """List the Latin words of a text, with repeats."""
    return _LATIN_WORD.findall(text)


def describe_foreign(words: Iterable[str], language: str) -> str:
    """Count words that a table has no letters for, show some, and say how they are read."""
    counts = Counter(words)
    total = sum(counts.values())
    shown = ", ".join(repr(word) for word, _ in counts.most_common(_SHOWN))
    noun = "word" if total == 1 else "words"
    fate = "spelled letter by letter" if get_language(language).spell_latin else "dropped"
    return (
        f"{total:,} {noun} in Latin letters ({shown}), which a tokenizer of characters without "
        f"English does not have: {fate}. Write them in the letters of the language, or train with "
        "--text-units phonemes"
    )
