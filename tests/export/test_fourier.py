"""Real-valued transforms against NumPy's complex ones."""

import numpy as np
import pytest

from myxtts.export.fourier import RealFourier


@pytest.mark.parametrize("n", [2, 12, 30, 49, 256, 1024, 1200])
def test_spectra_are_those_of_a_complex_transform(n):
    frames = np.random.default_rng(0).normal(size=(3, n)).astype(np.float32)
    fourier = RealFourier(n)
    real, imaginary = (part.numpy() for part in fourier.forward(frames))
    expected = np.fft.rfft(frames)
    found = np.zeros_like(expected)
    values = real + 1j * imaginary * fourier.sign
    found[:, fourier.order[fourier.is_bin]] = values[:, fourier.is_bin]
    assert np.abs(found - expected).max() < 1e-5 * n


@pytest.mark.parametrize("n", [2, 12, 30, 49, 256, 1024])
def test_the_way_back_ignores_what_is_no_bin(n):
    frames = np.random.default_rng(1).normal(size=(2, n)).astype(np.float32)
    fourier = RealFourier(n)
    real, imaginary = (part.numpy() for part in fourier.forward(frames))
    real[:, ~fourier.is_bin] = 99.0
    assert np.abs(fourier.inverse(real, imaginary).numpy() - frames).max() < 1e-5


def test_every_bin_has_one_place():
    fourier = RealFourier(1024)
    assert sorted(fourier.order[fourier.is_bin]) == list(range(513))
