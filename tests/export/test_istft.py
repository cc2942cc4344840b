"""The real-valued twin of the vocoder `istft` against the vocoder itself."""

from dataclasses import replace

import numpy as np
import pytest

from myxtts.export.istft import RealISTFT
from tests.helpers.tiny_vocoder import SMALL, SPEC, tiny_vocoder, voiced_mel

# A window that is no whole number of hops.
ODD = replace(SMALL, n_fft=200, win_length=200)


@pytest.mark.parametrize("spec", [SPEC, SMALL, ODD], ids=["usual", "small", "odd"])
@pytest.mark.parametrize("frames", [1, 3, 40])
def test_it_sounds_the_same(spec, frames):
    model = tiny_vocoder(spec, projections=3)
    mel = voiced_mel(max(frames, 8), spec)[:, :frames]
    inputs = mel, 0, np.zeros(1, np.float32), 5
    expected, found = model.inference_function(*inputs), RealISTFT(model)(*inputs)
    loudest = np.abs(expected["waveform"]).max()
    assert np.abs(found["waveform"] - expected["waveform"]).max() < 1e-4 * loudest
    assert np.abs(found["clock"] - expected["clock"]).max() < 3e-5  # cycles


def test_it_goes_on_from_a_clock_and_a_place_in_the_noise():
    model = tiny_vocoder(SMALL)
    inputs = voiced_mel(20, SMALL), 4, np.array([0.3], np.float32), 1020
    expected, found = model.inference_function(*inputs), RealISTFT(model)(*inputs)
    assert np.abs(found["waveform"] - expected["waveform"]).max() < 1e-4
    assert found["clock"][0, 4].numpy() == pytest.approx(0.3)
