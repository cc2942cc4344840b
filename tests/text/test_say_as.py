"""What `say-as` has the cleaners read."""

import pytest

from myxtts.text.cleaners import normalise
from myxtts.text.say_as import say_as


@pytest.mark.parametrize(
    "text, kind, form, read",
    [
        ("AB2C", "characters", "", "a-b two c"),
        ("a", "spell-out", "", "ay"),
        ("1999", "digits", "", "one nine nine nine"),
        ("1999", "cardinal", "", "one thousand nine hundred ninety-nine"),
        ("-3.5", "number", "", "minus three point five"),
        ("21", "ordinal", "", "twenty-first"),
        ("3rd", "ordinal", "", "third"),
        ("3/5/2024", "date", "dmy", "may third, twenty twenty-four"),
        ("3/5/2024", "date", "mdy", "march fifth, twenty twenty-four"),
        ("5:30pm", "time", "hms12", "five thirty p-m"),
        ("+1 555-1234", "telephone", "", "plus one, five five five, one two three four"),
    ],
)
def test_english_reads_what_is_asked_for(text, kind, form, read):
    said = say_as(text, kind, form, "en")
    assert said is not None
    assert normalise(said, "en") == read


def test_persian_has_its_own_ordinals_and_digits():
    assert normalise(say_as("3", "ordinal", "", "fa") or "", "fa") == "سوم"
    assert normalise(say_as("12", "digits", "", "fa") or "", "fa") == "یک دو"


def test_other_languages_take_ordinals_of_num2words():
    pytest.importorskip("num2words", reason="the extra `numbers` is not installed")
    assert say_as("3", "ordinal", "", "de") == "dritte"


@pytest.mark.parametrize(
    "text, kind", [("x", "fish"), ("x", "cardinal"), ("x", "ordinal"), ("x", "telephone")]
)
def test_what_has_no_rule_is_nothing(text, kind):
    assert say_as(text, kind, "", "en") is None
