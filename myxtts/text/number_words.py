"""Whole numbers in words, through num2words."""

from functools import lru_cache

from myxtts.text.errors import MissingExtraError


@lru_cache(maxsize=4096)
def spell_number(value: int, code: str, kind: str = "cardinal") -> str:
    """Say a whole number; decimals and negatives of num2words are wrong in several languages."""
    try:
        from num2words import num2words
    except ImportError as error:
        raise MissingExtraError(f"speaking numbers in {code!r}", "numbers") from error
    return num2words(value, lang=code, to=kind)
