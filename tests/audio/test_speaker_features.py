"""The speaker encoders' features against reference vectors and against their definitions."""

import sys

import numpy as np
import pytest

from myxtts.audio.io import read_audio
from myxtts.audio.speaker_features import (
    coqui_features,
    coqui_filters,
    coqui_partials,
    coqui_windows,
    ecapa_features,
    ecapa_filters,
    resemblyzer_filters,
    resemblyzer_mel,
    resemblyzer_partials,
    resemblyzer_windows,
    trim_long_silences,
)
from myxtts.errors import UserError
from tests.helpers.make_voice import make_voice
from tests.helpers.shared_data import shared

CLIPS = ["LJ_61", "LJ_72", "WS_61", "WS_15", "HS_61", "HS_72", "HS_63"]


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, samples).astype(np.float32)


@pytest.fixture(scope="module")
def ecapa():
    return np.load(shared("reference") / "ecapa.npz")


@pytest.fixture(scope="module")
def resemblyzer():
    return np.load(shared("reference") / "resemblyzer.npz")


def test_filters_equal_the_references(ecapa, resemblyzer):
    # SpeechBrain made its own in float32.
    np.testing.assert_allclose(ecapa_filters(), ecapa["fbank_matrix"], atol=2e-5)
    np.testing.assert_allclose(resemblyzer_filters().T, resemblyzer["mel_basis"], atol=1e-8)


@pytest.mark.parametrize("clip", CLIPS)
def test_ecapa_features_equal_the_reference(ecapa, clip):
    found = ecapa_features(ecapa[f"pcm_{clip}"] / np.float32(32768))
    assert found.shape == ecapa[f"fbank_{clip}"].shape and found.dtype == np.float32
    difference = np.abs(found - ecapa[f"fbank_{clip}"])
    assert difference.max() < 1e-2 and difference.mean() < 1e-4


@pytest.mark.parametrize("clip", CLIPS)
def test_resemblyzer_windows_equal_the_reference(resemblyzer, clip):
    samples = resemblyzer[f"pcm_{clip}"] / np.float32(32768)
    np.testing.assert_array_equal(resemblyzer_windows(len(samples)), resemblyzer[f"starts_{clip}"])
    partials = resemblyzer_partials(samples)
    assert partials.shape == (len(resemblyzer[f"starts_{clip}"]), 160, 40)
    assert partials.dtype == np.float32
    np.testing.assert_allclose(partials[0], resemblyzer[f"mel0_{clip}"], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("clip", CLIPS)
def test_speech_without_pauses_stays_as_it_is(resemblyzer, clip):
    # The reference's samples have been trimmed already: what a second time cuts off is little.
    samples = resemblyzer[f"pcm_{clip}"] / np.float32(32768)
    assert 0.9 * len(samples) < len(trim_long_silences(samples)) <= len(samples)


@pytest.mark.parametrize("clip", CLIPS)
def test_preprocessing_a_recording_gives_the_reference_samples(resemblyzer, clip):
    pytest.importorskip("webrtcvad")
    path = shared("excerpts80") / "wavs" / f"{clip.replace('_', '-')}.flac"
    found = trim_long_silences(read_audio(path, 16000))
    expected = resemblyzer[f"pcm_{clip}"]
    assert found.shape == expected.shape
    assert np.abs(np.round(found * 32768) - expected).max() <= 1


def test_mel_of_a_cosine_is_its_power_times_the_filter():
    # A cosine of 1000 Hz lies on bin 25; under a periodic Hann window, whose sum is 200, the bin
    # holds 200 / 2 and its neighbours half of that, negative.
    mel = resemblyzer_mel(np.cos(2 * np.pi * 1000 / 16000 * np.arange(16000)).astype(np.float32))
    expected = np.array([50.0, 100.0, 50.0]) ** 2 @ resemblyzer_filters()[24:27]
    assert mel.shape == (101, 40)
    np.testing.assert_allclose(mel[50], expected, rtol=1e-4, atol=1e-4)


def ecapa_by_definition(samples: np.ndarray, period: int) -> np.ndarray:
    """Frame by frame, straight from the definition; a period of 399 is a symmetric window."""
    padded = np.pad(samples.astype(np.float64), 200)
    hamming = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / period)
    frames = [padded[start : start + 400] for start in range(0, len(padded) - 399, 160)]
    power = np.array([np.abs(np.fft.rfft(frame * hamming)) ** 2 for frame in frames])
    decibel = 10 * np.log10(np.maximum(power @ ecapa_filters(), 1e-10))
    decibel = np.maximum(decibel, decibel.max() - 80)
    return decibel - decibel.mean(axis=0)


def test_ecapa_features_by_definition():
    # With a pause, so that something lies 80 dB below the loudest.
    samples = np.concatenate([noise(4000), np.zeros(4000, np.float32), noise(1000)])
    found = ecapa_features(samples)
    assert found.shape == (57, 80)
    np.testing.assert_allclose(found, ecapa_by_definition(samples, 400), atol=1e-4)
    assert np.abs(found - ecapa_by_definition(samples, 399)).max() > 0.1


def test_ecapa_filters_are_symmetric_in_hertz():
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82)
    hz = 700 * (10 ** (mel / 2595) - 1)
    centre, half = hz[80], hz[80] - hz[79]
    bins = np.arange(201) * 40.0
    expected = [max(0.0, 1 - abs(f - centre) / half) for f in bins]
    np.testing.assert_allclose(ecapa_filters()[:, 79], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("samples", "starts"),
    [
        (1, [0]),
        (25600, [0]),
        (77 * 160 + 19199, [0]),  # 0.74996 of the second window
        (77 * 160 + 19200, [0, 77]),  # 0.75
        (40000, [0, 77]),
        (160000, [0, 77, 154, 231, 308, 385, 462, 539, 616, 693, 770, 847]),
    ],
)
def test_resemblyzer_windows_by_hand(samples, starts):
    assert resemblyzer_windows(samples).tolist() == starts


