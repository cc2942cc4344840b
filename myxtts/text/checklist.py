"""What a language has and what it lacks, found by reading short texts with it."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from myxtts.text.cleaners import normalise
from myxtts.text.errors import MissingExtraError
from myxtts.text.language import Language
from myxtts.text.languages import get_language
from myxtts.text.phonemes import open_reader, phonemize

_BY_RULES = ("en", "fa")
_DATES = ("2024-05-03", "03.05.2024", "03/05/2024")


class Item(NamedTuple):
    """One line of the checklist; `holds` is None where a package to tell it by is missing."""

    name: str
    holds: bool | None
    how: str


def checklist(code: str) -> list[Item]:
    """Check everything that a language may have."""
    row = get_language(code)
    return [_run(name, check, row) for name, check in _CHECKS.items()]


def _run(name: str, check: Callable[[Language], tuple[bool, str]], row: Language) -> Item:
    try:
        return Item(name, *check(row))
    except MissingExtraError as error:
        return Item(name, None, str(error))


def _letters(row: Language) -> tuple[bool, str]:
    more = ", others as bytes" if row.is_open_script else ""
    return bool(row.alphabet), f"{len(row.alphabet)} letters{more}"


def _numbers(row: Language) -> tuple[bool, str]:
    return _said("1234", row)


def _decimals(row: Language) -> tuple[bool, str]:
    words = row.symbol_words
    return _said("3,5" if words is not None and words.has_decimal_comma else "3.5", row)


def _percentages(row: Language) -> tuple[bool, str]:
    return _longer("10%", "10", row)


def _money(row: Language) -> tuple[bool, str]:
    return _longer("$5", "5", row)


def _dates(row: Language) -> tuple[bool, str]:
    """A date is read as one where it differs from its numbers one after another."""
    for date in _DATES:
        said = normalise(date, row.code)
        numbers = [normalise(n, row.code) for n in re.findall(r"\d+", date)]
        plain = [normalise(str(int(n)), row.code) for n in re.findall(r"\d+", date)]
        if (
            not _has_digits(said, row)
            and not any(
                _words(said) == _words(" ".join(order))
                for order in (numbers, plain, numbers[::-1], plain[::-1])
            )
            and set(_words(said)) - set(_words(" ".join(numbers + plain + list(_signs(row)))))
        ):
            return True, f"{date} is {said}"
    return False, f"{_DATES[0]} is {normalise(_DATES[0], row.code)}"


def _times(row: Language) -> tuple[bool, str]:
    said = normalise("14:30", row.code)
    return ":" not in said and not _has_digits(said, row), f"14:30 is {said}"


def _abbreviations(row: Language) -> tuple[bool, str]:
    if row.code in _BY_RULES:
        return True, "rules of its own"
    said = [f"{short} is {words}" for short, words in row.abbreviation_words.items()]
    if said:
        return True, f"{len(said)} are said: {', '.join(said[:3])}"
    shown = " ".join(sorted(row.abbreviations)[:6])
    return False, f"only as no sentence ends: {shown}" if shown else "none are listed"


_ORDINALS = ("3rd", "3ام", "3e", "3º", "3. a", "am 3. mai", "3 мая", "3 maja", "3. května")
_PREFIXED_ORDINALS = {"Han": "第3", "Kana": "第3", "Hangul": "제3"}


def _ordinals(row: Language) -> tuple[bool, str]:
    """An ordinal is read as one where it differs from its number, or has a word before it."""
    if row.script in _PREFIXED_ORDINALS:
        return _said(_PREFIXED_ORDINALS[row.script], row)
    plain = _words(normalise("3", row.code))[:1]
    for text in _ORDINALS:
        said = normalise(text, row.code)
        added = set(_words(said)) - set(plain) - set(re.findall(r"[^\W\d]+", text))
        if added and not (_has_digits(said, row) or re.search("[º.]", said)):
            return True, f"{text} is {said}"
    return False, f"{_ORDINALS[0]} is {normalise(_ORDINALS[0], row.code)}"


def _phonemes(row: Language) -> tuple[bool, str]:
    spoken = phonemize([normalise(row.greeting, row.code)], row.code)[0]
    return bool(spoken), spoken


def _reader(row: Language) -> tuple[bool, str]:
    if row.open_reader is None:
        return False, "espeak-ng reads alone"
    open_reader(row.code)
    return True, "a front end of its own"


def _guess(row: Language) -> tuple[bool, str]:
    if row.frequent_words:
        return True, f"{len(row.frequent_words)} frequent words"
    is_alone = row.script != "Latin"
    return is_alone, f"by its script, {row.script}" if is_alone else "no frequent words are listed"


def _hard(row: Language) -> tuple[bool, str]:
    count = sum(map(len, row.hard_sentences.values()))
    return bool(count), f"{count} sentences" if count else "none: `evaluate --hard` cannot be used"


def _judged(row: Language) -> tuple[bool, str]:
    return row.judge is not None, "`myxtts text evaluate`" if row.judge else "no test sets"


def _said(text: str, row: Language) -> tuple[bool, str]:
    said = normalise(text, row.code)
    by_voice = ", which the voice says" if re.search(r"\d", said) else ""
    return not _has_digits(said, row), f"{text} is {said}{by_voice}"


def _has_digits(said: str, row: Language) -> bool:
    """Whether digits are left that nobody says; some voices say them by themselves."""
    return bool(re.search(r"\d", said)) and row.num2words_code is not None


def _longer(text: str, bare: str, row: Language) -> tuple[bool, str]:
    said = normalise(text, row.code)
    is_said = len(said) > len(normalise(bare, row.code)) and not re.search(r"[$%]", said)
    return is_said, f"{text} is {said}"


def _signs(row: Language) -> Iterator[str]:
    if row.symbol_words is not None:
        yield from (row.symbol_words.minus, row.symbol_words.point)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


_CHECKS = {
    "letters": _letters,
    "numbers in words": _numbers,
    "decimals": _decimals,
    "percentages": _percentages,
    "money": _money,
    "dates": _dates,
    "times": _times,
    "ordinals": _ordinals,
    "abbreviations": _abbreviations,
    "phonemes": _phonemes,
    "front end": _reader,
    "found by itself": _guess,
    "hard sentences": _hard,
    "test sets": _judged,
}
