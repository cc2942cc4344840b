"""The table of tokens: fixed, saved, the same in every process, and able to take any text."""

import json
import logging
import pickle
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from myxtts.errors import UserError
from myxtts.text.errors import TextError
from myxtts.text.languages import LANGUAGES
from myxtts.text.symbols import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.shared_data import shared

ALL = Tokenizer.build(tuple(LANGUAGES))
# What numbers, dates, money and abbreviations are written with.
TRICKY = st.sampled_from("0123456789.,:/-$€£%°' \"Stamph#½\u200cهمی")


def test_pad_is_zero_and_specials_come_first():
    for units in ("characters", "phonemes"):
        tokenizer = Tokenizer.build(["en", "fa"], units)
        assert tokenizer.symbols[PAD_ID] == "<pad>" and PAD_ID == 0
        assert tokenizer.symbols[: len(SPECIALS)] == SPECIALS
        assert tokenizer.vocab_size == len(set(tokenizer.symbols))


def test_encode_wraps_the_ids_of_the_normalised_text():
    tokenizer = Tokenizer.build()
    ids = tokenizer.encode("Hi 2")
    assert ids.dtype == np.int32
    assert ids[0] == BOS_ID and ids[-1] == EOS_ID
    assert [tokenizer.symbols[index] for index in ids[1:-1]] == list("hi two")
    assert not (ids == PAD_ID).any()


@pytest.mark.parametrize(
    ("language", "text", "clean"),
    [
        ("en", "Dr. Who, it's 5!", "doctor who, it's five!"),
        ("fa", "می روم، كتاب", "می\u200cروم, کتاب"),
        ("fr", "Œuvre à côté", "œuvre à côté"),
        ("de", "Straße", "straße"),
        ("zh-cn", "你好，世界！", "你好, 世界!"),
        ("ja", "日本の学校、カタカナ", "日本の学校, カタカナ"),
        ("ko", "안녕하세요 괜찮아", "안녕하세요 괜찮아"),
        ("hi", "नमस्ते दुनिया", "नमस्ते दुनिया"),
        ("ar", "مرحبا", "مرحبا"),
    ],
)
def test_decode_gives_back_the_normalised_text(language, text, clean):
    tokenizer = Tokenizer.build([language])
    assert tokenizer.decode(tokenizer.encode(text, language)) == clean
    assert tokenizer.unknown(text, language) == {}


def test_korean_syllables_are_taken_apart_into_letters():
    tokenizer = Tokenizer.build(["ko"])
    assert len(tokenizer.encode("한", "ko")) == 2 + 3


def test_an_accent_that_english_lacks_is_dropped_and_its_letter_kept():
    tokenizer = Tokenizer.build()
    assert tokenizer.decode(tokenizer.encode("Müller's café, Æsir")) == "muller's cafe, aesir"
    assert tokenizer.unknown("Müller") == {}


def test_unknown_characters_are_dropped_and_counted():
    tokenizer = Tokenizer.build()
    assert tokenizer.decode(tokenizer.encode("hi 日本日 there")) == "hi there".replace(" ", "  ")
    assert tokenizer.unknown("hi 日本日 there") == {"日": 2, "本": 1}


@pytest.mark.parametrize("text", ["", "   ", "...", '"?!"', "😀", "\u200b", "日本"])
def test_nothing_to_say_is_an_error_alone_and_empty_in_a_batch(text):
    tokenizer = Tokenizer.build()
    with pytest.raises(TextError, match="nothing to say in"):
        tokenizer.encode(text)
    first, second = tokenizer.encode_batch([text, "yes"], "en")
    assert len(first) == 0 and first.dtype == np.int32
    assert tokenizer.decode(second) == "yes"


def test_the_order_of_languages_does_not_matter():
    one, other = Tokenizer.build(["fa", "en"]), Tokenizer.build(["en", "fa", "en"])
    assert one.symbols == other.symbols and one.fingerprint() == other.fingerprint()


