"""Dates and times of day for languages without rules of their own."""

import re

from myxtts.text.language import Language
from myxtts.text.number_words import spell_number

_YEAR_FIRST = re.compile(r"(?<![\d./-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d/-]|\.\d)")
_DAY_FIRST = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?![\d/-]|\.\d)")
_TIME = re.compile(r"(?<![\d:.,])([01]?\d|2[0-3]):([0-5]\d)(?![\d:]|[.,]\d)")
_LONGEST_MONTH = 31


def say_dates(text: str, language: Language) -> str:
    """Write the month of a date as a word; day and year stay numbers, for the rules after this."""
    if not language.months:
        return text
    text = _YEAR_FIRST.sub(lambda m: _date(m, m[3], m[2], m[1], language), text)
    return _DAY_FIRST.sub(lambda m: _date(m, m[1], m[3], m[4], language), text)


def say_times(text: str, language: Language) -> str:
    """Put the words of a time of day between its numbers; full hours have no minutes."""
    if not language.clock:
        return text
    return _TIME.sub(lambda match: _time(match, language), text)


def _date(match: re.Match[str], day: str, month: str, year: str, language: Language) -> str:
    place, number = int(month), int(day)
    if not (1 <= place <= len(language.months) and 1 <= number <= _LONGEST_MONTH):
        return match[0]
    name = language.months[place - 1]
    if "{ordinal}" in language.date:
        words = spell_number(number, language.num2words_code or "en", "ordinal")
        return language.date.format(ordinal=words, month=name, year=year)
    return language.date.format(day=number, month=name, year=year)


def _time(match: re.Match[str], language: Language) -> str:
    hour, minute = int(match[1]), int(match[2])
    words = language.clock if minute else language.full_hour
    return words.format(hour=hour, minute=minute)
