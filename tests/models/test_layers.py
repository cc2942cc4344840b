"""Building blocks: masks hide the padding, and the speaker embedding matters."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.audio_encoder import AudioEncoder
from myxtts.models.layers import (
    AttentionBlock,
    ConvBlock,
    LayerNorm,
    Modulation,
    gelu,
    positions,
    sequence_mask,
)
from myxtts.models.prosody import ProsodyPredictor, scaled_energy, scaled_pitch
from myxtts.models.text_encoder import TextEncoder

DIM, VOICE_DIM, TIME = 8, 5, 6


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(3)


def randomised(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Move every weight away from where it starts: some start at zero."""
    random = np.random.default_rng(4)
    for weight in layer.trainable_variables:
        weight.assign(weight + 0.3 * random.normal(size=weight.shape))
    return layer


def make(kind, *settings, **named) -> keras.layers.Layer:
    layer = kind(*settings, **named)
    layer.build((None, None, DIM), (None, None, 1), (None, VOICE_DIM))
    return randomised(layer)


def normal(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_a_sequence_mask_is_one_up_to_each_length():
    mask = sequence_mask(tf.constant([0, 2, 3]), 3)
    np.testing.assert_array_equal(mask, [[0, 0, 0], [1, 1, 0], [1, 1, 1]])


def test_positions_are_sines_and_cosines_of_falling_rates():
    # With four numbers the rates are 1 and 10000^(-1/2) = 1/100.
    at_three = [np.sin(3), np.sin(0.03), np.cos(3), np.cos(0.03)]
    np.testing.assert_allclose(positions(4, 4)[3], at_three, atol=1e-6)


def test_modulation_scales_and_shifts_the_normalised_by_the_voice():
    layer = Modulation(2)
    layer.build((None, None, 2), (None, 1))
    x = tf.constant([[[1.0, 3.0]]])
    # Normalised, that is -1 and 1; at first the voice makes no difference.
    np.testing.assert_allclose(layer(x, tf.constant([[9.0]])), [[[-1, 1]]], atol=1e-4)
    layer.voice.kernel.assign([[0.5, 0.0, 10.0, 20.0]])
    np.testing.assert_allclose(layer(x, tf.constant([[2.0]])), [[[18, 41]]], atol=1e-3)


def test_modulation_has_the_values_and_the_gradients_of_its_parts():
    layer = Modulation(DIM)
    layer.build((None, None, DIM), (None, VOICE_DIM))
    randomised(layer)
    x, voice = tf.constant(3 + normal(2, TIME, DIM)), tf.constant(normal(2, VOICE_DIM))
    wanted = tf.constant(normal(2, TIME, DIM, seed=6))

    def by_parts():
        scale, shift = tf.split(layer.voice(voice)[:, None, :], 2, axis=-1)
        return layer.norm(x) * (1.0 + scale) + shift

    def gradients(call):
        with tf.GradientTape() as tape:
            tape.watch([x, voice])
            said = call()
            loss = tf.reduce_sum(said * wanted)
        weights = [one.value for one in layer.trainable_variables]
        return said, *tape.gradient(loss, [x, voice, *weights])

    for found, expected in zip(
        gradients(lambda: layer(x, voice)), gradients(by_parts), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("own", "keras_has"),
    [
        (gelu, keras.activations.gelu),
        (LayerNorm(), keras.layers.LayerNormalization(epsilon=1e-5)),
    ],
    ids=["gelu", "LayerNorm"],
)
def test_values_and_gradients_are_those_of_keras(own, keras_has):
    x = tf.constant(3 * normal(2, TIME, DIM) + 1)
    wanted = tf.constant(normal(2, TIME, DIM, seed=6))
    results = []
    for call in (own, keras_has):
        with tf.GradientTape() as tape:
            tape.watch(x)
            said = call(x)
            loss = tf.reduce_sum(said * wanted)
        results.append((said, tape.gradient(loss, x)))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [ConvBlock, lambda dim: AttentionBlock(dim, 2)])
def test_what_lies_in_the_padding_is_not_seen(kind):
    block = make(kind, DIM)
    x, voice = normal(1, TIME, DIM), normal(1, VOICE_DIM)
    other = x.copy()
    other[:, 4:] = 99.0
    mask = sequence_mask(tf.constant([4]), TIME)[:, :, None]
    np.testing.assert_array_equal(block(x, mask, voice)[:, :4], block(other, mask, voice)[:, :4])


