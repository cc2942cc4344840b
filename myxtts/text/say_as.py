"""What `say-as` asks for: letters, digits, numbers, dates and telephone numbers read as such.

The result is text that the cleaners of the language read in that way, or nothing where they have no
rule for it.
"""

import re

from myxtts.text.errors import MissingExtraError
from myxtts.text.languages import get_language
from myxtts.text.languages.english import numbers as english
from myxtts.text.languages.persian import numbers as persian
from myxtts.text.ordinals import spell_ordinal

_CHARACTERS = ("characters", "character", "spell-out", "verbatim", "digits")
_DATE_ORDERS = {"mdy": (2, 0, 1), "dmy": (2, 1, 0), "ymd": (0, 1, 2), "ydm": (0, 2, 1)}
_MOST_DIGITS = 36


def say_as(text: str, kind: str, form: str, language: str) -> str | None:
    """Return what to read for a text of a kind, or None where that is not known."""
    text = " ".join(text.split())
    if kind in _CHARACTERS:
        return _spell(text, language)
    if kind in ("cardinal", "number"):
        return _cardinal(text, language)
    if kind == "ordinal":
        return _ordinal(text, language)
    if kind == "date":
        return _date(text, form)
    if kind == "time":
        return text  # the cleaners know times by their colons
    if kind == "telephone":
        return _telephone(text)
    return None


def _spell(text: str, language: str) -> str:
    """Each letter and digit by itself; hyphens keep English letters from being read as words."""
    parts = [character for character in text if character.isalnum()]
    if language != "en":
        return " ".join(parts)
    if parts in (["a"], ["A"]):
        return "ay"
    spelled = ""
    for part in parts:
        joins = part.isalpha() and spelled[-1:].isalpha()
        spelled += ("-" if joins else " ") + part
    return spelled.strip()


def _cardinal(text: str, language: str) -> str | None:
    digits = text.replace(",", "").replace(" ", "")
    if not re.fullmatch(r"[+-]?\d+(?:\.\d+)?", digits) or len(digits) > _MOST_DIGITS:
        return None
    if language != "en":
        return text  # without a context, the cleaners read digits as a number
    sign = {"-": "minus ", "+": "plus "}.get(digits[0], "")
    digits = digits.lstrip("+-")
    return sign + (english.decimal_words(digits) if "." in digits else english.whole_number(digits))


def _ordinal(text: str, language: str) -> str | None:
    digits = re.match(r"\d{1,15}(?!\d)", text.replace(",", ""))
    if not digits:
        return None
    value = int(digits[0])
    if language in ("en", "fa"):
        return english.ordinal(value) if language == "en" else persian.ordinal(value)
    row = get_language(language)
    try:
        return spell_ordinal(value, row) if row.num2words_code else None
    except (MissingExtraError, NotImplementedError, TypeError, ValueError, OverflowError):
        return None


def _date(text: str, form: str) -> str:
    """A full date in the order that the cleaners of every language know; others as they are."""
    numbers = re.findall(r"\d+", text)
    order = _DATE_ORDERS.get(form)
    if order is None or len(numbers) != 3:
        return text
    year, month, day = (numbers[place] for place in order)
    return f"{year}-{int(month):02d}-{int(day):02d}" if len(year) == 4 else text


def _telephone(text: str) -> str | None:
    """Digit by digit, with a pause between groups."""
    groups = [" ".join(group) for group in re.findall(r"\d+", text)]
    plus = "+ " if text.startswith("+") else ""
    return plus + ", ".join(groups) if groups else None
