"""The library espeak-ng by its C interface."""

import errno
import os

import pytest

from myxtts.errors import UserError
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
    with pytest.raises(UserError, match="no voice 'xx-none'"):
        opened("xx-none")


def test_a_library_that_cannot_be_loaded_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    library = tmp_path / "libespeak-ng.so"
    library.write_bytes(b"no library")
    with pytest.raises(UserError, match=rf"{library} .data in some/data.*set TMPDIR.*reinstall"):
        Espeak(str(library), "some/data", "en-us")
    monkeypatch.setattr("myxtts.text.espeak.TemporaryDirectory", _raise_full)
    with pytest.raises(UserError, match=r"No space left.*set TMPDIR"):
        opened("en-us")


def test_data_that_is_missing_is_an_error_that_names_it(tmp_path):
    with pytest.raises(UserError, match=rf"cannot open its data in {tmp_path}.*reinstall"):
        Espeak(loader.get_library_path(), str(tmp_path), "en-us")


def _raise_full(**_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_nothing_is_said_of_nothing():
    assert opened("en-us").ipa("") == ""
