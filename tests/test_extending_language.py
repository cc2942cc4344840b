"""A language is one row: what reads, speaks, cuts, guesses and tests it finds it there."""

import pytest

from myxtts.errors import UserError
from myxtts.evaluation.hard_sentences import hard_sentences
from myxtts.inference.sentences import cut_sentences
from myxtts.text.cleaners import normalise
from myxtts.text.foreign import describe_foreign
from myxtts.text.guess import guess_language
from myxtts.text.language import Language, SymbolWords, words
from myxtts.text.languages import LANGUAGES, get_language, greeting
from myxtts.text.tokenizer import Tokenizer

TOY = Language(
    code="tok",
    name="Toki Pona",
    greeting="toki! sina pona ala pona?",
    alphabet="aeijklmnopstuw",
    espeak_voice="eo",
    espeak_repairs=(("t", "d"),),
    symbol_words=SymbolWords(
        minus="weka",
        point="lili",
        percent="{} pi ale",
        ampersand="en",
        dollar="mani",
        euro="mani",
        pound="mani",
    ),
    lower_case={"W": "w"},
    version=2,
    abbreviations=words("jan"),
    hard_sentences={"very short": ("mu!", "a.")},
    frequent_words=words("li e la pi mi sina ona ni tawa lon ala pona toki jan"),
)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(LANGUAGES, TOY.code, TOY)


def test_it_is_normalised_and_tokenised_by_its_letters():
    assert normalise("Toki & $5", "tok") == "toki en 5 mani"
    tokenizer = Tokenizer.build(["tok", "en"])
    assert tokenizer.languages == ("en", "tok")  # those that models know keep their numbers
    assert tokenizer.language_versions == {"tok": 2}
    alone = Tokenizer.build(["tok"])
    assert alone.decode(alone.encode(greeting("tok"), "tok")) == TOY.greeting
    assert alone.unknown("mi b", "tok") == {"b": 1}


def test_rules_of_its_own_take_the_place_of_the_common_ones(monkeypatch):
    own = Language(**{**vars(TOY), "expand": lambda text: text.replace("5", "luka")})
    monkeypatch.setitem(LANGUAGES, "tok", own)
    assert normalise("5 & 5", "tok") == "luka luka"


def test_its_phonemes_come_from_its_espeak_voice():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    tokenizer = Tokenizer.build(["tok"], "phonemes")
    spoken = tokenizer.decode(tokenizer.encode("toki", "tok"))
    assert "d" in spoken and "t" not in spoken


def test_its_sentences_are_cut_and_its_texts_are_guessed():
    text = "Mi toki e jan. Sonja. Ona li pona."
    assert list(cut_sentences(text, "tok")) == ["Mi toki e jan. Sonja. ", "Ona li pona."]
    found = guess_language(["mi toki e ni la ona li pona tawa jan ala"] * 5)
    assert found is not None and found.code == "tok"


def test_it_is_evaluated_on_hard_sentences():
    assert [one.text for one in hard_sentences("tok")] == ["mu!", "a."]
    with pytest.raises(UserError, match="only in en, fa, tok"):
        hard_sentences("de")


def test_it_is_offered_where_a_language_is_asked_for():
    with pytest.raises(UserError, match="Did you mean 'tok'.*Known languages: .*hi, tok"):
        get_language("tokk")
    assert "dropped" in describe_foreign(["usb"], "tok")
