"""The post-filter: it restores as much modulation as the gains say, and nothing else."""

import numpy as np
import pytest

from myxtts.audio.postfilter import (
    BINS,
    HOP,
    MOST_GAIN,
    STRENGTH,
    WINDOW,
    modulation_gains,
    sharpen,
)

MELS = 8


def noise(frames: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(-5.0, 1.0, (frames, MELS)).astype(np.float32)


def flatter(mel: np.ndarray, factor: float) -> np.ndarray:
    mean = mel.mean(axis=0)
    return mean + factor * (mel - mean)


@pytest.mark.parametrize("frames", [1, 2, HOP, WINDOW - 1, WINDOW, 100, 233])
def test_gains_of_one_change_nothing(frames):
    mel = noise(frames)
    found = sharpen(mel, np.ones((BINS, MELS), np.float32))
    assert found.shape == mel.shape and found.dtype == mel.dtype
    np.testing.assert_allclose(found, mel, atol=1e-5)


def test_equal_gains_scale_the_deviation_from_the_mean():
    mel = noise(90)
    found = sharpen(mel, np.full((BINS, MELS), 1.5, np.float32))
    np.testing.assert_allclose(found, flatter(mel, 1.5), atol=1e-4)


def test_a_gain_amplifies_its_own_modulation_frequency():
    """A band level that swings eight times in each window, and slowly as well."""
    at, middle = np.arange(20 * WINDOW), slice(2 * WINDOW, -2 * WINDOW)
    fast, slow = np.cos(2 * np.pi * 8 * at / WINDOW), np.cos(2 * np.pi * at / (10 * WINDOW))
    mel = np.tile((fast + slow)[:, None], (1, MELS))
    gains = np.ones((BINS, MELS), np.float32)
    gains[7:10] = 2.0
    found = sharpen(mel, gains)
    np.testing.assert_allclose(found[middle, 0], (2 * fast + slow)[middle], atol=0.05)


def test_gains_are_those_that_undo_a_known_smoothing():
    recordings = [noise(120, seed) for seed in range(4)]
    for factor, expected in ((1.0, 1.0), (0.5, 2.0**STRENGTH), (0.1, MOST_GAIN), (2.0, 1.0)):
        gains = modulation_gains((one, flatter(one, factor)) for one in recordings)
        assert gains.shape == (BINS, MELS) and gains.dtype == np.float32
        np.testing.assert_allclose(gains, expected, rtol=1e-4)


def test_a_mel_that_was_smoothed_over_time_moves_more_again():
    recordings = [noise(200, seed) for seed in range(6)]
    smooth = [
        np.apply_along_axis(np.convolve, 0, one, [0.2, 0.6, 0.2], mode="same").astype(np.float32)
        for one in recordings
    ]
    gains = modulation_gains(zip(recordings, smooth, strict=True))
    assert gains[2:4].mean() < 1.15 and gains[-3:].mean() > 1.5
    before, after = smooth[0].var(axis=0).mean(), sharpen(smooth[0], gains).var(axis=0).mean()
    natural = recordings[0].var(axis=0).mean()
    assert before < 0.6 * natural and 1.3 * before < after < natural


def test_what_is_constant_stays_as_it_is():
    mel = np.full((50, MELS), -7.0, np.float32)
    gains = modulation_gains([(noise(50), mel)])
    assert np.isfinite(gains).all()
    np.testing.assert_allclose(sharpen(mel, gains), mel, atol=1e-6)
