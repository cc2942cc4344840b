"""Persian as it is spoken: one spelling per letter, zero-width non-joiners, numbers in words."""

import re

from myxtts.text.languages.persian.dates import DATE_RULES
from myxtts.text.languages.persian.emoji import say_emoji
from myxtts.text.languages.persian.net import say_addresses
from myxtts.text.languages.persian.numbers import (
    decimal_words,
    ordinal,
    spell_digits,
    whole_number,
)
from myxtts.text.languages.persian.signs import SIGN_RULES
from myxtts.text.languages.persian.units import say_acronyms, say_units
from myxtts.text.numbers import set_apart

ZWNJ = "\u200c"


def expand(text: str) -> str:
    """Unify the letters of a Persian text and say its numbers, dates, money and abbreviations."""
    text = say_addresses(say_emoji(unify_letters(text)))
    text = say_acronyms(say_units(text))
    for pattern, words in _ABBREVIATIONS:
        text = pattern.sub(words, text)
    if any(character.isdigit() for character in text):
        for pattern, speak in _NUMBER_RULES:
            text = pattern.sub(speak, text)
    text = text.replace("%", " درصد ").replace("&", " و ")
    return join_affixes(text)


def unify_letters(text: str) -> str:
    """Write Arabic letters the Persian way; drop stretching and diacritics but a written ezafe."""
    text = _EZAFE_HAMZA.sub("ه\u200cی", text)
    text = _DROPPED.sub("", text.translate(_LETTERS))
    return _INNER_KASRA.sub("", text)


def join_affixes(text: str) -> str:
    """Put a zero-width non-joiner between a word and its prefix or suffix, and nowhere else."""
    text = re.sub(r"\u200c{2,}", ZWNJ, text)
    text = re.sub(rf"\u200c(?![{_LETTER}])|(?<![{_LETTER}])\u200c", "", text)
    text = _PREFIX.sub(rf"\1{ZWNJ}", text)
    text = _SUFFIX.sub(rf"{ZWNJ}\1", text)
    text = _AFTER_HE.sub(rf"{ZWNJ}\1", text)
    return _COMPARATIVE.sub(_join_comparative, text)


def _join_comparative(match: re.Match[str]) -> str:
    """Join "تر" to an adjective; after a noun or an ezafe it is a word, which means wet."""
    word, suffix = match.groups()
    is_own_word = suffix == "تر" and (word in _NEVER_COMPARED or _HAS_EZAFE.search(word))
    return f"{word} {suffix}" if is_own_word else f"{word}{ZWNJ}{suffix}"


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
# Tatweel and the vowel marks, which few texts write. Two are letters in all but name and stay: the
# tanvin of "مثلاً", and the kasra at the end of a word, which is an ezafe.
_DROPPED = re.compile("[\u0610-\u061a\u0640\u064c-\u064f\u0651-\u065f\u0670\u06d6-\u06ed]")
_BARE_LETTER = "\u0621-\u064a\u0671-\u06d3"
_INNER_KASRA = re.compile(f"(?<![{_BARE_LETTER}])\u0650|\u0650(?=[{_BARE_LETTER}\u0650\u200c])")
_EZAFE_HAMZA = re.compile("ۀ|[هە]\u0654|ه\u200c?ٔ")
_LETTER = "\u0621-\u06d3\u064b"
_PREFIX = re.compile(rf"(?<![{_LETTER}{ZWNJ}])(ن?می) (?=[{_LETTER}]{{2}})")
_END = rf"(?![{_LETTER}{ZWNJ}])"
_SUFFIX = re.compile(rf"(?<=[{_LETTER}]) (ها(?:ی(?:ی|م|ت|ش|مان|تان|شان)?)?){_END}")
_AFTER_HE = re.compile(rf"(?<=[{_LETTER}]ه) (ای|اند){_END}")
# Next to another adjective, as in "تر و تازه", it is a word whatever stands before.
_COMPARATIVE = re.compile(
    rf"(?<![{_LETTER}{ZWNJ}])([{_LETTER}{ZWNJ}]{{1,40}}) "
    rf"(ترین|تر(?! و (?:تازه|خشک|تمیز|فرز|چسبان)(?![{_LETTER}]))){_END}"
)
_HAS_EZAFE = re.compile(rf"\u0650$|[{_LETTER}]ای$|ه{ZWNJ}ی$|^(?:مو|رو|بو|جو|خو|گلو)ی$")
_NEVER_COMPARED = frozenset(
    "و یا که را از با به در بر تا هم هر نه اما ولی اگر چون پس این آن من تو او ما شما است بود شد "
    "باز همه چه هیچ یک "
    "چشم چشمان دیده مژه مژگان لب گونه دست دامن زبان خاک زمین علف چوب هیزم شاخه برگ میوه نان لباس "
    "پیراهن دستمال پارچه حوله کاغذ هوا آب خشک".split()
)
_START = rf"(?<![{_LETTER}])"
_ABBREVIATIONS = [
    (re.compile(pattern + rf"(?![{_LETTER}])"), words)
    for pattern, words in (
        (_START + r"ه\. ?ش\.?", "هجری شمسی"),
        (_START + r"ه\. ?ق\.?", "هجری قمری"),
        (_START + r"ق\. ?م\.?", "پیش از میلاد"),
        (_START + r"ص\.? ?(?=\d)", "صفحه "),
        (_START + r"ج\.? ?(?=\d)", "جلد "),
        (r"\(ع\)", " علیه السلام"),
        (r"\(ص\)", " صلی الله علیه و آله"),
        (r"\(ره\)", " رحمت الله علیه"),
        (r"\(س\)", " سلام الله علیها"),
        (r"\(عج\)", " عجل الله تعالی فرجه"),
        (_START + r"پ\. ?ن\.?", "پی\u200cنوشت"),
        (_START + r"ر\. ?ک\.?", "رجوع کنید"),
        (_START + r"ج\. ?ا\.?", "جمهوری اسلامی"),
        (r"(?<=\d) ?م\.(?= |$)", " میلادی"),
    )
]
_CURRENCIES = {"$": "دلار", "€": "یورو", "£": "پوند", "¥": "ین"}
_SIGNS = "".join(_CURRENCIES)


