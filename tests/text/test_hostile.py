"""Texts that nobody would write: they are read or refused, and nothing else."""

import unicodedata

import pytest

from myxtts.inference.sentences import cut_text
from myxtts.text.cleaners import normalise
from myxtts.text.languages import LANGUAGES
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.hostile_texts import KINDS, texts

HOSTILE = list(texts(seed=0, count=len(KINDS)))


def test_the_same_seed_gives_the_same_texts():
    assert list(texts(0, 40)) == list(texts(0, 40))
    assert list(texts(0, 40))[: len(KINDS)] == HOSTILE
    assert [text for _, text in texts(1, 40)] != [text for _, text in texts(0, 40)]


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_reads_hostile_texts(code):
    tokenizer = Tokenizer.build([code])
    for name, text in HOSTILE:
        short = text[:2000]
        ids = tokenizer.encode_batch([short], code)[0]
        assert ids.dtype == "int32", name
        assert isinstance(tokenizer.decode(ids), str), name


def test_hostile_texts_are_cut_without_losing_a_character():
    for name, text in HOSTILE:
        segments = cut_text(text, "fa", lambda part: len(part) < 200)
        assert "".join("".join(p.text for p in segments).split()) == "".join(text.split()), name


def test_a_pile_of_marks_on_one_letter_is_cut():
    read = normalise("e" + "\u0651\u0301" * 5000 + "x", "en")
    assert sum(map(bool, map(unicodedata.combining, read))) <= 30
    assert read.startswith("é") and read.endswith("x")


def test_thousands_in_groups_end_where_no_number_is_as_large():
    assert "fünf" in normalise("12 512 512 512 512 512 512 512 512 5", "de")
