"""Persian as it is spoken: one spelling per letter, zero-width non-joiners, numbers in words."""

import re

from myxtts.text.numbers import set_apart
from myxtts.text.persian_numbers import cardinal, decimal_words, ordinal, whole_number

ZWNJ = "\u200c"


def expand(text: str) -> str:
    """Unify the letters of a Persian text and say its numbers, dates, money and abbreviations."""
    text = unify_letters(text)
    for pattern, words in _ABBREVIATIONS:
        text = pattern.sub(words, text)
    if any(character.isdigit() for character in text):
        for pattern, speak in _NUMBER_RULES:
            text = pattern.sub(speak, text)
    text = text.replace("%", " درصد ").replace("&", " و ")
    return join_affixes(text)


def unify_letters(text: str) -> str:
    """Write Arabic letters the Persian way and drop diacritics and stretching."""
    text = _EZAFE_HAMZA.sub("ه\u200cی", text)
    return _DROPPED.sub("", text.translate(_LETTERS))


def join_affixes(text: str) -> str:
    """Put a zero-width non-joiner between a word and its prefix or suffix, and nowhere else."""
    text = re.sub(r"\u200c{2,}", ZWNJ, text)
    text = re.sub(rf"\u200c(?![{_LETTER}])|(?<![{_LETTER}])\u200c", "", text)
    text = _PREFIX.sub(rf"\1{ZWNJ}", text)
    return _SUFFIX.sub(rf"{ZWNJ}\1", text)


_LETTERS = str.maketrans(
    {
        **dict.fromkeys("يىېۍێ", "ی"),
        **dict.fromkeys("كڪڬ", "ک"),
        **dict.fromkeys("ەہھةۃ", "ه"),
        **dict.fromkeys("أإٱ", "ا"),
        "¬": ZWNJ,
        "﷼": " ریال ",
    }
)
# Tatweel and the vowel marks, which few texts write; the tanvin of "مثلاً" is a letter in all but
# name and stays.
_DROPPED = re.compile("[\u0610-\u061a\u0640\u064c-\u065f\u0670\u06d6-\u06ed]")
_EZAFE_HAMZA = re.compile("ۀ|[هە]\u0654|ه\u200c?ٔ")
_LETTER = "\u0621-\u06d3\u064b"
_PREFIX = re.compile(rf"(?<![{_LETTER}{ZWNJ}])(ن?می) (?=[{_LETTER}]{{2}})")
_SUFFIX = re.compile(
    rf"(?<=[{_LETTER}]) (ها(?:ی(?:ی|م|ت|ش|مان|تان|شان)?)?|تر(?:ین)?)(?![{_LETTER}{ZWNJ}])"
)
_START = rf"(?<![{_LETTER}])"
_ABBREVIATIONS = [
    (re.compile(pattern + rf"(?![{_LETTER}])"), words)
    for pattern, words in (
        (_START + r"ه\. ?ش\.?", "هجری شمسی"),
        (_START + r"ه\. ?ق\.?", "هجری قمری"),
        (_START + r"ق\. ?م\.?", "پیش از میلاد"),
        (_START + r"ص\. ?(?=\d)", "صفحه "),
        (_START + r"ج\. ?(?=\d)", "جلد "),
        (r"\(ع\)", " علیه السلام"),
        (r"\(ص\)", " صلی الله علیه و آله"),
        (r"\(ره\)", " رحمت الله علیه"),
    )
]
_SOLAR_MONTHS = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند".split()
_MONTHS = "ژانویه فوریه مارس آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر".split()
_CURRENCIES = {"$": "دلار", "€": "یورو", "£": "پوند", "¥": "ین"}
_SIGNS = "".join(_CURRENCIES)


def _date(match: re.Match) -> str:
    """Say year/month/day; years before 1600 are of the solar calendar."""
    year, month, day = map(int, match.groups())
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0].replace("/", " ").replace("-", " ")
    months = _SOLAR_MONTHS if year < 1600 else _MONTHS
    return set_apart(match, f"{ordinal(day)} {months[month - 1]} {cardinal(year)}")


def _time(match: re.Match) -> str:
    """Say hours, and minutes if there are any."""
    hour, minute = int(match[1]), int(match[2])
    words = cardinal(hour) + (f" و {cardinal(minute)} دقیقه" if minute else "")
    return set_apart(match, words)


def _money(match: re.Match) -> str:
    return set_apart(match, f"{_plain(match[2])} {_CURRENCIES[match[1]]}")


def _money_after(match: re.Match) -> str:
    return set_apart(match, f"{_plain(match[1])} {_CURRENCIES[match[2]]}")


def _ordinal(match: re.Match) -> str:
    """Say "۳م" and "۳ام" as "سوم", and "۳مین" as "سومین"."""
    digits = match[1]
    if len(digits) > 15:
        return match[0]
    suffix = "ین" if match[2].endswith("ین") else ""
    return set_apart(match, ordinal(int(digits)) + suffix)


def _plain(number: str) -> str:
    """Say a whole or decimal number, with or without thousands separators."""
    number = number.replace(",", "").replace("/", ".")
    return decimal_words(number) if "." in number else whole_number(number)


_FREE = r"(?<![\d.,/])"
# A single slash between digits is a decimal point: "۲/۵ درصد" is two and a half per cent.
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:[./]\d+(?![\d/]))?"
# In this order: each rule leaves words behind, so that the next sees only the numbers left.
_NUMBER_RULES = [
    (re.compile(pattern), speak)
    for pattern, speak in (
        (rf"([{_SIGNS}])\s?({_NUMBER})", _money),
        (rf"{_FREE}({_NUMBER})\s?([{_SIGNS}])", _money_after),
        (r"(?<![\d/-])(\d{4})[/-](\d{1,2})[/-](\d{1,2})(?![\d/-])", _date),
        (r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])", _time),
        (r"(?<![\d.,/])(\d+)(\u200c?م(?:ین)?|[\u200c ]?ام(?:ین)?)(?![\u0621-\u06d3])", _ordinal),
        (r"(?<![\d.,-])(\d{1,9})-(?=\d)", r"\1 تا "),
        (r"(?<![\w)])-(?=\d)", "منفی "),
        (_NUMBER, lambda match: set_apart(match, _plain(match[0]))),
    )
]
