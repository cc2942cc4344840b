"""Griffin-Lim: it inverts what `audio.mel` computes, frame for frame, the same every time."""

import numpy as np
import pytest

from myxtts.audio.griffin_lim import _to_samples, griffin_lim, linear_magnitude
from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel, mel_filterbank
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.presets import create_default_config
from tests.helpers.shared_data import shared

SPEC = AudioSpec()
SMALL = AudioSpec(16000, n_fft=512, hop_length=160, win_length=400, n_mels=40, fmin=50, fmax=7600)
WIDE = create_default_config(audio="24k").data.audio_spec
SPECS = pytest.mark.parametrize("spec", [SPEC, WIDE, SMALL], ids=["default", "24k", "small"])


def vowel(frames: int, spec: AudioSpec, pitch: float = 120.0) -> np.ndarray:
    """A buzz whose harmonics fall off and whose loudness swells, with a little breath."""
    time = np.arange(frames * spec.hop_length) / spec.sample_rate
    harmonics = sum(np.sin(2 * np.pi * pitch * k * time + k * k) / k for k in range(1, 25))
    breath = np.random.default_rng(0).normal(0, 0.01, len(time))
    return (0.1 * harmonics * (1.2 + np.sin(9 * time)) + breath).astype(np.float32)


def spectrum_by_definition(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    padded = np.pad(samples.astype(np.float64), (spec.n_fft - spec.hop_length) // 2, "reflect")
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(spec.win_length) / spec.win_length)
    side = (spec.n_fft - spec.win_length) // 2
    hann = np.pad(hann, (side, spec.n_fft - spec.win_length - side))
    starts = range(0, len(padded) - spec.n_fft + 1, spec.hop_length)
    return np.array([np.fft.rfft(padded[s : s + spec.n_fft] * hann) for s in starts])


@SPECS
@pytest.mark.parametrize("frames", [1, 2, 63, 64, 65, 150])
def test_a_spectrum_goes_back_to_its_samples(spec, frames):
    samples = vowel(frames, spec)
    spectrum = spectrum_by_definition(samples, spec)
    assert len(spectrum) == frames
    back = _to_samples(spectrum.astype(np.complex64), spec)
    np.testing.assert_allclose(back, samples, atol=1e-5)


@SPECS
def test_magnitudes_are_not_negative_and_have_the_given_mel(spec):
    mel = log_mel(vowel(80, spec), spec)
    magnitude = linear_magnitude(mel, spec)
    again = np.log(magnitude @ mel_filterbank(spec)[:, : magnitude.shape[1]].T)
    assert magnitude.min() >= 0
    assert np.abs(again - mel).mean() < 0.02


@SPECS
@pytest.mark.parametrize("frames", [1, 3, 100])
def test_there_are_hop_length_samples_to_a_frame(spec, frames):
    samples = griffin_lim(log_mel(vowel(frames, spec), spec), spec, iterations=2)
    assert samples.dtype == np.float32
    assert samples.shape == (frames * spec.hop_length,)
    assert np.isfinite(samples).all()


def test_no_frames_give_no_samples():
    assert griffin_lim(np.zeros((0, 80), np.float32), SPEC).shape == (0,)


@SPECS
def test_the_mel_of_the_result_is_the_given_mel(spec):
    mel = log_mel(vowel(120, spec), spec)
    distance = [
        np.abs(log_mel(griffin_lim(mel, spec, iterations=steps), spec) - mel).mean()
        for steps in (0, 8, 32)
    ]
    assert distance[2] < 0.12
    assert distance[0] > distance[1] > distance[2]


def test_momentum_arrives_sooner():
    mel = log_mel(vowel(120, SPEC), SPEC)
    slow, fast = (
        np.abs(log_mel(griffin_lim(mel, SPEC, momentum=push), SPEC) - mel).mean()
        for push in (0.0, 0.99)
    )
    assert fast < slow


def test_the_pitch_is_kept():
    mel = log_mel(vowel(100, SPEC, pitch=200.0), SPEC)
    power = np.abs(np.fft.rfft(griffin_lim(mel, SPEC))) ** 2
    hertz = np.fft.rfftfreq(100 * SPEC.hop_length, 1 / SPEC.sample_rate)
    low = (hertz > 100) & (hertz < 300)
    assert abs(hertz[low][power[low].argmax()] - 200.0) < 10.0


def test_silence_stays_silent():
    floor = np.full((50, 80), np.log(SPEC.floor), np.float32)
    assert np.abs(griffin_lim(floor, SPEC)).max() < 1e-3


def test_the_seed_decides_every_sample():
    mel = log_mel(vowel(70, SPEC), SPEC)
    first, again, other = (griffin_lim(mel, SPEC, seed, iterations=4) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


def test_real_speech_keeps_its_mel():
    recordings = sorted(shared("ljspeech100").rglob("*.flac"))[:2]
    for path in recordings:
        mel = log_mel(read_audio(path, SPEC.sample_rate)[: 3 * SPEC.sample_rate], SPEC)
        assert np.abs(log_mel(griffin_lim(mel, SPEC), SPEC) - mel).mean() < 0.12
    assert recordings
