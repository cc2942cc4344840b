"""Phonemes through espeak-ng."""

import builtins
import subprocess
import sys
import time

import pytest

from myxtts.text import phonemes
from myxtts.text.errors import MissingExtraError
from myxtts.text.languages import LANGUAGES
from myxtts.text.symbols import phoneme_symbols
from myxtts.text.tokenizer import Tokenizer

SAMPLES = {
    "en": "the quick brown fox jumps over a lazy dog, near fire and hours",
    "fa": "سلام, امروز هوا خوب است و ما به مدرسه می\u200cرویم",
    "es": "el niño pequeño come queso, y llueve",
    "fr": "les enfants mangent un bon pain, dans la rue",
    "de": "über den großen fluss läuft ein junger hund",
    "it": "gli gnocchi della pizza costano troppo",
    "pt": "não há pão para as crianças, mãe",
    "pl": "dziecko idzie źle przez las",
    "tr": "güneş bugün çok sıcak, değil mi",
    "ru": "большая любовь и часы, ёлка и юла",
    "nl": "het huis is erg groot, geloof ik",
    "cs": "řeka při lese teče, čtvrt hodiny",
    "ar": "مَرحباً بِالعالَم, صَباح الخَير",
    "zh-cn": "你好, 中国朋友吃饭",
    "hu": "hosszú út, jó reggelt kívánok",
    "ko": "안녕하세요, 빨리 커피",
    "ja": "こんにちは, がっこう ラーメン",
    "hi": "नमस्ते, घर में दूध है",
}


@pytest.fixture(scope="module", autouse=True)
def espeak():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")


def test_a_written_ezafe_and_a_latin_word_in_persian_are_spoken():
    assert phonemes.phonemize(["کتابِ من"], "fa") == ["ketˈɒbe mˈæn"]
    assert phonemes.phonemize(["کتابِ من"], "fa", by_espeak=True) == ["ketˈɑbe mˈan"]
    assert "ɡˈuːɡə" in phonemes.phonemize(["من google را دیدم"], "fa")[0]


def test_english_has_stress_length_ties_and_punctuation():
    assert phonemes.phonemize(['hello, "choose" the bird!', "he said. go."], "en") == [
        "həlˈo͡ʊ, t͡ʃˈuːz ðə bˈɜːd!",
        "hiː sˈɛd. ɡˈo͡ʊ.",
    ]


def test_persian():
    assert phonemes.phonemize(["سلام, دنیا"], "fa") == ["sælˈɒm, donjˈɒ"]
    assert phonemes.phonemize(["سلام, دنیا"], "fa", by_espeak=True) == ["salˈɑm, dˈonjɑ"]


def test_every_text_keeps_its_place():
    texts = ["one", "", "...", '"', "two 'three' (four)", "five"]
    spoken = phonemes.phonemize(texts, "en")
    assert spoken == [phonemes.phonemize([text], "en")[0] for text in texts]
    assert spoken[1:4] == ["", "...", ""]
    assert spoken[5] == "fˈa͡ɪv"


def test_words_of_another_language_leave_no_flags():
    (spoken,) = phonemes.phonemize(["سلام hello سلام"], "fa")
    assert spoken.startswith("sælˈɒm h") and spoken.endswith("sælˈɒm")
    assert not set("()") & set(spoken)


def test_characters_that_the_voice_cannot_read_are_dropped():
    assert phonemes.phonemize(["hello 日本 😀"], "en") == phonemes.phonemize(["hello"], "en")
    assert phonemes.unreadable_characters("はい 日本", "ja") == ["日", "本"]
    assert phonemes.unreadable_characters("日本", "zh-cn") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_covers_every_voice(language):
    tokenizer = Tokenizer.build([language], "phonemes")
    assert tokenizer.unknown(SAMPLES[language], language) == {}
    assert len(tokenizer.encode(SAMPLES[language], language)) > 15


def test_stress_vowel_and_length_are_one_token():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    tokens = [tokenizer.symbols[index] for index in tokenizer.encode("choose no bird")]
    assert tokens[1:-1] == ["t͡ʃ", "ˈuː", "z", " ", "n", "ˈo͡ʊ", " ", "b", "ˈɜː", "d"]


def test_an_unforeseen_phoneme_is_written_as_its_parts():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    ids, missing = tokenizer._found("ˈɑː͡ɹ", "en")
    assert [tokenizer.symbols[index] for index in ids] == ["ˈɑː", "ɹ"] and not missing
    ids, missing = tokenizer._found("ẃ", "en")
    assert [tokenizer.symbols[index] for index in ids] == ["w"] and missing == ("\u0301",)


def test_phoneme_symbols_are_unique():
    assert len(set(phoneme_symbols())) == len(phoneme_symbols())


@pytest.mark.parametrize("language", ["en", "de", "hu", "zh-cn"])
def test_words_that_overflow_espeak_are_cut(language):
    # Run apart: uncut, the dotted letters end the process.
    program = (
        "from myxtts.text.phonemes import phonemize\n"
        f"spoken = phonemize(['a.' * 3000, 'ba' * 3000], {language!r})\n"
        "print(min(map(len, spoken)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 6000


def test_one_back_end_stays_open():
    first = phonemes.Phonemizer("en")._espeak
    assert phonemes.Phonemizer("en")._espeak is first
    assert phonemes.espeak_version().count(".") >= 1


def test_phonemes_come_fast():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    texts = [
        f"The {n}th sentence of this test is about as long as a usual one." for n in range(500)
    ]
    tokenizer.encode_batch(texts[:1], "en")
    start = time.process_time()
    tokenizer.encode_batch(texts, "en")
    # A back-end opened per call would take 190 ms for each.
    assert (time.process_time() - start) / len(texts) < 0.01


def test_phonemizing_is_silent(caplog, capfd):
    phonemes.phonemize(["hello (there) weekend, bonjour"], "fr")
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without_espeak(name, *args, **kwargs):
        if name == "espeakng_loader":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_espeak)
    monkeypatch.setattr(phonemes, "_OPEN", {})
    tokenizer = Tokenizer.build(["en"], "phonemes")
    with pytest.raises(MissingExtraError, match=r"myxtts\[phonemes\]"):
        tokenizer.encode("hello")
