"""The graph's spectra against their definition in NumPy, and back to the samples."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import log_mel, mel_filterbank
from myxtts.audio.stft import istft_tf, magnitude_tf, stft_tf
from myxtts.config.audio_spec import AudioSpec

SPEC = AudioSpec()
# 512 is no multiple of 160, and the window is shorter than the frame.
SMALL = AudioSpec(16000, n_fft=512, hop_length=160, win_length=400, n_mels=40, fmin=50, fmax=7600)
UNEVEN = AudioSpec(hop_length=255)  # one sample more is padded behind than before
SPECS = pytest.mark.parametrize("spec", [SPEC, SMALL, UNEVEN], ids=["default", "small", "uneven"])


def noise(frames: int, spec: AudioSpec, rows: int = 1) -> np.ndarray:
    size = (rows, frames * spec.hop_length)
    return np.random.default_rng(frames).normal(0, 0.3, size).astype(np.float32)


def by_definition(samples: np.ndarray, spec: AudioSpec, mode: str) -> np.ndarray:
    """Frame by frame in float64."""
    padding = spec.n_fft - spec.hop_length
    padded = np.pad(samples.astype(np.float64), (padding // 2, padding - padding // 2), mode)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(spec.win_length) / spec.win_length)
    side = (spec.n_fft - spec.win_length) // 2
    hann = np.pad(hann, (side, spec.n_fft - spec.win_length - side))
    starts = range(0, len(padded) - spec.n_fft + 1, spec.hop_length)
    return np.array([np.fft.rfft(padded[s : s + spec.n_fft] * hann) for s in starts])


@SPECS
@pytest.mark.parametrize("frames", [1, 2, 3, 40])
def test_a_signal_comes_back_from_its_spectra_up_to_its_ends(spec, frames):
    samples = noise(frames, spec, rows=2)
    spectrum = stft_tf(samples, spec)
    assert spectrum.shape == (2, frames, spec.n_fft // 2 + 1)
    np.testing.assert_allclose(istft_tf(spectrum, spec), samples, atol=1e-4)


@SPECS
@pytest.mark.parametrize(("mode", "expected"), [("REFLECT", "reflect"), ("CONSTANT", "constant")])
def test_spectra_are_those_of_the_definition(spec, mode, expected):
    samples = noise(9, spec)
    found = stft_tf(samples, spec, mode)[0]
    np.testing.assert_allclose(found, by_definition(samples[0], spec, expected), atol=1e-4)


@pytest.mark.parametrize("frames", [1, 30])
@pytest.mark.parametrize("spec", [SPEC, SMALL], ids=["default", "small"])
def test_the_magnitudes_have_the_mel_of_the_signal(spec, frames):
    samples = noise(frames, spec)
    magnitude = np.sqrt(np.abs(stft_tf(samples, spec)[0]) ** 2 + 1e-9)
    mel = np.log(np.maximum(magnitude @ mel_filterbank(spec).T, spec.floor))
    np.testing.assert_allclose(mel, log_mel(samples[0], spec), atol=1e-4)


def test_a_graph_of_any_shape_computes_the_same():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
    def there_and_back(samples):
        return istft_tf(2.0 * stft_tf(samples, SMALL), SMALL)

    for frames, rows in ((1, 1), (12, 3)):
        samples = noise(frames, SMALL, rows)
        np.testing.assert_allclose(there_and_back(samples), 2.0 * samples, atol=2e-4)


def test_spectra_of_no_signal_give_what_comes_nearest():
    # Of all signals, that whose spectra are nearest: going there once more changes nothing.
    random = np.random.default_rng(0)
    spectrum = random.normal(size=(1, 20, 257)) + 1j * random.normal(size=(1, 20, 257))
    samples = istft_tf(spectrum.astype(np.complex64), SMALL)
    assert np.abs(stft_tf(samples, SMALL) - spectrum).max() > 0.1
    np.testing.assert_allclose(istft_tf(stft_tf(samples, SMALL), SMALL), samples, atol=1e-4)


def test_magnitudes_are_absolute_values_and_have_a_gradient_at_zero():
    spectrum = tf.constant([[3 + 4j, -5j, 0, 1e-4 + 1e-4j]], tf.complex64)
    with tf.GradientTape() as tape:
        tape.watch(spectrum)
        found = magnitude_tf(spectrum)
    np.testing.assert_allclose(found, tf.abs(spectrum), rtol=1e-6, atol=2e-10)
    gradient = tape.gradient(found, spectrum).numpy()[0]
    np.testing.assert_allclose(gradient[:3], [0.6 + 0.8j, -1j, 0], atol=1e-6)