def test_a_short_clip_is_one_window_filled_up_with_silence():
    partials = resemblyzer_partials(noise(8000))
    assert partials.shape == (1, 160, 40)
    np.testing.assert_allclose(partials[0, :49], resemblyzer_mel(noise(8000))[:49], rtol=1e-5)
    assert not partials[0, 52:].any()


def test_long_pauses_are_cut_and_speech_is_kept():
    pytest.importorskip("webrtcvad")
    voice, pause = make_voice(1.5), np.zeros(32000, np.float32)
    whole = np.concatenate([voice, pause, voice])
    trimmed = trim_long_silences(whole)
    # The dilation keeps 3 windows of 30 ms on both sides of the pause, the average up to 4 more,
    # and the detector itself goes on for some windows after speech.
    assert len(trimmed) % 480 == 0
    assert 2 * len(voice) - 960 <= len(trimmed) < 2 * len(voice) + 0.8 * 16000


def test_the_flags_are_averaged_rounded_and_dilated(monkeypatch):
    # Of 4 voiced windows never more than half of 8 are heard together, which is silence. Of 5,
    # all are where the average reaches, from 3 windows before to 4 after; 3 more on both sides.
    flags = np.zeros(60, int)
    flags[10:14] = 1
    flags[40:45] = 1
    monkeypatch.setattr("myxtts.audio.speaker_features._voice_flags", lambda samples: flags)
    samples = np.repeat(np.arange(60, dtype=np.float32), 480) + 1
    averaged = [n for n in range(60) if flags[max(0, n - 3) : n + 5].sum() > 4]
    assert averaged == [40, 41, 42, 43]
    kept = sorted(set(trim_long_silences(samples) - 1))
    assert kept == list(range(37, 47))


def test_quiet_recordings_are_raised_and_loud_ones_left(monkeypatch):
    everything = np.ones(10, int)
    monkeypatch.setattr("myxtts.audio.speaker_features._voice_flags", lambda samples: everything)
    quiet, loud = noise(4800) / 100, noise(4800)
    level = np.sqrt(np.mean(trim_long_silences(quiet).astype(np.float64) ** 2))
    assert 20 * np.log10(level) == pytest.approx(-30.0, abs=1e-4)
    np.testing.assert_array_equal(trim_long_silences(loud), loud)


def test_silence_has_no_speech():
    pytest.importorskip("webrtcvad")
    assert len(trim_long_silences(np.zeros(16000, np.float32))) == 0
    assert len(trim_long_silences(np.zeros(100, np.float32))) == 0


def test_without_the_detector_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "webrtcvad", None)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[speakers\]'"):
        trim_long_silences(noise(4800))


def coqui_by_definition(samples: np.ndarray) -> np.ndarray:
    """Frame by frame, straight from the definition."""
    x = samples.astype(np.float64)
    x = np.array([x[n] - 0.97 * x[n - 1 if n else 1] for n in range(len(x))])
    x = np.pad(x, 256, mode="reflect")
    hamming = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400)
    mel = []
    for start in range(0, len(x) - 511, 160):
        spectrum = np.abs(np.fft.rfft(x[start + 56 : start + 456] * hamming, 512)) ** 2
        mel.append(np.log(spectrum @ coqui_filters() + 1e-6))
    mel = np.array(mel)
    return (mel - mel.mean(0)) / np.sqrt(mel.var(0) + 1e-5)


def test_coqui_features_by_definition():
    found = coqui_features(noise(8000))
    assert found.shape == (51, 64) and found.dtype == np.float32
    np.testing.assert_allclose(found, coqui_by_definition(noise(8000)), atol=1e-5)
    # Each band by itself, over time.
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(found.std(axis=0), 1.0, atol=1e-3)


def test_coqui_filters_are_triangles_on_the_htk_scale():
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 66)
    hz = 700 * (10 ** (mel / 2595) - 1)
    bins = np.arange(257) * 31.25
    expected = np.stack(
        [np.interp(bins, hz[band : band + 3], [0, 1, 0]) for band in range(64)], axis=1
    )
    np.testing.assert_allclose(coqui_filters(), expected, atol=1e-12)


def test_coqui_windows_are_ten_or_one():
    assert coqui_windows(39999).tolist() == coqui_windows(40000).tolist() == [0]
    # 120000 samples more than a window, in nine steps of 13333.33, cut to whole samples.
    assert coqui_windows(160000).tolist() == [
        *(0, 13333, 26666, 40000, 53333, 66666, 80000, 93333, 106666, 120000)
    ]
    assert coqui_partials(noise(50000)).shape == (10, 251, 64)
    assert coqui_partials(noise(20000)).shape == (1, 126, 64)


def test_coqui_hears_every_recording_equally_loud():
    quiet, loud = coqui_partials(0.01 * noise(20000)), coqui_partials(noise(20000))
    np.testing.assert_allclose(quiet, loud, atol=1e-4)
    samples = noise(20000).astype(np.float64)
    levelled = samples * 10 ** (-27 / 20) / np.sqrt(np.mean(samples**2))
    np.testing.assert_allclose(loud[0], coqui_features(levelled), atol=1e-6)
