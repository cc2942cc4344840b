"""The voice detector finds the pauses of a recording whose noise hides them."""

import sys

import numpy as np
import pytest

from myxtts.audio.bounds import AudioInfo
from myxtts.audio.slice_options import SliceOptions
from myxtts.audio.slicing import find_slices, has_quiet_parts, measure_levels
from myxtts.audio.voice_activity import find_voice
from tests.helpers.make_corpus import _voiced
from tests.helpers.stand_in_detector import stand_in_detector

SENTENCE, PAUSE = 2.0, 1.0


def noisy(rate: int, noise: float, sentences: int = 8) -> np.ndarray:
    """Sentences of two seconds, each with a second behind it, under white noise."""
    rng = np.random.default_rng(0)
    parts = [_voiced(rng, SENTENCE, rate, 120.0) for _ in range(sentences)]
    silence = np.zeros(round(PAUSE * rate))
    samples = np.concatenate([one for part in parts for one in (part, silence)])
    return (samples + noise * rng.standard_normal(len(samples))).astype(np.float32)


def parts(samples: np.ndarray, size: int = 5000):
    return (samples[at : at + size, None] for at in range(0, len(samples), size))


def levels_of(samples: np.ndarray, rate: int):
    return measure_levels(AudioInfo(rate, 1, len(samples)), parts(samples))


@pytest.mark.parametrize("rate", [16000, 22050, 48000])
def test_pauses_are_found_where_levels_hardly_differ(monkeypatch, rate):
    monkeypatch.setitem(sys.modules, "webrtcvad", stand_in_detector)
    samples = noisy(rate, 0.15)
    levels = levels_of(samples, rate)
    assert not has_quiet_parts(levels)
    assert len(find_slices(levels, SliceOptions())) == 1
    voice = find_voice(levels, parts(samples))
    found = find_slices(levels, SliceOptions(), voice)
    assert len(found) == 8
    begins = SENTENCE + PAUSE
    for number, one in enumerate(found):
        assert one.start / rate == pytest.approx(number * begins, abs=0.2)
        assert one.end / rate == pytest.approx(number * begins + SENTENCE, abs=0.2)


def test_voices_do_not_depend_on_the_parts_that_samples_come_in():
    pytest.importorskip("webrtcvad")
    samples = noisy(22050, 1e-4, sentences=2)
    levels = levels_of(samples, 22050)
    whole = find_voice(levels, parts(samples, len(samples)))
    np.testing.assert_array_equal(find_voice(levels, parts(samples, 777)), whole)
    assert whole.shape == levels.power.shape and whole.any() and not whole.all()


def test_in_silence_there_is_no_voice():
    pytest.importorskip("webrtcvad")
    samples = np.zeros(16000, np.float32)
    levels = levels_of(samples, 16000)
    assert not find_voice(levels, parts(samples)).any()
    assert not find_voice(levels_of(samples[:0], 16000), parts(samples[:0])).any()