def test_phonemes_take_any_further_language_without_changing():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    more = tokenizer.with_languages(["de", "en", "hi"])
    assert more.languages == ("en", "de", "hi") and tokenizer.languages == ("en",)
    assert more.symbols == tokenizer.symbols
    assert more.fingerprint() == tokenizer.fingerprint()


def test_a_reader_of_a_language_is_part_of_the_fingerprint_and_is_kept():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    more = tokenizer.with_languages(["fa"])
    assert more.symbols == tokenizer.symbols and more.readers == ("fa",)
    assert more.fingerprint() != tokenizer.fingerprint()
    loaded = Tokenizer.from_json(more.to_json())
    assert loaded.readers == ("fa",) and pickle.loads(pickle.dumps(more)).readers == ("fa",)
    assert Tokenizer.build(["fa"]).readers == ()  # characters are not read


def test_espeak_may_read_alone_and_is_another_cache():
    alone = Tokenizer.build(["fa"], "phonemes", espeak_alone=True)
    by_reader = Tokenizer.build(["fa"], "phonemes")
    assert alone.readers == () and alone.symbols == by_reader.symbols
    assert alone.fingerprint() != by_reader.fingerprint()
    english = Tokenizer.build(["en"], "phonemes")
    assert english.with_languages(["fa"], espeak_alone=True).readers == ()


def test_added_sounds_are_the_places_of_ezafes():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    tokenizer = Tokenizer.build(["fa"], "phonemes")
    text = "آیا, کتاب خوب مادربزرگ را خواندید؟"
    ids, places = tokenizer.encode(text, "fa"), tokenizer.added_sounds(text, "fa")
    # ...ˈɒbe xˈube...: each place is that of the e after the b.
    around = [tokenizer.decode(ids[place - 1 : place + 2]) for place in places]
    assert around == ["be ", "be "]
    alone = Tokenizer.build(["fa"], "phonemes", espeak_alone=True)
    assert alone.added_sounds(text, "fa") == []
    assert Tokenizer.build(["en"], "phonemes").added_sounds("my text", "en") == []


def test_a_voice_from_before_the_reader_is_still_read_by_espeak():
    document = json.loads(Tokenizer.build(["fa"], "phonemes").to_json())
    del document["readers"]
    old = Tokenizer.from_json(json.dumps(document))
    assert old.decode(old.encode("سلام", "fa")) == "salˈɑm"
    assert Tokenizer.from_json(old.to_json()).readers == ()
    new = Tokenizer.build(["fa"], "phonemes")
    assert new.decode(new.encode("سلام", "fa")) == "sælˈɒm"


def test_characters_take_only_a_language_whose_letters_they_have():
    german = Tokenizer.build(["de"])
    more = german.with_languages(["en"])
    assert more.languages == ("de", "en") and more.symbols == german.symbols
    np.testing.assert_array_equal(more.encode("zebra", "en"), german.encode("zebra", "de"))
    with pytest.raises(UserError, match="lacks 4 of German .de.: ß ä ö ü. .*train anew.*phonemes"):
        Tokenizer.build().with_languages(["de"])


def test_characters_take_an_open_script_only_with_bytes():
    with pytest.raises(UserError, match="lacks 1 of Chinese .*bytes"):
        Tokenizer.build().with_languages(["zh-cn"])
    japanese = Tokenizer.build(["en", "ja"])
    assert japanese.with_languages(["zh-cn"]).languages == ("en", "ja", "zh-cn")
    with pytest.raises(UserError, match="unknown language 'xx'"):
        japanese.with_languages(["xx"])


def test_a_loaded_tokenizer_is_the_same(tmp_path):
    texts = ["Hello, $5!", "Æon — ‘x’"]
    for languages in (["en"], ["en", "fa", "ja"]):
        tokenizer = Tokenizer.build(languages)
        tokenizer.save(tmp_path / "tokenizer.json")
        loaded = Tokenizer.load(tmp_path / "tokenizer.json")
        copied = pickle.loads(pickle.dumps(tokenizer))
        for other in (loaded, copied):
            assert other.symbols == tokenizer.symbols and other.languages == tokenizer.languages
            assert other.fingerprint() == tokenizer.fingerprint()
            for mine, theirs in zip(
                tokenizer.encode_batch(texts, "en"), other.encode_batch(texts, "en"), strict=True
            ):
                np.testing.assert_array_equal(mine, theirs)


