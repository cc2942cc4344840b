"""IPA as people write it, in the phonemes of a voice."""

import pytest

from myxtts.text.errors import TextError
from myxtts.text.ipa import UnknownSymbolError, to_phonemes
from myxtts.text.symbols import SPECIALS
from myxtts.text.tokenizer import Tokenizer

PHONEMES = Tokenizer.build(["en"], "phonemes")


@pytest.mark.parametrize(
    "ipa, units",
    [
        ("wˈɪn", "w ˈɪ n"),
        ("ʃɪˈvɔːn", "ʃ ɪ v ˈɔː n"),  # the mark of a syllable moves to its vowel
        ("ˈstɹiːt", "s t ɹ ˈiː t"),
        ("təˈmeɪtoʊ", "t ə m ˈe͡ɪ t o͡ʊ"),  # diphthongs are one sound
        ("tʃɪp dʒʌst", "t͡ʃ ɪ p _ d͡ʒ ʌ s t"),
        ("nʌt.ʃɛl", "n ʌ t ʃ ɛ l"),  # a dot keeps sounds apart
        ("t͡ʃɪp", "t͡ʃ ɪ p"),
        ("gəʊ", "ɡ ə͡ʊ"),
        ("'bi:n", "b ˈiː n"),
        ("bˈʌtn̩", "b ˈʌ t n̩"),
    ],
)
def test_pronunciations_become_the_phonemes_that_espeak_writes(ipa, units):
    found = [unit.replace(" ", "_") for unit in to_phonemes(ipa, PHONEMES)]
    assert found == units.split()


def test_an_unknown_symbol_is_named():
    with pytest.raises(UnknownSymbolError, match=r"'ǃ' \(U\+01C3\).*'aǃb'") as error:
        to_phonemes("aǃb", PHONEMES)
    assert error.value.symbol == "ǃ"


@pytest.mark.parametrize("ipa", ["", "ˈ", ". ."])
def test_ipa_without_a_sound_is_an_error(ipa):
    with pytest.raises(TextError, match="no sound"):
        to_phonemes(ipa, PHONEMES)


def test_a_voice_of_characters_refuses_ipa_and_says_what_to_do():
    with pytest.raises(TextError, match="respelling.*--text-units phonemes"):
        to_phonemes("wɪn", Tokenizer.build(["en"]))


def test_a_table_without_ties_gets_the_sounds_one_by_one():
    single = [symbol for symbol in PHONEMES.symbols if "\u0361" not in symbol]
    tokenizer = Tokenizer((*SPECIALS, *single[len(SPECIALS) :]), ["en"], "phonemes")
    assert to_phonemes("tʃɪp", tokenizer) == ("t", "ʃ", "ɪ", "p")
