import math

import numpy as np
import pytest

from myxtts.evaluation.metrics.confidence import Interval, interval, mean, ratio_of_sums


def test_the_bounds_match_all_draws_of_two_sentences():
    # Of 0 and 1, a quarter of all draws has the mean 0, half of them .5 and a quarter 1, so that
    # what is between 30 and 70 % is .5 alone.
    found = interval([0.0, 1.0], level=0.4)
    assert (found.low, found.value, found.high, found.sentences) == (0.5, 0.5, 0.5, 2)
    assert interval([0.0, 1.0], level=0.95) == Interval(0.0, 0.5, 1.0, 2)


def test_a_rate_is_over_all_words_and_not_a_mean_of_sentences():
    # 1 of 2 and 0 of 8 words are wrong.
    found = interval([(1, 2), (0, 8)], ratio_of_sums)
    assert found.value == 0.1
    assert (found.low, found.high) == (0.0, 0.5)


@pytest.mark.parametrize("count", [40, 100])
def test_the_interval_covers_the_truth_as_often_as_its_level_says(count):
    rng = np.random.default_rng(0)
    found = [interval(rng.normal(3.0, 2.0, count), rounds=400) for _ in range(300)]
    inside = np.mean([one.low <= 3.0 <= one.high for one in found])
    assert 0.90 <= inside <= 0.98
    # The mean of normal values is within 1.96 standard errors.
    width = np.mean([one.high - one.low for one in found])
    assert width == pytest.approx(2 * 1.96 * 2.0 / math.sqrt(count), rel=0.06)


def test_the_interval_of_a_rate_covers_the_truth_too():
    rng = np.random.default_rng(1)
    words = rng.integers(5, 20, (200, 60))
    errors = rng.binomial(words, 0.1)
    found = [
        interval(np.stack(pair, axis=1), ratio_of_sums, rounds=400)
        for pair in zip(errors, words, strict=True)
    ]
    assert 0.89 <= np.mean([one.low <= 0.1 <= one.high for one in found]) <= 0.98


def test_more_sentences_narrow_the_interval_and_more_confidence_widens_it():
    values = np.random.default_rng(0).normal(size=1000)

    def width(values, level=0.95):
        found = interval(values, level=level)
        assert found.low < found.value < found.high
        return found.high - found.low

    assert width(values[:100]) > 2 * width(values)
    assert width(values, 0.99) > width(values, 0.9)


def test_the_same_seed_gives_the_same_interval_and_another_a_similar_one():
    values = np.random.default_rng(0).normal(size=50)
    assert interval(values, seed=3) == interval(values, seed=3)
    other = interval(values, seed=4)
    assert other != interval(values, seed=3)
    assert other.low == pytest.approx(interval(values, seed=3).low, abs=0.05)


def test_many_draws_are_made_in_parts(monkeypatch):
    values = np.random.default_rng(0).normal(size=50)
    whole = interval(values, rounds=999)
    monkeypatch.setattr("myxtts.evaluation.metrics.confidence._DRAWS_AT_ONCE", 600)
    parts = interval(values, rounds=999)
    assert (parts.low, parts.high) == pytest.approx((whole.low, whole.high), abs=0.05)


def test_any_statistic_of_draws_can_be_used():
    found = interval([1.0, 2.0, 3.0, 100.0, 5.0], lambda draws: np.median(draws, axis=1))
    assert found.value == 3.0 and found.low == 1.0


def test_equal_values_have_an_interval_of_no_width():
    assert interval([0.5] * 9) == Interval(0.5, 0.5, 0.5, 9)


def test_one_sentence_has_no_bounds():
    found = interval([0.5])
    assert (found.value, found.sentences) == (0.5, 1)
    assert math.isnan(found.low) and math.isnan(found.high)


def test_sentences_without_a_value_do_not_count():
    values = [1.0, math.nan, 2.0, 4.0]
    assert interval(values) == interval([1.0, 2.0, 4.0])
    pairs = [(1.0, 2.0), (math.nan, 3.0), (0.0, 4.0)]
    assert interval(pairs, ratio_of_sums).sentences == 2
    for none in ([], [math.nan]):
        found = interval(none)
        assert found.sentences == 0 and math.isnan(found.value) and math.isnan(found.low)


def test_a_rate_of_no_words_is_nan():
    assert math.isnan(interval([(1, 0), (2, 0)], ratio_of_sums).value)


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"level": 0.0}, {"rounds": 0}])
def test_invalid_arguments_are_rejected(wrong):
    with pytest.raises(ValueError, match="not"):
        interval([1.0, 2.0], mean, **wrong)
