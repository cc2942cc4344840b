"""Normalised convolutions against the same in NumPy, with weights as torch lays them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models import weight_norm
from myxtts.models.weight_norm import (
    SpectralNormConv1D,
    WeightNormConv1D,
    WeightNormConv1DTranspose,
    WeightNormConv2D,
)

LAYERS = {
    "plain": lambda **k: WeightNormConv1D(6, 3, **k),
    "dilated": lambda **k: WeightNormConv1D(6, 5, dilation=3, **k),
    "strided": lambda **k: WeightNormConv1D(6, 5, stride=2, **k),
    "grouped": lambda **k: WeightNormConv1D(6, 5, stride=2, groups=2, **k),
    "transposed": lambda **k: WeightNormConv1DTranspose(6, 8, 4, **k),
    "flat": lambda **k: WeightNormConv2D(6, (5, 1), (3, 1), **k),
}


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(5)


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def data(kind: str) -> np.ndarray:
    return normal(2, 13, 3, 4) if kind == "flat" else normal(2, 13, 4)


def built(kind: str, **options) -> keras.layers.Layer:
    layer = LAYERS[kind](**options)
    layer.build((None, *data(kind).shape[1:]))
    return layer


def randomised(layer: keras.layers.Layer) -> keras.layers.Layer:
    for i, weight in enumerate(layer.trainable_variables):
        weight.assign(normal(*weight.shape, seed=i))
    return layer


def torch_weight(layer) -> np.ndarray:
    """The normalised weight, its axes in torch's order, where the norm leaves the first alone."""
    v = np.moveaxis(layer.v.numpy(), -1, 0)  # of transposed convolutions this is the input
    lengths = np.sqrt((v**2).sum(axis=tuple(range(1, v.ndim)), keepdims=True))
    return layer.g.numpy().reshape(lengths.shape) * v / lengths


@pytest.mark.parametrize(
    ("kind", "stride", "dilation", "groups"),
    [
        ("plain", 1, 1, 1),
        ("dilated", 1, 3, 1),
        ("strided", 2, 1, 1),
        ("grouped", 2, 1, 2),
    ],
)
def test_a_convolution_in_numpy(kind, stride, dilation, groups):
    layer, x = randomised(built(kind)), data(kind)
    weight = torch_weight(layer)  # [out, kernel, in / groups]
    size, inputs = weight.shape[1:]
    padding = dilation * (size - 1) // 2
    padded = np.pad(x, [(0, 0), (padding, padding), (0, 0)])
    expected = np.zeros((2, (len(x[0]) + 2 * padding - dilation * (size - 1) - 1) // stride + 1, 6))
    for out in range(6):
        start = out // (6 // groups) * inputs
        for t in range(expected.shape[1]):
            window = padded[:, t * stride :][:, : dilation * size : dilation]
            window = window[:, :, start : start + inputs]
            expected[:, t, out] = (window * weight[out]).sum(axis=(1, 2)) + layer.bias[out]
    np.testing.assert_allclose(layer(x), expected, atol=2e-5)


def test_a_transposed_convolution_in_numpy():
    layer, x = randomised(built("transposed")), data("transposed")
    weight = torch_weight(layer)  # [in, kernel, out]
    assert weight.shape == (4, 8, 6) and layer.g.shape == (4,)
    whole = np.zeros((2, 12 * 4 + 8, 6))
    for t in range(13):
        whole[:, 4 * t : 4 * t + 8] += np.einsum("bi,iko->bko", x[:, t], weight)
    # The kernel is longer than the stride by 4: two of the surplus are cropped on each side.
    np.testing.assert_allclose(layer(x), whole[:, 2:-2] + layer.bias.numpy(), atol=2e-5)


def test_a_flat_convolution_treats_each_column_by_itself():
    layer, x = randomised(built("flat")), data("flat")
    twin = WeightNormConv1D(6, 5, stride=3)
    twin.build((None, None, 4))
    for own, other in zip(twin.weights, layer.weights, strict=True):
        own.assign(tf.reshape(other, own.shape))
    for column in range(3):
        np.testing.assert_allclose(layer(x)[:, :, column], twin(x[:, :, column]), atol=1e-5)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_folded_layer_gives_the_same(kind):
    layer, plain = randomised(built(kind)), built(kind, weight_norm=False)
    plain.kernel.assign(layer.effective_kernel())
    plain.bias.assign(layer.bias)
    assert {weight.name for weight in plain.weights} == {"kernel", "bias"}
    np.testing.assert_array_equal(plain(data(kind)), layer(data(kind)))


@pytest.mark.parametrize("kind", LAYERS)
def test_at_the_start_the_lengths_are_those_of_the_directions(kind):
    layer = built(kind)
    np.testing.assert_allclose(layer.effective_kernel(), layer.v, rtol=1e-5)
    np.testing.assert_allclose(np.moveaxis(layer.v, -1, 0), torch_weight(layer), rtol=1e-5)


def test_new_weights_are_normal_or_uniform_as_torch_s():
    given = WeightNormConv1D(64, 7, stddev=0.01)
    given.build((None, None, 64))
    assert np.std(given.v) == pytest.approx(0.01, rel=0.02)
    default = WeightNormConv1D(64, 7, groups=4)
    default.build((None, None, 64))
    bound = 1 / np.sqrt(16 * 7)
    for weight in (default.v, default.bias):
        assert 0.9 * bound < np.abs(weight).max() <= bound
    assert np.std(default.v) == pytest.approx(bound / np.sqrt(3), rel=0.02)


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_reach_lengths_and_turn_directions(kind):
    layer = randomised(built(kind))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(data(kind))))
    gradients = tape.gradient(loss, [layer.v, layer.g, layer.bias])
    assert all(np.abs(gradient).max() > 0.1 for gradient in gradients)
    # What lengthens a direction changes nothing.
    along = np.sum(gradients[0] * layer.v, axis=tuple(range(len(layer.v.shape) - 1)))
    np.testing.assert_allclose(along, 0.0, atol=1e-4 * np.abs(gradients[0]).max())


