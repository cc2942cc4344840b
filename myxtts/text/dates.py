"""Dates and times of day for languages without rules of their own."""

import re

from myxtts.text.language import Language
from myxtts.text.number_words import spell_number

_YEAR_FIRST = re.compile(r"(?<![\d./-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d/-]|\.\d)")
_DAY_FIRST = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?![\d/-]|\.\d)")
_TIME = re.compile(r"(?<![\d:.,])([01]?\d|2[0-3]):([0-5]\d)(?![\d:]|[.,]\d)")
_LONGEST_MONTH = 31
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\.? $")
_LONGEST_WORD = 40


def say_dates(text: str, language: Language) -> str:
    """Write the month of a date as a word; day and year stay numbers, for the rules after this."""
    if not language.months:
        return text
    text = _say_written_dates(text, language)
    text = _YEAR_FIRST.sub(lambda m: _date(m, m[3], m[2], m[1], language), text)
    return _DAY_FIRST.sub(lambda m: _date(m, m[1], m[3], m[4], language), text)


def _say_written_dates(text: str, language: Language) -> str:
    """Say the day next to the name of a month, "3. Mai", where it is not said as a number."""
    names = "|".join(map(re.escape, sorted(language.months, key=len, reverse=True)))
    if language.date.find("{month}") < language.date.find("{day}"):
        text = re.sub(rf"(?i)(\d{{4}})\. ({names})\b", r"\1 \2", text)
        pattern = rf"(?i)\b({names}) (\d{{1,2}})(?:\.(?=\s|$)|(?![\d.,:-]))"
        return re.sub(pattern, lambda m: _month_first(m, language), text)
    if not language.days and "{ordinal}" not in language.date:
        return text
    dot = r"\." if language.has_dotted_ordinals else ""
    mark = rf"(?:{dot} ?|\s)" if dot else r"\s"
    year = (
        r"(?:\s(\d{4})(?:\s(?:roku|r\.|года|г\.))?(?![\d.,]\d))?" if language.year_words else "()"
    )
    pattern = rf"(?i)(?:\b(\w+) )?(?<![\d.,:])\b(\d{{1,2}}){mark}({names})\b{year}"
    return re.sub(pattern, lambda m: _day_first(m, language), text)


def _month_first(match: re.Match[str], language: Language) -> str:
    day = language.days.get(int(match[2]))
    is_end = match[0].endswith(".") and match.end() == len(match.string)
    return f"{match[1]} {day}{'.' if is_end else ''}" if day else match[0]


def _day_first(match: re.Match[str], language: Language) -> str:
    before, number, month, year = match[1], int(match[2]), match[3], match[4]
    if not 1 <= number <= _LONGEST_MONTH:
        return match[0]
    if "{ordinal}" in language.date:
        day = _day_ordinal(number, before or "", language)
    elif number not in language.days:
        return match[0]
    else:
        day = language.days[number]
    if year and language.year_words:
        month = f"{month} {language.year_words(int(year))}"
    return f"{before + ' ' if before else ''}{day} {month}"


def _day_ordinal(number: int, before: str, language: Language) -> str:
    ending = language.day_endings.get(before.lower(), language.day_endings[""])
    return spell_number(number, language.num2words_code or "en", "ordinal") + ending


def say_times(text: str, language: Language) -> str:
    """Put the words of a time of day between its numbers; full hours have no minutes."""
    if not language.clock:
        return text
    unit = language.full_hour.replace("{hour}", "").strip()
    said = rf"(?:\s{unit}\b)?" if unit else ""  # "8:30 Uhr" has one "uhr"
    pattern = rf"(?i){_TIME.pattern}{said}"
    return re.sub(pattern, lambda match: _time(match, language), text)


def _date(match: re.Match[str], day: str, month: str, year: str, language: Language) -> str:
    place, number = int(month), int(day)
    if not (1 <= place <= len(language.months) and 1 <= number <= _LONGEST_MONTH):
        return match[0]
    name = language.months[place - 1]
    if "{ordinal}" in language.date:
        day = _day_ordinal(number, word_before(match), language)
        return language.date.format(ordinal=day, month=name, year=year)
    if language.year_words is not None:
        year = language.year_words(int(year))
    day = language.days.get(number, str(number))
    return language.date.format(day=day, month=name, year=year)


def _time(match: re.Match[str], language: Language) -> str:
    hour, minute = int(match[1]), int(match[2])
    words = language.clock if minute else language.full_hour
    return words.format(hour=language.hours.get(hour, hour), minute=minute)


def word_before(match: re.Match[str]) -> str:
    """The word before a match, without the dot of an abbreviation, or nothing."""
    start = max(match.start() - _LONGEST_WORD, 0)
    found = _WORD_BEFORE.search(match.string[start : match.start()])
    return found[1] if found else ""
