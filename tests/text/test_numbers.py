"""Number spellers against words written by hand."""

import builtins

import pytest

from myxtts.text import number_words
from myxtts.text.cleaners import normalise
from myxtts.text.errors import MissingExtraError
from myxtts.text.languages.english import numbers as english_numbers
from myxtts.text.languages.persian import numbers as persian_numbers


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "zero"),
        (19, "nineteen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (101, "one hundred one"),
        (1_000, "one thousand"),
        (12_345, "twelve thousand three hundred forty-five"),
        (-7, "minus seven"),
        (10**15, "one quadrillion"),
        (10**12 + 1, "one trillion one"),
        (10**36, "one" + " zero" * 36),
    ],
)
def test_english_cardinals(value, words):
    assert english_numbers.cardinal(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "first"),
        (2, "second"),
        (3, "third"),
        (5, "fifth"),
        (8, "eighth"),
        (9, "ninth"),
        (12, "twelfth"),
        (20, "twentieth"),
        (21, "twenty-first"),
        (100, "one hundredth"),
        (1_002, "one thousand second"),
    ],
)
def test_english_ordinals(value, words):
    assert english_numbers.ordinal(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1066, "ten sixty-six"),
        (1900, "nineteen hundred"),
        (1905, "nineteen oh five"),
        (1999, "nineteen ninety-nine"),
        (2000, "two thousand"),
        (2005, "two thousand five"),
        (2024, "twenty twenty-four"),
        (476, "four hundred seventy-six"),
    ],
)
def test_english_years(value, words):
    assert english_numbers.year(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "صفر"),
        (13, "سیزده"),
        (110, "صد و ده"),
        (555, "پانصد و پنجاه و پنج"),
        (1_000, "هزار"),
        (2_000, "دو هزار"),
        (1_000_000, "یک میلیون"),
        (10**9 + 1_001, "یک میلیارد و هزار و یک"),
        (10**15, "یک کوادریلیون"),
        (-3, "منفی سه"),
    ],
)
def test_persian_cardinals(value, words):
    assert persian_numbers.cardinal(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(1, "یکم"), (3, "سوم"), (23, "بیست و سوم"), (30, "سی\u200cام"), (100, "صدم")],
)
def test_persian_ordinals(value, words):
    assert persian_numbers.ordinal(value) == words


@pytest.mark.parametrize(
    ("language", "written", "spoken"),
    [
        ("de", "1.234,5 €", "eintausendzweihundertvierunddreißig komma fünf euro"),
        ("fr", "21 % & -3", "vingt et un pour cent et moins trois"),
        ("es", "¿$5?", "¿cinco dólares?"),
        ("it", "2,5", "due virgola cinque"),
        ("pl", "-12", "minus dwanaście"),
        ("ru", "5 книг", "пять книг"),
        ("tr", "%5", "yüzde beş"),
        ("ja", "5人", "ゴニン"),
        ("cs", "„5“ (7)", '"pět" (sedm)'),
        ("de", "am 3.5.", "am drei. fünf."),
        ("ar", "٥ كتب", "خمسة كتب"),
        ("nl", "007", "nul nul zeven"),
    ],
)
def test_other_languages_through_num2words(language, written, spoken):
    pytest.importorskip("num2words", reason="the extra `numbers` is not installed")
    assert normalise(written, language) == spoken


@pytest.mark.parametrize("language", ["zh-cn", "hi"])
def test_languages_without_a_speller_keep_their_digits(language):
    assert "12" in normalise("12", language)


def test_a_missing_package_names_the_extra_but_english_and_persian_do_without(monkeypatch):
    original = builtins.__import__

    def without_num2words(name, *args, **kwargs):
        if name == "num2words":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_num2words)
    number_words.spell_number.cache_clear()
    assert normalise("21", "en") == "twenty-one"
    assert normalise("21", "fa") == "بیست و یک"
    with pytest.raises(MissingExtraError, match=r"myxtts\[numbers\]"):
        normalise("21", "de")