def _money(match: re.Match[str]) -> str:
    magnitude = f" {match[3]}" if match[3] else ""
    return set_apart(match, f"{_plain(match[2])}{magnitude} {_CURRENCIES[match[1]]}")


def _money_after(match: re.Match[str]) -> str:
    return set_apart(match, f"{_plain(match[1])} {_CURRENCIES[match[2]]}")


def _ordinal(match: re.Match[str]) -> str:
    """Say "۳م" and "۳ام" as "سوم", and "۳مین" as "سومین"."""
    digits = match[1]
    if len(digits) > 15:
        return match[0]
    suffix = "ین" if match[2].endswith("ین") else ""
    said = "اول" if suffix and int(digits) == 1 else ordinal(int(digits))
    return set_apart(match, said + suffix)


def _century(match: re.Match[str]) -> str:
    """Centuries are counted: "قرن ۲۱" is the twenty-first."""
    return ordinal(int(match[0]))


def _card(match: re.Match[str]) -> str:
    """Say the number of a bank card, group by group."""
    return set_apart(match, ", ".join(map(spell_digits, match.groups())))


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
        (
            rf"([{_SIGNS}])\s?({_NUMBER})(?:\s?(هزار|میلیون|میلیارد|تریلیون)(?![{_LETTER}]))?",
            _money,
        ),
        (rf"{_FREE}({_NUMBER})\s?([{_SIGNS}])", _money_after),
        (r"(?<![\d-])(\d{4})[ -](\d{4})[ -](\d{4})[ -](\d{4})(?![\d-])", _card),
        *DATE_RULES,
        *SIGN_RULES,
        (rf"(?:(?<={_START}قرن )|(?<={_START}سده ))[1-9]\d?(?![\d.,/:-]|\u200c?ا?م)", _century),
        (r"(?<=نتیجه )(\d{1,2}) ?[-—] ?(\d{1,2})(?!\d)", r"\1 بر \2"),
        (rf"{_FREE}(?<!-)(\d{{1,2}}) ?[-—] ?(\d{{1,2}})(?= به (?:نفع|سود) )", r"\1 بر \2"),
        # On a keyboard from right to left the sign is easily typed behind the number.
        (rf"{_FREE}(?<!-)(\d+(?:[./]\d+)?)-(?= ?درجه)", r"منفی \1"),
        (r"(?<![\d.,/])\d+(?:\.\d+){2,}", lambda m: m[0].replace(".", " نقطه ")),
        (r"(?<![\d.,/])(\d+)(\u200c?م(?:ین)?|[\u200c ]?ام(?:ین)?)(?![\u0621-\u06d3])", _ordinal),
        (r"(?<=,\d{3})-(?=\d{1,3},\d{3})", " تا "),
        (r"(?<![\d.,-])(\d{1,9})-(?=\d)", r"\1 تا "),
        (r"(?<![\w)])-(?=\d)", "منفی "),
        (_NUMBER, lambda match: set_apart(match, _plain(match[0]))),
    )
]
