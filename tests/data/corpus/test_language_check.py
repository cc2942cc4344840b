"""Whether the texts of a corpus are in the language that they are to be read in."""

from pathlib import Path

import pytest

from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.language_check import check_languages
from myxtts.data.corpus.utterance import CorpusError, Utterance
from myxtts.text.tokenizer import Tokenizer
from tests.text.test_guess import STORIES

PERSIAN = ["این کتاب را به او دادم.", "سال ۱۳۵۷ بود.", "گفت: پس چرا نیامدی؟"]


def corpus_of(texts: list[str], language: str) -> Corpus:
    pairs = enumerate(texts)
    utterances = [Utterance(str(n), Path(f"{n}.wav"), t, "anna", language) for n, t in pairs]
    return Corpus(Path("corpus"), "", tuple(utterances), ())


def messages(caplog, texts, language, units="characters") -> list[str]:
    check_languages([corpus_of(texts, language)], Tokenizer.build([language], units))
    return [record.getMessage() for record in caplog.records]


def test_german_texts_read_as_english_are_warned_of(caplog):
    (warning,) = messages(caplog, STORIES["de"].split(". "), "en")
    assert "look like German (de)" in warning and "read as English (en)" in warning
    assert "--language de" in warning


@pytest.mark.parametrize("code", STORIES)
def test_texts_in_their_own_language_are_not_warned_of(caplog, code):
    assert messages(caplog, STORIES[code].split(". "), code) == []


def test_languages_of_one_corpus_are_looked_at_one_by_one(caplog):
    parts = [corpus_of([STORIES[code]], code).train for code in ("en", "de")]
    corpus = Corpus(Path("corpus"), "", parts[0] + parts[1], ())
    check_languages([corpus], Tokenizer.build(["en", "de"]))
    assert not caplog.records


@pytest.mark.parametrize("units", ["characters", "phonemes"])
def test_persian_texts_without_their_language_are_refused_with_its_flag(units):
    if units == "phonemes":
        pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    with pytest.raises(
        CorpusError, match=r"2 of 3 .*English \(en\).*Persian \(fa\).*--language fa"
    ):
        check_languages([corpus_of(PERSIAN, "en")], Tokenizer.build(["en"], units))


def test_texts_without_any_letter_are_refused():
    with pytest.raises(CorpusError, match="1 of 1 .*nothing that can be spoken in English"):
        check_languages([corpus_of(["..."], "en")], Tokenizer.build(["en"]))


def test_latin_words_in_persian_texts_are_counted_and_shown(caplog):
    texts = [*PERSIAN, "درگاه USB و Wi-Fi", "درگاه USB"]
    (warning,) = messages(caplog, texts, "fa")
    assert "4 words in Latin letters ('USB', 'Wi', 'Fi')" in warning
    assert "spelled letter by letter" in warning
    caplog.clear()
    check_languages([corpus_of(texts, "fa")], Tokenizer.build(["fa", "en"]))
    assert not caplog.records


def test_letters_of_another_script_are_warned_of(caplog):
    (warning,) = messages(caplog, [*STORIES["en"].split(". "), "He said привет to me."], "en")
    assert (
        "1 of " in warning and "Cyrillic in 1" in warning and "'He said привет to me.'" in warning
    )


def test_arabic_ye_and_kaf_of_persian_texts_are_counted(caplog):
    (warning,) = messages(caplog, [*PERSIAN, "كتاب علي را به يك نفر دادم."], "fa")
    assert "ي 2 times" in warning and "ك 2 times" in warning
