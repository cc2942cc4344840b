"""The library espeak-ng by its C interface."""

import pytest

from myxtts.text.espeak import Espeak

loader = pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")


def opened(voice: str) -> Espeak:
    return Espeak(loader.get_library_path(), loader.get_data_path(), voice)


def test_it_writes_ipa_with_stress_and_ties():
    assert opened("en-us").ipa("Hello judge.") == "həlˈo͡ʊ d͡ʒˈʌd͡ʒ"


def test_voices_do_not_change_each_other():
    english, german = opened("en-us"), opened("de")
    before = english.ipa("wine")
    assert german.ipa("wein") == "vˈa͡ɪn"
    assert english.ipa("wine") == before == "wˈa͡ɪn"


def test_a_voice_that_is_not_there_is_an_error():
    with pytest.raises(RuntimeError, match="no voice 'xx-none'"):
        opened("xx-none")


def test_nothing_is_said_of_nothing():
    assert opened("en-us").ipa("") == ""
