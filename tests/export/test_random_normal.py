"""Noise from a seed, by operations of ONNX, against TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.export.random_normal import in_tracing, stateless_normal


@pytest.mark.parametrize("seed", [(0, 0), (7, 0), (2**31 - 1, 3), (-5, 12)])
@pytest.mark.parametrize("shape", [(1,), (7, 3), (40, 80)])
def test_it_is_tensorflows_noise(seed, shape):
    expected = tf.random.stateless_normal(shape, seed)
    found = stateless_normal(shape, tf.constant(seed, tf.int32))
    assert np.abs(found - expected).max() < 1e-5


def test_only_tracing_uses_it():
    own = tf.random.stateless_normal
    with in_tracing():
        assert tf.random.stateless_normal is stateless_normal
    assert tf.random.stateless_normal is own