def test_the_gradient_of_groups_is_that_of_a_kernel_with_zeros_between_them():
    grouped = randomised(built("grouped", weight_norm=False))
    whole = built("strided", weight_norm=False)
    blocks = np.zeros(whole.kernel.shape, np.float32)
    for group in range(2):
        place = np.s_[:, 2 * group : 2 * group + 2, 3 * group : 3 * group + 3]
        blocks[place] = grouped.kernel[:, :, 3 * group : 3 * group + 3]
    whole.kernel.assign(blocks)
    whole.bias.assign(grouped.bias)
    x = tf.constant(data("grouped"))
    found = []
    for layer in (grouped, whole):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(layer(x)))
        found.append(tape.gradient(loss, [x, layer.kernel]))
    (of_x, of_groups), (expected, of_whole) = found
    np.testing.assert_allclose(of_x, expected, atol=1e-4)
    expected = np.concatenate([of_whole[:, :2, :3], of_whole[:, 2:, 3:]], axis=-1)
    np.testing.assert_allclose(of_groups, expected, atol=1e-3)


def test_a_filter_of_zeros_stays_one():
    layer = randomised(built("plain"))
    layer.v.assign(layer.v * [0, 1, 1, 1, 1, 1])
    with tf.GradientTape() as tape:
        y = layer(data("plain"))
        loss = tf.reduce_sum(tf.square(y))
    np.testing.assert_allclose(y[:, :, 0], layer.bias[0])
    assert all(np.isfinite(g).all() for g in tape.gradient(loss, layer.trainable_variables))


def test_half_precision_does_not_lose_the_norms():
    layer = built("plain", dtype="mixed_float16")
    layer.v.assign(1e-5 * normal(*layer.v.shape))  # their squares are zero in float16
    layer.g.assign(np.ones(6))
    x = data("plain")
    assert layer(x).dtype == tf.float16
    exact = built("plain")
    for own, other in zip(exact.weights, layer.weights, strict=True):
        own.assign(other)
    np.testing.assert_allclose(layer(x), exact(x), atol=0.02)


# Spectral normalisation.


def spectral(**options) -> SpectralNormConv1D:
    layer = SpectralNormConv1D(6, 5, stride=2, groups=2, **options)
    layer.build((None, None, 4))
    return randomised(layer)


def largest(kernel) -> float:
    return np.linalg.svd(np.reshape(kernel, [-1, kernel.shape[-1]]), compute_uv=False)[0]


def test_training_finds_the_largest_singular_value():
    layer, x = spectral(), data("grouped")
    assert abs(largest(layer.effective_kernel()) - 1) > 0.01
    step = tf.function(lambda: layer(x, training=True))
    for _ in range(100):
        step()
    assert largest(layer.effective_kernel()) == pytest.approx(1.0, abs=1e-4)
    divided = layer.kernel.numpy() / largest(layer.kernel)
    np.testing.assert_allclose(layer.effective_kernel(), divided, atol=1e-4)


def test_one_call_is_one_power_iteration_and_only_in_training():
    layer, x = spectral(), data("grouped")
    matrix, left = np.reshape(layer.kernel, [-1, 6]), layer.left.numpy()
    before = layer.right.numpy()
    layer(x)
    np.testing.assert_array_equal([*layer.left.numpy(), *layer.right.numpy()], [*left, *before])
    layer(x, training=True)
    right = matrix @ left / np.linalg.norm(matrix @ left)
    np.testing.assert_allclose(layer.right, right, atol=1e-6)
    left = matrix.T @ right / np.linalg.norm(matrix.T @ right)
    np.testing.assert_allclose(layer.left, left, atol=1e-6)
    divided = layer.kernel.numpy() / (right @ matrix @ left)
    np.testing.assert_allclose(layer.effective_kernel(), divided, rtol=1e-4)


def test_the_singular_value_has_a_gradient_and_its_vectors_none():
    layer = spectral()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(data("grouped"), training=True)))
    (gradient,) = tape.gradient(loss, [layer.kernel])
    assert np.abs(gradient).max() > 0.1
    # What scales the kernel changes nothing.
    assert abs(np.sum(gradient * layer.kernel)) < 1e-4 * np.abs(gradient).sum()
    assert {weight.name for weight in layer.trainable_variables} == {"kernel", "bias"}


@pytest.mark.parametrize("kind", [*LAYERS, "spectral"])
def test_a_layer_comes_back_from_its_settings(kind):
    layer = spectral() if kind == "spectral" else built(kind, weight_norm=False, stddev=0.5)
    twin = type(layer).from_config(layer.get_config())
    twin.build((None, *data(kind).shape[1:]))
    assert twin.get_config() == layer.get_config()
    twin.set_weights(layer.get_weights())
    np.testing.assert_array_equal(twin(data(kind)), layer(data(kind)))


def test_groups_side_by_side_or_in_one_dense_kernel_give_the_same(monkeypatch):
    layer, x = randomised(built("grouped")), tf.constant(data("grouped"))
    found = []
    for most in (0, 10**6):
        monkeypatch.setattr(weight_norm, "_MOST_DENSE", most)
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(tf.square(y))
        found.append([y, *tape.gradient(loss, layer.trainable_variables)])
    for split, dense in zip(*found, strict=True):
        np.testing.assert_allclose(split, dense, rtol=1e-4, atol=1e-4)
