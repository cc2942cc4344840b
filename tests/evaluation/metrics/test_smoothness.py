"""Over-smoothing: powers of mels whose variation is known."""

import math

import numpy as np
import pytest

from myxtts.evaluation.metrics.frames import Frames
from myxtts.evaluation.metrics.smoothness import (
    SEGMENT,
    mel_variance,
    modulation,
    modulation_spectrum,
    spectral_detail,
)

RATE = 22050 / 256


def make_frames(mel: np.ndarray, level: np.ndarray | None = None) -> Frames:
    level = np.zeros(len(mel)) if level is None else level
    return Frames(np.asarray(mel, np.float64), level, np.zeros(len(mel)), RATE)


def noise(count: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 80))


def smoothed(mel: np.ndarray, axis: int) -> np.ndarray:
    """Smoothed by 1/4, 1/2, 1/4, whose squares sum up to 3/8."""
    return (np.roll(mel, 1, axis) + 2 * mel + np.roll(mel, -1, axis)) / 4


def test_the_variance_is_that_of_each_band_over_time():
    # Bands that alternate by 1 and by 3 around means of their own.
    sign = np.where(np.arange(20) % 2, 1.0, -1.0)[:, np.newaxis]
    mel = sign * np.array([1.0, 3.0]) + np.array([-4.0, -8.0])
    assert mel_variance(make_frames(mel)) == pytest.approx((1 + 9) / 2)


def test_the_detail_is_the_variance_of_differences_of_bands():
    # Differences 1, -1, 1, -1: their variance is 1. A slope over all bands is no detail.
    zigzag = np.tile([0.0, 1.0, 0.0, 1.0, 0.0], (12, 1))
    assert spectral_detail(make_frames(zigzag)) == pytest.approx(1.0)
    assert spectral_detail(make_frames(zigzag + np.arange(5))) == pytest.approx(1.0)
    assert spectral_detail(make_frames(np.tile(np.arange(5.0), (12, 1)))) == pytest.approx(0.0)


@pytest.mark.parametrize("measure", [mel_variance, spectral_detail, modulation])
def test_half_the_deviation_is_a_quarter_of_the_power_at_any_gain(measure):
    mel = noise(400)
    plain = measure(make_frames(mel))
    assert measure(make_frames(0.5 * mel - 3.0)) / plain == pytest.approx(0.25)


def test_a_kernel_over_time_lowers_the_variance_by_the_sum_of_its_squares():
    plain, smooth = make_frames(noise()), make_frames(smoothed(noise(), 0))
    assert mel_variance(smooth) / mel_variance(plain) == pytest.approx(3 / 8, rel=0.01)
    assert spectral_detail(smooth) / spectral_detail(plain) == pytest.approx(3 / 8, rel=0.01)


def test_a_kernel_over_bands_lowers_the_detail_most():
    # Differences of smoothed noise: (1, 1, -1, -1) / 4, so 4 / 16, where those of noise have 2.
    plain, smooth = make_frames(noise()), make_frames(smoothed(noise(), 1))
    assert spectral_detail(smooth) / spectral_detail(plain) == pytest.approx(1 / 8, rel=0.02)
    assert mel_variance(smooth) / mel_variance(plain) == pytest.approx(3 / 8, rel=0.01)


def test_a_kernel_over_time_lowers_each_modulation_by_its_response():
    plain, smooth = make_frames(noise()), make_frames(smoothed(noise(), 0))
    hertz, power = modulation_spectrum(plain)
    # Noise of variance 1 has a power of 1; that of the kernel is cos(pi f / rate) ** 4.
    assert power[3:-1] == pytest.approx(np.ones(SEGMENT // 2 - 3), rel=0.05)
    inside = hertz[(hertz >= 4) & (hertz <= 32)]
    expected = math.exp(np.mean(4 * np.log(np.cos(np.pi * inside / RATE))))
    assert modulation(smooth) / modulation(plain) == pytest.approx(expected, rel=0.05)


def test_a_wave_is_at_its_frequency():
    place = 6 / SEGMENT * RATE  # 8.1 Hz
    time = np.arange(300) / RATE
    mel = np.tile(np.sin(2 * np.pi * place * time)[:, np.newaxis], (1, 80))
    hertz, power = modulation_spectrum(make_frames(mel))
    assert hertz[power.argmax()] == pytest.approx(place)
    # Of all the power, 1/2, a periodic Hann window leaves 2/3 in the bin, half of it here.
    assert power[6] == pytest.approx(SEGMENT / 4 * 2 / 3)


def test_silence_does_not_count():
    mel, level = noise(400), np.zeros(400)
    level[200:] = -50.0
    loud = make_frames(mel[:200])
    mel[200:] = np.where(np.arange(200) % 20 < 10, -9.0, 9.0)[:, np.newaxis]
    both = make_frames(mel, level)
    assert mel_variance(both) == mel_variance(loud)
    assert spectral_detail(both) == spectral_detail(loud)
    # A segment may be silent for a quarter at most: the last one begins at 144.
    assert modulation(make_frames(mel[:208], level[:208])) == modulation(both)


@pytest.mark.parametrize("measure", [mel_variance, spectral_detail, modulation])
def test_too_little_speech_has_no_figure(measure):
    assert math.isnan(measure(make_frames(noise(9))))
    assert math.isnan(measure(make_frames(noise(100), np.full(100, -40.0))))
    assert math.isnan(measure(make_frames(np.zeros((0, 80)))))


def test_a_mel_that_does_not_move_has_no_modulation():
    assert math.isnan(modulation(make_frames(np.ones((100, 80)))))
