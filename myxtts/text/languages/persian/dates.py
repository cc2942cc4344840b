"""Persian dates, times of day and telephone numbers in words."""

import re

from myxtts.text.languages.persian.numbers import cardinal, is_number, ordinal, spell_digits
from myxtts.text.numbers import set_apart

_SOLAR_MONTHS = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند".split()
_MONTHS = "ژانویه فوریه مارس آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر".split()
_FIRST_GREGORIAN_YEAR = 1600  # no text in the solar calendar is of a later year
_FEWEST_PHONE_DIGITS = 7
_LONGEST_MONTH = 31
# Months whose names are other words too need a year or the word "ماه" behind them.
_AMBIGUOUS = frozenset("تیر مه اوت".split())
_LUNAR_MONTHS = "محرم ربیع جمادی رجب شعبان رمضان شوال ذیقعده ذی‌القعده ذیحجه ذی‌الحجه".split()
_ALL_MONTHS = frozenset(_SOLAR_MONTHS + _MONTHS + _LUNAR_MONTHS)
_PLAIN = "|".join(sorted(_ALL_MONTHS - _AMBIGUOUS))
_OTHERS = "|".join(sorted(_AMBIGUOUS))


def is_date(word: str, after: str) -> bool:
    """Whether two words are a day and its month, as in "سوم خرداد"."""
    is_ordinal = word.endswith("م") and is_number(word)
    return is_ordinal and after.removesuffix("ماه").rstrip("\u200c") in _ALL_MONTHS


def _year_first(match: re.Match[str]) -> str:
    return _date(match, match[1], match[2], match[3])


def _day_first(match: re.Match[str]) -> str:
    """Say day/month/year, or month/day/year where only that is a date."""
    day, month, year = match.groups()
    if int(month) > len(_MONTHS) >= int(day):
        day, month = month, day
    return _date(match, year, month, day)


def _short_year(match: re.Match[str]) -> str:
    """Say a date whose year has two digits; only a number above 31 shows where the year is."""
    first, month, last = match.groups()
    if int(first) > _LONGEST_MONTH:
        return _date(match, first, month, last)
    if int(last) > _LONGEST_MONTH:
        return _date(match, last, month, first)
    return _apart(match)


def _date(match: re.Match[str], year: str, month: str, day: str) -> str:
    number, at = int(year), int(month)
    if not (1 <= at <= len(_MONTHS) and 1 <= int(day) <= _LONGEST_MONTH):
        return _apart(match)
    months = _SOLAR_MONTHS if number < _FIRST_GREGORIAN_YEAR else _MONTHS
    return set_apart(match, f"{ordinal(int(day))} {months[at - 1]} {cardinal(number)}")


def _apart(match: re.Match[str]) -> str:
    """Leave the numbers of what is not a date, to be said one after another."""
    return match[0].replace("/", " ").replace("-", " ")


def _day_of_month(match: re.Match[str]) -> str:
    """Say the day before the name of a month as an ordinal, as in "سوم خرداد"."""
    day = int(match[1])
    return set_apart(match, f"{ordinal(day)} ") if 1 <= day <= _LONGEST_MONTH else match[0]


def _time(match: re.Match[str]) -> str:
    """Say hours, and minutes and seconds if there are any."""
    hour, minute, second = (int(part or 0) for part in match.groups())
    words = cardinal(hour)
    words += f" و {cardinal(minute)} دقیقه" if minute else ""
    words += f" و {cardinal(second)} ثانیه" if second else ""
    return set_apart(match, words)


def _phone(match: re.Match[str]) -> str:
    """Say a telephone number digit by digit, with a pause between its groups."""
    groups = re.findall(r"\d+", match[0])
    if sum(map(len, groups)) < _FEWEST_PHONE_DIGITS:
        return match[0]
    plus = "مثبت " if match[0].startswith("+") else ""
    return set_apart(match, plus + ", ".join(map(spell_digits, groups)))


def _mobile(match: re.Match[str]) -> str:
    """Say a mobile number in the groups in which it is dictated, however it is written."""
    return set_apart(match, ", ".join(map(spell_digits, match.groups())))


# (pattern, what to say), in the order in which `persian` applies them.
DATE_RULES = (
    (
        # Streets and squares that are named after a day have its number as it is.
        r"(?<!خیابان )(?<!میدان )(?<!بزرگراه )"
        rf"(?<![\d.,/:-])(\d{{1,2}})\s?(?=(?:{_PLAIN})(?:\u200c?ماه)?(?![\u0621-\u06d3])"
        rf"|(?:{_OTHERS})\s?(?:ماه|\d{{2,4}})(?!\d))",
        _day_of_month,
    ),
    # From one date or time to another.
    (r"(?<=/\d|\d\d)-(?=\d{1,4}/\d{1,2}/\d|\d{1,2}:\d\d(?!\d))", " تا "),
    (r"(?<![\d/-])(\d{4})[/-](\d{1,2})[/-](\d{1,2})(?![\d/]|-\d)", _year_first),
    (r"(?<![\d/-])(\d{1,2})[/-](\d{1,2})[/-](\d{4})(?![\d/]|-\d)", _day_first),
    (r"(?<![\d/-])(\d{2})/(\d{1,2})/(\d{1,2})(?![\d/]|-\d)", _short_year),
    (r"(?<![\d/-])(\d{1,2})/(\d{1,2})/(\d{2})(?![\d/]|-\d)", _short_year),
    (r"(?<![\d/.,-])\d+(?:/\d+){2,}(?![\d/])", _apart),
    # A group that begins with zero, or a plus, marks a telephone number: other digits with
    # hyphens are ranges.
    (r"(?<![\d.,/+-])(?:\+\d{1,3}|0\d{1,10})(?:-\d{2,11}){1,5}(?!\d|[.,/-]\d)", _phone),
    (r"(?<![\d.,/+-])\d{4,8}-0\d{1,4}(?!\d|[.,/-]\d)", _phone),
    (r"(?<![\d.,/+-])(?:\+\d{1,3}(?: \d{2,4})?|0\d{1,4}) \d{7,10}(?!\d|[.,/-]\d)", _phone),
    (r"(?<![\d.,/+-])(09\d{2})[ -]?(\d{3})[ -]?(\d{4})(?!\d|[.,/-]\d)", _mobile),
    (r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?![\d:])", _time),
)
