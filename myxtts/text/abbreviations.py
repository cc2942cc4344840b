"""Abbreviations in words, for languages without rules of their own."""

import re
from functools import cache

from myxtts.text.language import Language


def say_abbreviations(text: str, language: Language) -> str:
    """Write abbreviations out; the full stop of one that ends the text stays."""
    if not language.abbreviation_words:
        return text
    words = language.abbreviation_words

    def say(match: re.Match[str]) -> str:
        is_end = match[0].endswith(".") and match.end() == len(text.rstrip())
        return words[re.sub(r"\s", " ", match[0])] + ("." if is_end else "")

    return _pattern(tuple(words)).sub(say, text)


@cache
def _pattern(written: tuple[str, ...]) -> re.Pattern[str]:
    keys = (re.escape(key).replace("\\ ", r"\s") for key in sorted(written, key=len, reverse=True))
    return re.compile(rf"(?<![\w.])(?:{'|'.join(keys)})(?!\w)")
