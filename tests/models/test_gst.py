"""Style tokens against the same attention written out in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.gst import StyleTokens

VOICE = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


@pytest.fixture
def style_tokens():
    keras.utils.set_random_seed(1)
    layer = StyleTokens(num_tokens=5, token_dim=3, style_dim=4, heads=2, name="style")
    layer.build((None, 6))
    return layer


def attention(layer, voice):
    """What the layer says it does, one voice and one head at a time."""
    tokens, *kernels = (weight.numpy() for weight in layer.weights)
    tokens = np.tanh(tokens)
    query, key, value = voice @ kernels[0], tokens @ kernels[1], tokens @ kernels[2]
    styles, weights = np.empty((len(voice), 4)), np.empty((len(voice), 2, 5))
    for row in range(len(voice)):
        for head, part in enumerate((slice(0, 2), slice(2, 4))):
            powers = np.exp(key[:, part] @ query[row, part] / np.sqrt(2))
            weights[row, head] = powers / powers.sum()
            styles[row, part] = weights[row, head] @ value[:, part]
    return styles, weights


def test_the_style_is_what_attention_over_the_tokens_gives(style_tokens):
    style, weights = style_tokens(VOICE)
    expected_style, expected_weights = attention(style_tokens, VOICE)
    np.testing.assert_allclose(style, expected_style, atol=1e-6)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_weights_choose_and_mix_the_tokens(style_tokens):
    values = np.tanh(style_tokens.tokens.numpy()) @ style_tokens.value.kernel.numpy()
    found = style_tokens.from_weights([[0.0, 0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.5]])
    np.testing.assert_allclose(found, [values[2], (values[0] + values[4]) / 2], atol=1e-6)


def test_equal_weights_are_what_a_voice_without_traits_gets(style_tokens):
    style, weights = style_tokens(np.zeros((1, 6), np.float32))
    np.testing.assert_allclose(weights, np.full((1, 2, 5), 0.2), atol=1e-6)
    np.testing.assert_allclose(style, style_tokens.from_weights([[0.2] * 5]), atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_mixed_policy_changes_nothing(style_tokens, policy):
    expected = style_tokens(VOICE)
    keras.config.set_dtype_policy(policy)
    try:
        layer = StyleTokens(num_tokens=5, token_dim=3, style_dim=4, heads=2)
        layer.build((None, 6))
    finally:
        keras.config.set_dtype_policy("float32")
    layer.set_weights(style_tokens.get_weights())
    for found, wanted in zip(layer(VOICE), expected, strict=True):
        assert found.dtype == tf.float32
        np.testing.assert_array_equal(found, wanted)


def test_every_weight_learns(style_tokens):
    with tf.GradientTape() as tape:
        style, _ = style_tokens(VOICE)
        loss = tf.reduce_sum(style * tf.constant([1.0, -2.0, 3.0, 0.5]))
    gradients = tape.gradient(loss, style_tokens.trainable_variables)
    assert len(gradients) == 4
    for gradient in gradients:
        assert np.abs(gradient).max() > 0


def test_a_saved_layer_comes_back_the_same(style_tokens, tmp_path):
    voice = keras.Input((6,))
    model = keras.Model(voice, style_tokens(voice))
    model.save(tmp_path / "style.keras")
    loaded = keras.saving.load_model(tmp_path / "style.keras")
    for found, wanted in zip(loaded(VOICE), model(VOICE), strict=True):
        np.testing.assert_array_equal(found, wanted)
    names = ("tokens", "query/kernel", "key/kernel", "value/kernel")
    assert [weight.path for weight in loaded.weights] == [f"style/{name}" for name in names]
