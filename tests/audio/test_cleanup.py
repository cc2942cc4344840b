"""Trimming by hand-made signals, loudness by the values that the standard gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.audio.cleanup import _k_weighting, loudness, normalise_loudness, trim_silence

RATE = 22050


def sine(seconds: float, amplitude: float = 1.0, rate: int = RATE, hz: float = 997.0):
    time = np.arange(round(seconds * rate)) / rate
    return (amplitude * np.sin(2 * np.pi * hz * time)).astype(np.float32)


def test_trim_cuts_both_ends_to_what_is_kept():
    # At 1000 Hz a block is 10 samples: loud from 500 to 800, 50 samples are kept on each side.
    samples = np.zeros(1200, np.float32)
    samples[500:800] = 0.5
    samples[:100] = 0.004  # 42 dB below
    trimmed = trim_silence(samples, 1000)
    np.testing.assert_array_equal(trimmed, samples[450:850])


def test_trim_obeys_top_db():
    samples = np.full(1000, 0.004, np.float32)
    samples[500:600] = 0.5
    assert len(trim_silence(samples, 1000, top_db=40, keep_seconds=0)) == 100
    assert len(trim_silence(samples, 1000, top_db=45, keep_seconds=0)) == 1000


def test_trim_keeps_pauses_inside():
    samples = np.concatenate([sine(0.2), np.zeros(RATE, np.float32), sine(0.2)])
    assert len(trim_silence(samples, RATE)) == len(samples)


@pytest.mark.parametrize("length", [0, 1, 500])
def test_trim_leaves_silence_alone(length):
    assert len(trim_silence(np.zeros(length, np.float32), RATE)) == length


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 3000))
def test_trim_never_cuts_what_is_loud(before, loud, after):
    samples = np.concatenate([np.zeros(before), np.ones(loud), np.zeros(after)]).astype(np.float32)
    assert trim_silence(samples, RATE, keep_seconds=0).sum() == loud


def test_k_weighting_equals_the_standards_table_at_48_khz():
    expected = [
        [1.53512485958697, -2.69169618940638, 1.19839281085285]
        + [1.0, -1.69065929318241, 0.73248077421585],
        [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621],
    ]
    np.testing.assert_allclose(_k_weighting(48000), expected, atol=1e-10)


@pytest.mark.parametrize("rate", [16000, 22050, 24000, 44100, 48000])
@pytest.mark.parametrize(("amplitude", "expected"), [(1.0, -3.01), (0.1, -23.01)])
def test_a_sine_reads_as_the_standard_says(rate, amplitude, expected):
    assert loudness(sine(3, amplitude, rate), rate) == pytest.approx(expected, abs=0.05)


def test_silence_does_not_lower_the_loudness():
    # Of ten seconds, five are silent: a plain mean would lose 3 dB. The gate leaves 47 full blocks
    # and those at the border, which are full to 3/4, 1/2 and 1/4: 10 log10(48.5 / 50) = -0.13.
    samples = np.concatenate([sine(5), np.zeros(5 * RATE, np.float32)])
    assert loudness(samples, RATE) == pytest.approx(loudness(sine(5), RATE) - 0.132, abs=0.005)


def test_the_relative_gate_leaves_out_quiet_passages():
    # 20 dB below the rest is gated away; 6 dB below is not: 10 log10((1 + 1/4) / 2) = -2.04.
    quiet = np.concatenate([sine(20), sine(20, 0.1)])
    softer = np.concatenate([sine(20), sine(20, 0.5)])
    assert loudness(quiet, RATE) == pytest.approx(-3.0, abs=0.1)
    assert loudness(softer, RATE) == pytest.approx(-5.04, abs=0.1)


@pytest.mark.parametrize("length", [0, 1, 100, RATE])
def test_silence_has_no_loudness_and_stays(length):
    silence = np.zeros(length, np.float32)
    assert loudness(silence, RATE) == -np.inf
    np.testing.assert_array_equal(normalise_loudness(silence, RATE, -23.0), silence)


def test_a_clip_shorter_than_a_block_is_measured():
    # 0.3 s: the filters' onset weighs more, hence the tolerance.
    assert loudness(sine(0.3), RATE) == pytest.approx(-3.0, abs=0.3)


@pytest.mark.parametrize("amplitude", [0.01, 0.3, 1.0])
def test_normalising_reaches_the_target(amplitude):
    scaled = normalise_loudness(sine(2, amplitude), RATE, -23.0)
    assert scaled.dtype == np.float32
    assert loudness(scaled, RATE) == pytest.approx(-23.0, abs=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.floats(-40.0, 10.0), st.integers(0, 2**31))
def test_peaks_stay_below_the_limit(target, seed):
    samples = np.random.default_rng(seed).laplace(0, 0.05, 8000).astype(np.float32)
    scaled = normalise_loudness(samples, RATE, target)
    assert np.abs(scaled).max() <= 0.99 + 1e-6
    # Only the scale changes, never the shape of the wave.
    gain = scaled[np.abs(samples).argmax()] / samples[np.abs(samples).argmax()]
    np.testing.assert_allclose(scaled, samples * gain, rtol=1e-5)
