"""Transforms by SciPy and by NumPy alike, and what speaks where SciPy is not installed."""

import subprocess
import sys

import numpy as np
import pytest

from myxtts.audio import transforms
from myxtts.audio.griffin_lim import griffin_lim
from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec


@pytest.fixture
def without_scipy(monkeypatch):
    monkeypatch.setattr(transforms, "_scipy", lambda: None)


def test_numpy_takes_the_place_of_scipy(monkeypatch):
    frames = np.random.default_rng(0).normal(size=(3, 96)).astype(np.float32)
    by_scipy = transforms.rfft(frames, 128), transforms.irfft(transforms.rfft(frames), 96)
    monkeypatch.setattr(transforms, "_scipy", lambda: None)
    spectra, back = transforms.rfft(frames, 128), transforms.irfft(transforms.rfft(frames), 96)
    assert spectra.dtype == np.complex64 and back.dtype == np.float32
    np.testing.assert_allclose(spectra, by_scipy[0], atol=1e-5)
    np.testing.assert_allclose(back, by_scipy[1], atol=1e-6)


@pytest.mark.parametrize("least", [1, 2, 3, 1000, 1025])
def test_a_fast_length_is_long_enough(least, without_scipy):
    assert least <= transforms.fast_length(least) < 2 * least + 1


def test_a_mel_is_the_same_without_scipy(monkeypatch):
    samples = np.random.default_rng(1).normal(0, 0.1, 8000).astype(np.float32)
    expected = log_mel(samples, AudioSpec())
    monkeypatch.setattr(transforms, "_scipy", lambda: None)
    np.testing.assert_allclose(log_mel(samples, AudioSpec()), expected, atol=1e-4)


def test_griffin_lim_needs_no_scipy():
    program = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np\n"
        "from myxtts.audio.griffin_lim import griffin_lim\n"
        "from myxtts.config.audio_spec import AudioSpec\n"
        "samples = griffin_lim(np.full((20, 80), -4.0, np.float32), AudioSpec())\n"
        "sys.exit(not (np.isfinite(samples).all() and np.abs(samples).max() > 1e-3))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
    samples = griffin_lim(np.full((20, 80), -4.0, np.float32), AudioSpec())
    assert np.abs(samples).max() > 1e-3
