"""The trend of a loss: whether it falls, and whether that is more than noise."""

import math

import numpy as np
import pytest

from myxtts.monitoring.trend import IMPROVES, LEVEL, TOO_EARLY, WORSENS, trend_of


def points(losses):
    return [(100 * (i + 1), loss) for i, loss in enumerate(losses)]


def test_three_values_say_nothing():
    found = trend_of(points([3.0, 2.0, 1.0]))
    assert (found.kind, found.count) == (TOO_EARLY, 3)
    assert "3 of 4 validations" in found.sentence


def test_a_line_that_falls_improves_by_its_fall():
    found = trend_of(points([1.0, 0.9, 0.8, 0.7]))
    assert found.kind == IMPROVES
    assert found.change == pytest.approx(-0.3)
    assert "30.0 %" in found.sentence


def test_a_line_that_rises_worsens():
    assert trend_of(points([1.0, 1.1, 1.2, 1.3])).kind == WORSENS


def test_what_fell_long_ago_does_not_count():
    assert trend_of(points([5.0, 3.0, 2.0, 1.5, 1.0, 1.01, 0.99, 1.01, 0.99, 1.0])).kind == LEVEL


def test_a_slope_within_its_noise_is_level():
    steps = np.arange(24)
    assert trend_of(points(1.0 - 0.001 * steps + 0.1 * (-1.0) ** steps)).kind == LEVEL
    assert trend_of(points(1.0 - 0.01 * steps + 0.001 * (-1.0) ** steps)).kind == IMPROVES


def test_a_loss_that_falls_ever_more_slowly_improves():
    assert trend_of(points([1.90, 1.05, 0.66, 0.53, 0.474])).kind == IMPROVES


def test_a_constant_and_what_is_no_number_are_level():
    assert trend_of(points([1.0] * 6)).kind == LEVEL
    assert trend_of([*points([1.0] * 6), (900, math.nan)]).kind == LEVEL
    assert trend_of([(5, 1.0)] * 6).kind == LEVEL