def test_another_process_makes_the_same_table_and_ids():
    program = (
        "from myxtts.text.tokenizer import Tokenizer\n"
        "t = Tokenizer.build(['ja', 'fa', 'en'])\n"
        "print(t.fingerprint(), *t.encode('Hello, 21 worlds'), *t.encode('日本', 'ja'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    tokenizer = Tokenizer.build(["en", "fa", "ja"])
    ids = [*tokenizer.encode("Hello, 21 worlds"), *tokenizer.encode("日本", "ja")]
    assert outputs == {" ".join(map(str, [tokenizer.fingerprint(), *ids]))}


def test_fingerprints_differ_by_table_units_and_cleaners(monkeypatch):
    prints = {Tokenizer.build(["en"]).fingerprint(), Tokenizer.build(["en", "fa"]).fingerprint()}
    monkeypatch.setattr("myxtts.text.tokenizer.CLEANERS_VERSION", -1)
    prints.add(Tokenizer.build(["en"]).fingerprint())
    monkeypatch.setattr("myxtts.text.phonemes.espeak_version", lambda: "1.0")
    prints.add(Tokenizer.build(["en"], "phonemes").fingerprint())
    monkeypatch.setattr("myxtts.text.phonemes.espeak_version", lambda: "2.0")
    prints.add(Tokenizer.build(["en"], "phonemes").fingerprint())
    assert len(prints) == 5


def test_a_written_ezafe_is_in_every_table_of_persian():
    own, with_arabic = Tokenizer.build(["fa"]), Tokenizer.build(["fa", "ar"])
    assert own.decode(own.encode("کتابِ من", "fa")) == "کتاب\u200cه من"
    assert with_arabic.decode(with_arabic.encode("کتابِ من", "fa")) == "کتابِ من"
    assert not own.unknown("کتابِ من", "fa")


def test_latin_words_in_persian_are_spelled_where_the_table_lacks_their_letters():
    own, both = Tokenizer.build(["fa"]), Tokenizer.build(["fa", "en"])
    text = "درگاه USB۳ و é"
    assert own.decode(own.encode(text, "fa")) == "درگاه یو اس بی سه و ای"
    assert own.foreign_words(text, "fa") == ["USB", "é"]
    assert both.decode(both.encode("درگاه Usb", "fa")) == "درگاه usb"
    assert both.foreign_words(text, "fa") == []
    assert Tokenizer.build(["fa"], "phonemes").foreign_words(text, "fa") == []
    assert Tokenizer.build(["ru"]).foreign_words("порт USB", "ru") == ["USB"]


def test_a_language_that_is_read_anew_changes_the_version_of_its_own_tables_only():
    assert Tokenizer.build(["en"]).language_versions == {}
    assert "language_versions" not in Tokenizer.build(["en"]).to_json()
    assert Tokenizer.build(["en", "fa"]).language_versions.keys() == {"fa"}


def test_a_persian_tokenizer_of_earlier_cleaners_loads_with_a_warning(caplog):
    document = json.loads(Tokenizer.build(["fa"]).to_json())
    del document["language_versions"]
    with caplog.at_level(logging.WARNING):
        loaded = Tokenizer.from_json(json.dumps(document))
    assert "may be read differently" in caplog.text
    assert loaded.fingerprint() == Tokenizer.build(["fa"]).fingerprint()


def test_other_cleaners_cause_a_warning(caplog, monkeypatch):
    saved = Tokenizer.build().to_json()
    monkeypatch.setattr("myxtts.text.tokenizer.CLEANERS_VERSION", 99)
    with caplog.at_level(logging.WARNING):
        Tokenizer.from_json(saved)
    assert "99" in caplog.text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"symbols": 3}', "nonsense"])
