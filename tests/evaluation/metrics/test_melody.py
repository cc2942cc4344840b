"""Melody: contours whose spread and slope can be worked out, and sung ones."""

import math

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.frames import Frames, analyse
from myxtts.evaluation.metrics.melody import SLOPE_WINDOW, energy_spread, f0_dynamics, f0_spread

SPEC = AudioSpec()
FRAME_RATE = SPEC.sample_rate / SPEC.hop_length


def make_frames(semitones, level=None) -> Frames:
    """Frames of a pitch in semitones above 200 Hz, NaN where unvoiced."""
    semitones = np.asarray(semitones, np.float64)
    f0 = np.nan_to_num(200.0 * 2.0 ** (semitones / 12.0))
    level = np.zeros(len(f0)) if level is None else level
    return Frames(np.zeros((len(f0), 80)), np.asarray(level, np.float64), f0, FRAME_RATE)


def sung(depth: float, hertz: float, seconds: float = 3.0, tremolo: float = 0.0) -> np.ndarray:
    """A voice at 200 Hz with a vibrato of so many semitones, and a tremolo in dB."""
    time = np.arange(round(seconds * SPEC.sample_rate)) / SPEC.sample_rate
    wave = np.sin(2 * np.pi * hertz * time)
    phase = 2 * np.pi * np.cumsum(200.0 * 2.0 ** (depth * wave / 12.0)) / SPEC.sample_rate
    voice = sum(np.sin(number * phase) / number for number in range(1, 11))
    return (0.2 * 10 ** (tremolo * wave / 20.0) * voice).astype(np.float32)


def test_the_spread_is_the_standard_deviation_in_semitones():
    assert f0_spread(make_frames([-2.0] * 30 + [2.0] * 30)) == pytest.approx(2.0)
    assert f0_spread(make_frames([5.0] * 30)) == pytest.approx(0.0, abs=1e-9)


def test_the_slope_is_that_of_lines_inside_of_voiced_runs():
    # A tenth of a semitone a frame, up and then down; the jump between the runs does not count.
    rise = np.arange(30) / 10
    found = f0_dynamics(make_frames([*rise, math.nan, math.nan, *(8 - rise)]))
    assert found == pytest.approx(0.1 * FRAME_RATE)


def test_a_vibrato_has_the_spread_and_the_slope_of_a_sine():
    depth, hertz = 1.5, 3.0
    found = analyse(sung(depth, hertz), SPEC)
    assert f0_spread(found) == pytest.approx(depth / math.sqrt(2), rel=0.03)
    # The mean slope of a sine is 4 depths a period, of which a line through 7 frames keeps 97 %.
    place = np.arange(SLOPE_WINDOW) - SLOPE_WINDOW // 2
    turn = 2 * math.pi * hertz / FRAME_RATE
    kept = np.sum(place * np.sin(turn * place)) / (turn * np.sum(place**2))
    assert f0_dynamics(found) == pytest.approx(4 * depth * hertz * kept, rel=0.04)


def test_half_the_vibrato_is_half_the_melody():
    whole, half = (analyse(sung(depth, 3.0), SPEC) for depth in (2.0, 1.0))
    assert f0_spread(half) / f0_spread(whole) == pytest.approx(0.5, rel=0.03)
    assert f0_dynamics(half) / f0_dynamics(whole) == pytest.approx(0.5, rel=0.05)


def test_twice_as_fast_a_vibrato_has_twice_the_slope_and_the_same_spread():
    slow, fast = (analyse(sung(1.0, hertz), SPEC) for hertz in (1.5, 3.0))
    assert f0_dynamics(fast) / f0_dynamics(slow) == pytest.approx(2.0, rel=0.05)
    assert f0_spread(fast) / f0_spread(slow) == pytest.approx(1.0, rel=0.03)


def test_errors_of_an_octave_and_short_runs_do_not_count():
    plain = [0.0] * 30
    octave = plain + [12.0] * 10 + plain
    short = [*plain, math.nan, *[5.0] * (SLOPE_WINDOW - 1), math.nan, *plain]
    for contour in (octave, short):
        assert f0_spread(make_frames(contour)) == pytest.approx(0.0, abs=1e-9)
        assert f0_dynamics(make_frames(contour)) == pytest.approx(0.0, abs=1e-9)


def test_the_energy_spreads_in_db_over_voiced_and_loud_frames():
    level = [0.0] * 20 + [-12.0] * 20 + [-25.0] * 20 + [-40.0] * 20
    contour = [0.0] * 40 + [math.nan] * 20 + [0.0] * 20  # the third part is unvoiced
    assert energy_spread(make_frames(contour, level)) == pytest.approx(6.0)


def test_a_tremolo_of_6_db_has_an_energy_spread_of_its_standard_deviation():
    found = analyse(sung(0.0, 3.0, tremolo=6.0), SPEC)
    assert energy_spread(found) == pytest.approx(6.0 / math.sqrt(2), rel=0.05)


@pytest.mark.parametrize("measure", [f0_spread, f0_dynamics, energy_spread])
@pytest.mark.parametrize("contour", [[], [math.nan] * 50, [0.0] * 19])
def test_too_few_voiced_frames_have_no_figure(measure, contour):
    assert math.isnan(measure(make_frames(contour)))
