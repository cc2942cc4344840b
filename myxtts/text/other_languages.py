"""Numbers, percentages and money of the languages that have no rules of their own."""

import re

from myxtts.text.numbers import set_apart, spell_each, spell_whole
from myxtts.text.symbol_words import SYMBOL_WORDS, SymbolWords

# Every pattern starts where no digit precedes: otherwise a long run of digits is scanned again
# from each of its digits. After a space a number may start, so the groups of one are limited.
_COMMA_NUMBER = r"(?<![\d.,])(?:\d{1,3}(?:[.\u202f\xa0 ]\d{3}){1,6}|\d+)(?:,\d+)?(?!\d)"
_POINT_NUMBER = r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)"


def expand(text: str, language: str) -> str:
    """Say the numbers, with the signs beside them, and the ampersands of a text."""
    words = SYMBOL_WORDS[language]
    text = text.replace("&", f" {words.ampersand} ")
    if not re.search(r"\d", text):
        return text
    money = words.money()
    number = _COMMA_NUMBER if words.has_decimal_comma else _POINT_NUMBER
    text = re.sub(rf"([$€£])\s?({number})", r"\2 \1", text)
    text = re.sub(rf"({number})\s?([$€£])", lambda m: set_apart(m, f"{m[1]} {money[m[2]]}"), text)
    text = re.sub(rf"({number})\s?%", lambda m: words.percent.format(m[1]), text)
    text = re.sub(rf"%\s?({number})", lambda m: words.percent.format(m[1]), text)
    text = re.sub(r"(?<![\w)])-(?=\d)", f"{words.minus} ", text)
    text = re.sub(number, lambda m: set_apart(m, _speak(m[0], words, language)), text)
    text = re.sub(r"\.(?=\d)", ". ", text)
    return re.sub(r"\d+", lambda m: set_apart(m, spell_whole(m[0], language)), text)


def _speak(number: str, words: SymbolWords, language: str) -> str:
    """Say a number written with this language's separators."""
    decimal = "," if words.has_decimal_comma else "."
    whole, _, fraction = number.partition(decimal)
    spoken = spell_whole(re.sub(r"\D", "", whole), language)
    if fraction:
        spoken += f" {words.point} {spell_each(fraction, language)}"
    return spoken
