"""Convolutions in half precision: what is rounded, what stays, and where it applies."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.convolutions import Convolution, convolutions_in

FRAMES, CHANNELS, KERNEL = 11, 6, 5


def rounded(x) -> np.ndarray:
    return tf.cast(tf.cast(x, tf.bfloat16), tf.float32).numpy()


def convolved(x: np.ndarray, kernel: np.ndarray, ahead: int) -> np.ndarray:
    """The sum over the kernel's places, in float64, with so many of them before each frame."""
    x = np.pad(x.astype(np.float64), [(0, 0), (ahead, KERNEL - 1 - ahead), (0, 0)])
    return sum(x[:, at : at + FRAMES] @ kernel[at].astype(np.float64) for at in range(KERNEL))


@pytest.fixture
def x():
    return np.random.default_rng(1).normal(size=(2, FRAMES, CHANNELS)).astype(np.float32)


def make_layer(padding: str = "same") -> Convolution:
    layer = Convolution(CHANNELS, KERNEL, padding=padding, bias_initializer="random_normal")
    layer.build((None, None, CHANNELS))
    return layer


@pytest.mark.parametrize(("padding", "ahead"), [("same", 2), ("causal", 4)])
def test_only_what_is_multiplied_is_rounded(x, padding, ahead):
    layer = make_layer(padding)
    kernel, bias = (weight.numpy() for weight in layer.weights)
    with convolutions_in("bfloat16"):
        found = layer(x)
    assert found.dtype == tf.float32
    expected = rounded(convolved(rounded(x), rounded(kernel), ahead).astype(np.float32)) + bias
    # Sums that end next to the middle of two numbers of bfloat16 may be rounded either way.
    np.testing.assert_allclose(found, expected, rtol=2**-7, atol=2**-9)
    assert np.mean(np.isclose(found, expected, rtol=1e-6, atol=1e-6)) > 0.9


def test_otherwise_it_is_the_layer_of_keras(x):
    layer, plain = make_layer(), keras.layers.Conv1D(CHANNELS, KERNEL, padding="same")
    plain.build((None, None, CHANNELS))
    plain.set_weights(layer.get_weights())
    with convolutions_in("bfloat16"):
        half = layer(x).numpy()
    np.testing.assert_array_equal(layer(x), plain(x))
    assert np.any(half != plain(x).numpy())


def test_gradients_and_weights_stay_in_full(x):
    layer = make_layer()
    with tf.GradientTape() as tape, convolutions_in("bfloat16"):
        x = tf.constant(x)
        tape.watch(x)
        total = tf.reduce_sum(tf.square(layer(x)))
    of_x, *of_weights = tape.gradient(total, [x, *layer.trainable_variables])
    assert {one.dtype for one in (of_x, *of_weights)} == {tf.float32}
    assert {weight.dtype for weight in layer.weights} == {"float32"}


def test_a_function_keeps_what_it_was_traced_with(x):
    layer = make_layer()
    with convolutions_in("bfloat16"):
        half = tf.function(layer.call)
        expected = half(tf.constant(x)).numpy()
    np.testing.assert_array_equal(half(tf.constant(x)), expected)
    assert np.any(layer(x).numpy() != expected)


def test_a_mixed_policy_decides_for_itself(x):
    layer = Convolution(CHANNELS, KERNEL, padding="same", dtype="mixed_float16")
    with convolutions_in("bfloat16"):
        assert layer(x).dtype == tf.float16
