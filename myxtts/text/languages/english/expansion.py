"""English as it is spoken: money, ordinals, units and plain numbers in words."""

import re

from myxtts.text.languages.english.abbreviations import expand_abbreviations
from myxtts.text.languages.english.dates import DATE_RULES
from myxtts.text.languages.english.numbers import (
    cardinal,
    decimal_words,
    ordinal,
    spell_digits,
    whole_number,
    year,
)
from myxtts.text.numbers import set_apart

# Patterns begin where no digit precedes: otherwise a long run of digits is scanned again from
# each of its digits. A number may have thousands separators and decimals.
_FREE = r"(?<![\w.,])"
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
_CURRENCIES = {  # sign: one, many, one hundredth, many hundredths
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
}
_SIGNS = "".join(_CURRENCIES)
_MAGNITUDES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion"}
_UNITS = {
    "km/h": "kilometer per hour|kilometers per hour",
    "mph": "mile per hour|miles per hour",
    "kg": "kilogram|kilograms",
    "mg": "milligram|milligrams",
    "g": "gram|grams",
    "km": "kilometer|kilometers",
    "cm": "centimeter|centimeters",
    "mm": "millimeter|millimeters",
    "lb": "pound|pounds",
    "lbs": "pound|pounds",
    "oz": "ounce|ounces",
    "ft": "foot|feet",
    "mi": "mile|miles",
    "ml": "milliliter|milliliters",
    "kHz": "kilohertz|kilohertz",
    "MHz": "megahertz|megahertz",
    "GHz": "gigahertz|gigahertz",
    "Hz": "hertz|hertz",
    "KB": "kilobyte|kilobytes",
    "MB": "megabyte|megabytes",
    "GB": "gigabyte|gigabytes",
    "°C": "degree Celsius|degrees Celsius",
    "°F": "degree Fahrenheit|degrees Fahrenheit",
    "°": "degree|degrees",
}
_SPOKEN_SIGNS = {"&": " and ", "@": " at ", "+": " plus ", "=": " equals ", "×": " times "}
_FRACTION_NAMES = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_SLASHED_NAMES = {"24/7": "twenty-four seven", "9/11": "nine eleven"}
_SITE = re.compile(r"(?<![\w.-])(?:[\w-]{1,63}\.){1,8}(?:com|org|net|edu|gov|io)\b")


def expand(text: str) -> str:
    """Say everything in a text that is not already a word."""
    text = _SITE.sub(lambda m: m[0].replace(".", " dot "), text)
    text = expand_abbreviations(text)
    if any(character.isdigit() for character in text):
        for pattern, speak in _NUMBER_RULES:
            text = pattern.sub(speak, text)
    for sign, words in _SPOKEN_SIGNS.items():
        text = text.replace(sign, words)
    return text


def _money(match: re.Match[str]) -> str:
    """Say an amount: "$5.50" is "five dollars and fifty cents"."""
    sign, amount, magnitude = match[1], match[2].replace(",", ""), match[3]
    one, many, cent, cents = _CURRENCIES[sign]
    if magnitude:
        return f"{_plain(amount)} {_MAGNITUDES.get(magnitude.lower(), magnitude)} {many}"
    whole, _, fraction = amount.partition(".")
    if fraction and len(fraction) != 2:
        return f"{_plain(amount)} {many}"
    major = f"{_plain(whole)} {one if whole == '1' else many}"
    if not int(fraction or 0):
        return major
    minor = f"{cardinal(int(fraction))} {cent if fraction == '01' else cents}"
    return f"{major} and {minor}" if whole.strip("0") else minor


def _cents(match: re.Match[str]) -> str:
    return f"{_plain(match[1])} {'cent' if match[1] == '1' else 'cents'}"


def _money_after(match: re.Match[str]) -> str:
    """Say an amount whose sign follows it, as in "20 €"."""
    return _plain(match[1]) + f" {_CURRENCIES[match[2]][0 if match[1] == '1' else 1]}"


def _range(match: re.Match[str]) -> str:
    """Say a hyphen between two numbers as "to"."""
    first, last = (
        year(int(number)) if len(number) == 4 and _is_year(number) else whole_number(number)
        for number in match.groups()
    )
    return f"{first} to {last}"


