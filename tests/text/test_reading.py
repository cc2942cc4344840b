"""Segments as a voice reads them: tokens, words, and given pronunciations."""

import numpy as np
import pytest

from myxtts.text.errors import TextError
from myxtts.text.lexicon import parse_lexicon
from myxtts.text.marks import Mark, MarkedText, Marks
from myxtts.text.reading import Reader, Reading
from myxtts.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def phonemes() -> Tokenizer:
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    return Tokenizer.build(["en", "fr", "fa"], "phonemes")


def read(tokenizer: Tokenizer, text, language: str = "en", lexicon: str = "") -> Reading:
    reader = Reader(tokenizer, language, parse_lexicon(lexicon) if lexicon else None)
    return reader.read(reader.mark(text))


def by_word(reading: Reading) -> list[tuple[str, str]]:
    return [
        (word.written, "".join(unit.symbol for unit in reading.units if unit.word == number))
        for number, word in enumerate(reading.words)
    ]


@pytest.mark.parametrize(
    "language, text",
    [
        ("en", "Dr. Smith paid $5 at 5:30 p.m. — one of the best!"),
        ("fa", "کتاب ها را می خوانم، ۲۵ تا."),
        ("fr", "Les amis sont allés à l'école."),
    ],
)
@pytest.mark.parametrize("units", ["characters", "phonemes"])
def test_tokens_are_those_of_the_plain_text_and_each_has_its_unit(phonemes, units, language, text):
    tokenizer = phonemes if units == "phonemes" else Tokenizer.build([language])
    reading = read(tokenizer, text, language)
    np.testing.assert_array_equal(reading.ids, tokenizer.encode(text, language))
    assert sum(unit.num_tokens for unit in reading.units) == len(reading.ids) - 2
    assert reading.text == text
    assert all(reading.exact)


def test_characters_belong_to_the_words_that_they_came_from():
    reading = read(Tokenizer.build(["en"]), "Dr. Who, 21!")
    assert by_word(reading) == [("Dr.", "doctor"), ("Who,", "who"), ("21!", "twenty-one")]


def test_liaison_belongs_to_the_word_that_makes_it(phonemes):
    words = by_word(read(phonemes, "les amis", "fr"))
    assert words == [("les", "lez"), ("amis", "amˈi")]


def test_given_phonemes_replace_one_word_and_leave_the_others_as_they_are(phonemes):
    plain = by_word(read(phonemes, "It was Nguyen, one of the best."))
    given = by_word(read(phonemes, "It was Nguyen, one of the best.", lexicon="Nguyen = /wˈɪn/"))
    assert given == [pair if pair[0] != "Nguyen," else ("Nguyen,", "wˈɪn") for pair in plain]
    reading = read(phonemes, "It was Nguyen, one.", lexicon="Nguyen = /wˈɪn/")
    assert "wˈɪn, " in phonemes.decode(reading.ids)


def test_the_article_heeds_the_sound_of_inline_ipa(phonemes):
    vowel = by_word(read(phonemes, "the [[ æpəl ]] fell"))
    consonant = by_word(read(phonemes, "the [[ kæt ]] fell"))
    assert vowel[0] == ("the", "ðɪ") and consonant[0] == ("the", "ðə")
    assert vowel[1] == ("æpəl", "æpəl") and vowel[2] == consonant[2]


def test_a_text_of_ipa_alone_is_said(phonemes):
    reading = read(phonemes, "[[ həˈloʊ ]]")
    assert phonemes.decode(reading.ids) == "həlˈo͡ʊ"


def test_where_nothing_certain_can_be_replaced_the_rest_is_read_around_it(phonemes):
    marks = Marks()
    text = f"one of {marks.add(Mark('a', 'a', 'bɑː'))} kind"
    words = by_word(read(phonemes, MarkedText(text, marks)))
    assert words[2] == ("a", "bɑː") and words[0] == ("one", "wˈʌn")


def test_a_respelling_is_read_and_the_word_is_shown():
    tokenizer = Tokenizer.build(["en"])
    reading = read(tokenizer, "Ask Siobhan, please.", lexicon="Siobhan = shivawn")
    assert reading.text == "Ask Siobhan, please."
    assert tokenizer.decode(reading.ids) == "ask shivawn, please."
    assert by_word(reading)[1] == ("Siobhan,", "shivawn")


def test_inline_ipa_is_refused_by_a_voice_of_characters():
    with pytest.raises(TextError, match="reads characters and cannot say the IPA 'wɜːld'"):
        read(Tokenizer.build(["en"]), "hello [[ wɜːld ]]")
