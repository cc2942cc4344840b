"""Adaptive weights, by hand."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.training.adaptive_weights import BOUND, MEMORY, AdaptiveWeights


def factors_of(balance: AdaptiveWeights, **terms: float) -> dict[str, float]:
    found = balance.factors({name: tf.constant(value) for name, value in terms.items()})
    return {name: float(value) for name, value in found.items()}


def test_weighted_terms_are_brought_to_their_mean():
    balance = AdaptiveWeights({"a": 1.0, "b": 0.5, "c": 0.0})
    # Weighted, a is 1 and b is 3: their mean is 2. What has no weight takes no part.
    assert factors_of(balance, a=1.0, b=6.0, c=100.0) == pytest.approx({"a": 2.0, "b": 2 / 3})


def test_factors_stay_within_a_quarter_and_four():
    balance = AdaptiveWeights({"a": 1.0, "b": 1.0, **{name: 1.0 for name in "cdefgh"}})
    terms = {"a": 1e-3, "b": 1000.0, **{name: 1e-3 for name in "cdefgh"}}
    found = factors_of(balance, **terms)
    assert found["a"] == BOUND
    assert found["b"] == 1 / BOUND


def test_a_term_that_is_always_zero_neither_counts_nor_is_scaled():
    balance = AdaptiveWeights({"a": 1.0, "b": 1.0, "zero": 1.0})
    found = factors_of(balance, a=1.0, b=3.0, zero=0.0)
    assert found == pytest.approx({"a": 2.0, "b": 2 / 3, "zero": 1.0})


def test_it_remembers_some_hundred_steps():
    balance = AdaptiveWeights({"a": 1.0, "b": 1.0})
    factors_of(balance, a=1.0, b=1.0)
    factors_of(balance, a=2.0, b=1.0)
    np.testing.assert_allclose(balance.means.numpy(), [MEMORY + (1 - MEMORY) * 2, 1], rtol=1e-6)
    assert [variable.path for variable in balance.variables] == [balance.means.path]


def test_no_gradient_flows_through_a_factor():
    balance = AdaptiveWeights({"a": 1.0, "b": 1.0})
    value = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        factors = balance.factors({"a": value * 1.0, "b": tf.constant(1.0)})
    assert tape.gradient(factors["a"], value) is None
