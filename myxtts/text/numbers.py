"""Numbers in words for languages without rules of their own, through num2words."""

import re

from myxtts.text.abbreviations import say_abbreviations
from myxtts.text.dates import say_dates, say_times, word_before
from myxtts.text.language import Language, SymbolWords
from myxtts.text.number_words import spell_number
from myxtts.text.ordinals import say_ordinals

# Some languages of num2words fail beyond this many digits, and no listener follows them there.
_LONGEST_CARDINAL = 15
_SAID_IN_HUNDREDS = range(1100, 2000)
_WORD_AFTER = re.compile(r" ([^\W\d_]+)")
# Every pattern starts where no digit precedes: otherwise a long run of digits is scanned again
# from each of its digits. After a space a number may start, so the groups of one are limited.
_COMMA_NUMBER = r"(?<![\d.,])(?:\d{1,3}(?:[.\u202f\xa0 ]\d{3}){1,6}|\d+)(?:,\d+)?(?!\d)"
_POINT_NUMBER = r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)"


def expand_numbers(text: str, language: Language) -> str:
    """Say the numbers, with the signs next to them, and the ampersands of a text."""
    words = language.symbol_words
    text = say_abbreviations(text, language)
    if re.search(r"\d", text):
        text = say_times(say_dates(text, language), language)
        text = say_ordinals(text, language)
    if words is not None:
        text = text.replace("&", f" {words.ampersand} ")
        text = _say_signs(text, words, language) if re.search(r"\d", text) else text
    return re.sub(r"\d+", lambda m: set_apart(m, _spell_before(m, language)), text)


def _spell_before(match: re.Match[str], language: Language) -> str:
    """Say a whole number, in agreement with the word that follows it."""
    spoken = _spell_whole(match[0], language)
    if language.agree is None:
        return spoken
    following = _WORD_AFTER.match(match.string, match.end())
    if following is None:
        return spoken
    return language.agree(spoken, following[1].lower(), word_before(match).lower())


def _say_signs(text: str, words: SymbolWords, language: Language) -> str:
    """Say money, percentages, negative and decimal numbers."""
    money = words.money()
    number = _COMMA_NUMBER if words.has_decimal_comma else _POINT_NUMBER
    text = re.sub(rf"([$€£])\s?({number})", r"\2 \1", text)
    text = re.sub(rf"({number})\s?([$€£])", lambda m: set_apart(m, f"{m[1]} {money[m[2]]}"), text)
    text = re.sub(rf"({number})\s?%", lambda m: words.percent.format(m[1]), text)
    text = re.sub(rf"%\s?({number})", lambda m: words.percent.format(m[1]), text)
    text = re.sub(r"(?<![\w)])-(?=\d)", f"{words.minus} ", text)
    text = re.sub(number, lambda m: set_apart(m, _speak(m, words, language)), text)
    return re.sub(r"\.(?=\d)", ". ", text)


def _speak(match: re.Match[str], words: SymbolWords, language: Language) -> str:
    """Say a number written with this language's separators."""
    if match[0].isdecimal():
        return _spell_before(match, language)
    decimal = "," if words.has_decimal_comma else "."
    whole, _, fraction = match[0].partition(decimal)
    spoken = _spell_whole(re.sub(r"\D", "", whole), language, is_plain=False)
    if fraction:
        spoken += f" {words.point} {_spell_each(fraction, language)}"
    return spoken


def set_apart(match: re.Match[str], words: str) -> str:
    """Put spaces between spoken words and the letters that their number was written against."""
    text, start, end = match.string, match.start(), match.end()
    before = " " if text[max(start - 1, 0) : start].isalpha() else ""
    after = " " if text[end : end + 1].isalpha() else ""
    return before + words + after


def _spell_whole(digits: str, language: Language, is_plain: bool = True) -> str:
    """Say digits where num2words knows the language; otherwise leave them to the voice.

    Digits that are not plain had separators or a fraction: they are no year.
    """
    if language.num2words_code is None:
        return digits
    if len(digits) > _LONGEST_CARDINAL or digits.startswith("0") and len(digits) > 1:
        return _spell_each(digits, language)
    value = int(digits)
    if not (is_plain and language.says_hundreds and value in _SAID_IN_HUNDREDS):
        return _spell_number(value, language)
    hundreds, rest = divmod(value, 100)
    hundred = _spell_number(100, language).removeprefix("ein")
    tail = _spell_number(rest, language) if rest else ""
    return _spell_number(hundreds, language) + hundred + tail


def _spell_number(value: int, language: Language) -> str:
    """Say a number as num2words does, with what it gets wrong put right."""
    spoken = spell_number(value, language.num2words_code or "en")
    for pattern, right in language.number_repairs:
        spoken = re.sub(pattern, right, spoken)
    return spoken


def _spell_each(digits: str, language: Language) -> str:
    """Say each digit by itself."""
    code = language.num2words_code
    return " ".join(
        digits if code is None else (spell_number(int(digit), code) for digit in digits)
    )