def test_attention_looks_at_every_real_token_and_at_no_padding():
    """An inverted mask looks only at the padding, and the loss still falls."""
    block = make(AttentionBlock, DIM, 2)
    x, voice = normal(1, TIME, DIM), normal(1, VOICE_DIM)
    mask = sequence_mask(tf.constant([4]), TIME)[:, :, None]
    before = block(x, mask, voice)
    for position in range(TIME):
        changed = x.copy()
        changed[0, position] += normal(DIM, seed=6)
        seen = np.abs(block(changed, mask, voice) - before)[0].max(axis=1)
        others = [at for at in range(TIME) if at != position]
        if position < 4:
            assert (seen[others] > 1e-4).all(), position
        else:
            np.testing.assert_array_equal(seen[others], 0)


def test_a_causal_block_step_by_step_equals_the_block_at_once():
    block = make(ConvBlock, DIM, 3, causal=True)
    x, voice = tf.constant(normal(2, TIME, DIM)), tf.constant(normal(2, VOICE_DIM))
    cache, said = tf.zeros([2, 2, DIM]), []
    for at in range(TIME):
        moment, cache = block.step(x[:, at : at + 1], cache, voice)
        said.append(moment)
    at_once = block(x, tf.ones([2, TIME, 1]), voice)
    np.testing.assert_allclose(tf.concat(said, axis=1), at_once, atol=1e-5)


def test_a_block_without_training_drops_nothing_and_with_it_something():
    block = make(ConvBlock, DIM, dropout=0.5)
    x, voice, mask = normal(1, TIME, DIM), normal(1, VOICE_DIM), tf.ones([1, TIME, 1])
    np.testing.assert_array_equal(block(x, mask, voice), block(x, mask, voice))
    assert np.abs(block(x, mask, voice, training=True) - block(x, mask, voice)).max() > 0.01


@pytest.mark.parametrize("length", [5, 8, 9])
def test_a_voice_is_of_unit_mean_square_and_does_not_depend_on_padding(length):
    encoder = AudioEncoder(DIM, 3, VOICE_DIM, 4)
    encoder.build((None, None, 4), (None,))
    randomised(encoder)
    mel, lengths = normal(2, length, 4), tf.constant([length, 4])
    voice = encoder(mel, lengths)
    np.testing.assert_allclose(tf.reduce_mean(voice**2, axis=1), [1, 1], atol=1e-4)
    longer = np.pad(mel, [(0, 0), (0, 7), (0, 0)], constant_values=5.0)
    np.testing.assert_allclose(encoder(longer, lengths), voice, atol=1e-5)
    np.testing.assert_allclose(encoder(mel[1:, :4], lengths[1:])[0], voice[1], atol=1e-5)
    assert np.abs(voice[0] - voice[1]).max() > 0.01


def test_the_text_encoder_hears_tokens_language_and_voice():
    encoder = TextEncoder(9, 2, DIM, 1, 1, 2, 0.1)
    encoder.build((None, None), (None, None, 1), (None,), (None, VOICE_DIM))
    randomised(encoder)
    tokens, mask = tf.constant([[1, 2, 3]]), tf.ones([1, 3, 1])
    language, voice = tf.constant([0]), tf.constant(normal(1, VOICE_DIM))
    said = encoder(tokens, mask, language, voice)
    assert said.shape == (1, 3, DIM)
    for other in (
        encoder(tokens + 1, mask, language, voice),
        encoder(tokens, mask, language + 1, voice),
        encoder(tokens, mask, language, -voice),
        encoder(tokens[:, ::-1], mask, language, voice)[:, ::-1],
    ):
        assert np.abs(other - said).max() > 0.01


def test_the_predictor_gives_its_quantities_per_token():
    predictor = make(ProsodyPredictor, DIM, ("log_durations", "energy"))
    mask = tf.ones([2, TIME, 1])
    said = predictor(normal(2, TIME, DIM), mask, normal(2, VOICE_DIM))
    assert {name: tuple(value.shape) for name, value in said.items()} == {
        name: (2, TIME) for name in ("log_durations", "energy")
    }


def test_pitch_and_energy_are_centred_logarithms():
    # ln 148.413 = 5, the centre; ln 210.608 = 5.35, one unit above it; no pitch is 0.
    np.testing.assert_allclose(
        scaled_pitch(tf.constant([148.413, 210.608, 0.0])), [0, 1, 0], 0, 1e-4
    )
    # ln 7.389 = 2, the centre; ln 54.598 = 4, one unit above it; .1 keeps silence finite.
    found = scaled_energy(tf.constant([7.389 - 0.1, 54.598 - 0.1, 0.0]))
    np.testing.assert_allclose(found, [0, 1, (np.log(0.1) - 2) / 2], atol=1e-4)
