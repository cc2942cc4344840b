"""English times of day, dates and decades in words."""

import re

from myxtts.text.languages.english.numbers import cardinal, ordinal, whole_number, year

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = rf"(?i:({'|'.join(_MONTHS)}))"


def _time(match: re.Match[str]) -> str:
    """Say a time of day: "5:05" is "five oh five", "5:00" "five o'clock" unless a.m. follows."""
    hour, minute, second, meridiem = match.groups()
    words = cardinal(int(hour))
    if int(minute):
        words += f" {'oh ' if int(minute) < 10 else ''}{cardinal(int(minute))}"
    elif not meridiem and not second:
        words += " o'clock" if 0 < int(hour) <= 12 else " hundred"
    if second:
        words += f" and {cardinal(int(second))} second{'' if int(second) == 1 else 's'}"
    return words + (f" {meridiem.lower()[0]}-m" if meridiem else "")


def _iso_date(match: re.Match[str]) -> str:
    return _date(match[0], int(match[1]), int(match[2]), int(match[3]))


def _slashed_date(match: re.Match[str]) -> str:
    """Say month/day/year, or day/month/year where only that is a date."""
    first, second, full_year = map(int, match.groups())
    month, day = (second, first) if first > 12 else (first, second)
    return _date(match[0], full_year, month, day)


def _date(written: str, full_year: int, month: int, day: int) -> str:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return written.replace("/", " ").replace("-", " ")
    return f"{_MONTHS[month - 1]} {ordinal(day)}, {year(full_year)}"


def _month_day(match: re.Match[str]) -> str:
    """Say "May 3, 1999" as "May third, nineteen ninety-nine"."""
    month, day, full_year = match.groups()
    return f"{month} {ordinal(int(day))}" + (f", {year(int(full_year))}" if full_year else "")


def _day_month(match: re.Match[str]) -> str:
    """Say "3 May" and "3rd May" as "third May"."""
    return f"{ordinal(int(match[1]))} {match[2] or ''}{match[3]}"


def _decade(match: re.Match[str]) -> str:
    """Say "1960s" as "nineteen sixties" and "'60s" as "sixties"."""
    words = year(int(match[1])) if len(match[1]) == 4 else cardinal(int(match[1]))
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


# (pattern, what to say), in the order in which `english` applies them.
DATE_RULES = (
    (
        r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?![\d:])"
        r"(?: ?([AaPp])(?:[.-]?[Mm])\b)?",
        _time,
    ),
    (r"(?<![\d:])(\d{1,2}) ?([AaPp])\.?[Mm]\b", lambda m: f"{whole_number(m[1])} {m[2].lower()}-m"),
    (r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])", _iso_date),
    (r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])", _slashed_date),
    (
        rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.,]\d|\d|/)(?:,? (\d{{4}})(?!\d))?",
        _month_day,
    ),
    (rf"(?<![\w.,/])(\d{{1,2}})(?:st|nd|rd|th)? (of )?{_MONTH}\b", _day_month),
    (r"(?<![\w.,])'?(\d{3}0|\d0)s\b", _decade),
)