def test_a_file_that_is_no_tokenizer_is_an_error(text):
    with pytest.raises(TextError, match="make it anew"):
        Tokenizer.from_json(text)


def test_bad_arguments_are_errors(tmp_path):
    with pytest.raises(UserError, match="built for en, not for 'fa'"):
        Tokenizer.build().encode("سلام", "fa")
    with pytest.raises(UserError, match="unknown language 'xx'"):
        Tokenizer.build().encode_batch(["hello"], "xx")
    with pytest.raises(UserError, match="unknown language 'xx'"):
        Tokenizer.build(["xx"])
    with pytest.raises(UserError, match="characters, phonemes"):
        Tokenizer.build(["en"], "words")
    with pytest.raises(UserError, match="at least one language"):
        Tokenizer.build([])
    with pytest.raises(UserError, match="outside the table"):
        Tokenizer.build().decode([10_000])
    with pytest.raises(UserError, match="cannot read the tokenizer"):
        Tokenizer.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "unit", ["hello world, ", "a", "1", "1,", "a.", "-", '"(', " ", "می ", "St. ", "12:", "中"]
)
def test_time_grows_with_the_length_and_no_faster(unit):
    def seconds(length):
        text = (unit * (length // len(unit) + 1))[:length]
        start = time.process_time()
        ALL.encode_batch([text], "fa" if unit == "می " else "en")
        return time.process_time() - start

    short = max(seconds(10_000), 0.002)
    # Ten times the text: quadratic time would be a hundred times as much.
    assert seconds(100_000) < 35 * short


@pytest.mark.slow
def test_a_million_characters_are_one_long_line():
    line = "The quick brown fox paid $5.50 to Dr. Smith, on May 3, 1999. " * 16_400
    assert len(line) > 1_000_000
    start = time.process_time()
    (ids,) = ALL.encode_batch([line], "en")
    assert len(ids) > 1_000_000
    assert time.process_time() - start < 15


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.characters() | TRICKY, max_size=60) | st.text(TRICKY, max_size=30),
    language=st.sampled_from(list(LANGUAGES)),
)
def test_any_text_gives_ids_in_range(text, language):
    (ids,) = ALL.encode_batch([text], language)
    assert ids.dtype == np.int32
    assert ((ids > PAD_ID) & (ids < ALL.vocab_size)).all()
    assert len(ids) == 0 or (ids[0] == BOS_ID and ids[-1] == EOS_ID)
    if LANGUAGES[language].is_open_script:
        assert ALL.unknown(text, language) == {}


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=40), language=st.sampled_from(list(LANGUAGES)))
def test_any_text_has_phonemes_in_range(text, language):
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    tokenizer = _phoneme_tokenizer()
    letters = LANGUAGES[language].reader_letters
    assume(not letters or language in tokenizer.readers or not re.search(f"[{letters}]", text))
    (ids,) = tokenizer.encode_batch([text], language)
    assert ((ids > PAD_ID) & (ids < tokenizer.vocab_size)).all()


_PHONEMES: list[Tokenizer] = []


def _phoneme_tokenizer() -> Tokenizer:
    if not _PHONEMES:
        _PHONEMES.append(Tokenizer.build(tuple(LANGUAGES), "phonemes"))
    return _PHONEMES[0]


def test_real_sentences_have_no_unknown_characters():
    lines = (shared("lj_text") / "metadata.csv").read_text(encoding="utf-8").splitlines()[::13]
    tokenizer = Tokenizer.build()
    texts = [field for line in lines for field in line.split("|")[1:]]
    assert all(len(ids) > 2 for ids in tokenizer.encode_batch(texts, "en"))
    assert sum(bool(tokenizer.unknown(text)) for text in texts) == 0
    spoken = "".join(map(tokenizer.decode, tokenizer.encode_batch(texts, "en")))
    assert not any(character.isdigit() for character in spoken)
