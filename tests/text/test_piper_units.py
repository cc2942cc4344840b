"""Text units that the players of piper's voices can type."""

import unicodedata

import pytest

from myxtts.text.symbols import SPECIALS
from myxtts.text.tokenizer import Tokenizer

pytest.importorskip("espeakng_loader", reason="espeak is not installed: the extra `phonemes`")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.build(["en"], "piper")


def test_every_symbol_is_one_code_point(tokenizer):
    rest = tokenizer.symbols[len(SPECIALS) :]
    assert all(len(symbol) == 1 for symbol in rest)
    assert all(unicodedata.normalize("NFD", symbol) == symbol or symbol == "ç" for symbol in rest)


def test_sounds_have_no_ties_and_marks_are_those_of_piper(tokenizer):
    said = tokenizer.decode(tokenizer.encode("I (now) say: how — why… Really?"))
    assert "\u0361" not in said and not set("()—…") & set(said)
    assert said.endswith("?") and ":" in said and ";" in said


def test_a_saved_table_reads_the_same(tokenizer):
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.units == "piper"
    assert list(again.encode("Hello there.")) == list(tokenizer.encode("Hello there."))
