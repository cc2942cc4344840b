"""Readers of Chinese and Japanese, which optional packages make possible."""

import pytest

from myxtts.text import phonemes
from myxtts.text.cleaners import normalise
from myxtts.text.errors import MissingExtraError
from myxtts.text.languages.chinese.reading import _syllable, cardinal
from myxtts.text.symbols import phoneme_symbols
from myxtts.text.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def espeak():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")


def test_a_pinyin_syllable_is_an_initial_a_final_and_a_tone():
    assert _syllable("zh", "ong1") == "t͡ʂoŋ1" and _syllable("sh", "i4") == "ʂɨ4"
    assert _syllable("x", "iang3") == "ɕjɑŋ3" and _syllable("l", "ü4") == "ly4"
    assert _syllable("", "er2") == "ɚ2"


def test_chinese_numbers_are_written_in_characters():
    assert cardinal("21") == "二十一" and cardinal("10") == "十" and cardinal("007") == "零零七"
    assert cardinal("1005") == "一千零五" and cardinal("20300") == "二万零三百"
    assert cardinal("123456789") == "一亿二千三百四十五万六千七百八十九"


def test_a_chinese_character_is_read_by_the_word_that_it_is_in():
    for package in ("jieba", "pypinyin"):
        pytest.importorskip(package, reason="the extra `chinese` is not installed")
    (spoken,) = phonemes.phonemize(["银行, 行走"], "zh-cn")
    assert "xɑŋ2, ɕiŋ2" in spoken
    assert not Tokenizer.build(["zh-cn"], "phonemes").unknown("银行在重庆。", "zh-cn")


def test_kanji_are_read_and_particles_sound_as_they_are_spoken():
    for package in ("fugashi", "unidic_lite"):
        pytest.importorskip(package, reason="the extra `japanese` is not installed")
    (spoken,) = phonemes.phonemize([normalise("今日は東京へ行く。", "ja")], "ja")
    (kana,) = phonemes.phonemize(["キョーワトーキョーエイク."], "ja", by_espeak=True)
    assert spoken == kana
    assert not Tokenizer.build(["ja"], "phonemes").unknown("東京へ行く。", "ja")


def test_kana_next_to_a_latin_word_keep_their_sounds():
    for package in ("fugashi", "unidic_lite"):
        pytest.importorskip(package, reason="the extra `japanese` is not installed")
    (spoken,) = phonemes.phonemize([normalise("高さはkmです。", "ja")], "ja")
    (before,) = phonemes.phonemize(["タカサワ"], "ja", by_espeak=True)
    assert spoken.startswith(before) and "lˈe̞tə" not in spoken


def test_peoples_have_another_suffix_than_persons():
    for package in ("fugashi", "unidic_lite"):
        pytest.importorskip(package, reason="the extra `japanese` is not installed")
    words = phonemes.open_reader("ja").explain("日本人が三人")
    assert [word.notes for word in words] == ["ニホン", "ジン", "ガ", "サン", "ニン"]


def test_japanese_counters_and_their_numbers_change_their_sounds():
    said = normalise("1本、3本、4本、10匹、100個、300匹、3階、6歳、1000本、0本", "ja")
    assert said.split(", ") == (
        "イッポン, サンボン, ヨンホン, ジュッピキ, ヒャッコ, サンビャッピキ, サンガイ, ロクサイ, "
        "センボン, 零 本".split(", ")
    )


def test_kanji_without_the_package_are_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr(phonemes, "find_spec", lambda name: None)
    tokenizer = Tokenizer.build(["ja"], "phonemes")
    assert tokenizer.readers == () and len(tokenizer.encode("こんにちは", "ja"))
    three, ten = (tokenizer.encode(number, "ja") for number in ("3", "10"))
    assert len(three) > 2 and len(ten) > 2  # numbers are written with kanji, and are said
    with pytest.raises(MissingExtraError, match=r"reading '日本' .*myxtts\[japanese\]"):
        tokenizer.encode("日本", "ja")


def test_all_chinese_phonemes_have_tokens():
    from myxtts.text.languages.chinese.reading import _FINALS, _INITIALS

    tokenizer = Tokenizer.build(["en"], "phonemes")
    for initial in _INITIALS.values():
        for final in _FINALS.values():
            assert all(
                tokenizer._find_ids(unit, "en")[0] for unit in tokenizer._split(initial + final)
            )
    assert {"ɕ", "ʂ", "ʐ", "ɨ", "ɚ"} <= set(phoneme_symbols())