def _fraction(match: re.Match[str]) -> str:
    """Say "3/4" as "three quarters" and "2 1/2" as "two and a half"."""
    if match[0] in _SLASHED_NAMES:
        return _SLASHED_NAMES[match[0]]
    whole, top, bottom = match.groups()
    numerator, denominator = int(top), int(bottom)
    if denominator < 2 or denominator > 100 or numerator >= denominator or numerator < 1:
        return f"{f'{_plain(whole)} ' if whole else ''}{cardinal(numerator)} over {_plain(bottom)}"
    one, many = _FRACTION_NAMES.get(denominator, (ordinal(denominator), ordinal(denominator) + "s"))
    if not whole:
        return f"{cardinal(numerator)} {one if numerator == 1 else many}"
    article = "a" if numerator == 1 else cardinal(numerator)
    return f"{_plain(whole)} and {article} {one if numerator == 1 else many}"


def _unit(match: re.Match[str]) -> str:
    one, many = _UNITS[match[2]].split("|")
    return set_apart(match, f"{_plain(match[1])} {one if match[1] == '1' else many}")


def _ordinal(match: re.Match[str]) -> str:
    digits = match[1].replace(",", "")
    return ordinal(int(digits)) if len(digits) < 16 else spell_digits(digits)


def _general(match: re.Match[str]) -> str:
    """Say any other number; four digits without a comma read like a year."""
    number = match[0]
    if number.count(".") > 1 or number.startswith("."):
        words = decimal_words(number.replace(",", ""))
    elif number.isdigit() and len(number) > 2 and _follows_letter(match):
        words = spell_digits(number)  # a serial number, such as C2766
    else:
        words = year(int(number)) if _is_year(number) else _plain(number)
    return set_apart(match, words)


def _follows_letter(match: re.Match[str]) -> bool:
    return match.start() > 0 and match.string[match.start() - 1].isalpha()


def _is_year(number: str) -> bool:
    return len(number) == 4 and number.isdigit() and "1010" <= number <= "2099"


def _plain(number: str) -> str:
    """Say a whole or decimal number, with or without thousands separators."""
    number = number.replace(",", "")
    return decimal_words(number) if "." in number else whole_number(number)


_UNIT_NAMES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
# In this order: each rule leaves words behind, so that the next sees only the numbers left.
_NUMBER_RULES = [
    (re.compile(pattern), speak)
    for pattern, speak in (
        (r"\d{40,}", lambda m: spell_digits(m[0])),
        (rf"([{_SIGNS}])\.(?=\d)", r"\g<1>0."),
        (rf"(?<![\w)])-(?=[{_SIGNS}]?\d)", "minus "),
        (
            rf"(?:US|A)?([{_SIGNS}])\s?({_NUMBER})"
            r"(?:[ -]?(thousand|million|billion|trillion|k|m|bn|b)\b)?",
            _money,
        ),
        (rf"{_FREE}({_NUMBER})\s?¢", _cents),
        (rf"{_FREE}({_NUMBER})\s?([{_SIGNS}])", _money_after),
        (rf"{_FREE}({_NUMBER})\s?%", lambda m: set_apart(m, f"{_plain(m[1])} percent")),
        *DATE_RULES,
        (r"(?<![\d-])(?:\d{3}-)?\d{3}-\d{4}(?![\d-])", lambda m: _spell_phone(m[0])),
        (r"(?<![\d.,-])(\d{1,9})-(\d{1,9})(?!\d|[.,-]\d)", _range),
        (r"(?<![\d/.,])(?:(\d{1,9}) )?(\d{1,9})/(\d{1,9})(?![\d/])", _fraction),
        (rf"{_FREE}(\d{{1,3}}(?:,\d{{3}})+|\d+)(?:st|nd|rd|th)\b", _ordinal),
        (rf"{_FREE}({_NUMBER})[ -]?({_UNIT_NAMES})(?!\w)(?:\.(?= [a-z]))?", _unit),
        (r"#\s?(?=\d)", "number "),
        (rf"(?<![\w.])\.\d+|{_NUMBER}(?:\.\d+)*", _general),
    )
]


def _spell_phone(number: str) -> str:
    return ", ".join(spell_digits(group) for group in number.split("-"))
