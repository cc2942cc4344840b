"""The decoders: padding, causality, and speaking step by step as in training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.decoder import DECODERS, build_decoder, natural_mel, scaled_mel

WIDTH, VOICE_DIM, MELS, REDUCTION = 6, 5, 4, 2
STRATEGIES = tuple(DECODERS)


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(3)


def make_decoder(strategy: str, dtype: str = "float32") -> keras.layers.Layer:
    """A tiny decoder of which no weight is zero, so that every input can be felt."""
    settings = {"dim": 8, "num_layers": 3, "reduction": REDUCTION, "n_mels": MELS, "dropout": 0.1}
    keras.config.set_dtype_policy(dtype)
    try:
        decoder = build_decoder(strategy, **settings)
    finally:
        keras.config.set_dtype_policy("float32")
    decoder.build((None, None, WIDTH), (None,), (None, VOICE_DIM), (None, None, MELS))
    random = np.random.default_rng(4)
    for weight in decoder.weights:
        if weight.dtype == "float32":
            weight.assign(weight + 0.2 * random.normal(size=weight.shape))
    return decoder


def make_inputs(num_frames: int, batch: int = 2) -> dict[str, tf.Tensor]:
    random = np.random.default_rng(5)
    shapes = {
        "frames": (batch, num_frames, WIDTH),
        "voice": (batch, VOICE_DIM),
        "mel": (batch, num_frames, MELS),
    }
    return {
        name: tf.constant(random.normal(size=shape), tf.float32) for name, shape in shapes.items()
    }


def speak(decoder, inputs, lengths, **changed):
    return decoder(**{**inputs, **changed}, lengths=tf.constant(lengths))


def with_noise_from(tensor: tf.Tensor, frame: int) -> tf.Tensor:
    """The same up to a frame, something else from there on."""
    is_after = tf.range(tensor.shape[1])[None, :, None] >= frame
    return tf.where(is_after, 7.0 - 3.0 * tensor, tensor)


def test_scaling_and_its_inverse_agree():
    mel = tf.constant([[-11.5129, -5.5, 2.0]])
    np.testing.assert_allclose(scaled_mel(mel), [[-2.40516, 0.0, 3.0]], atol=1e-6)
    np.testing.assert_allclose(natural_mel(scaled_mel(mel)), mel, atol=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_outputs_have_a_row_per_frame_and_a_logit_per_group(strategy):
    said = speak(make_decoder(strategy), make_inputs(10), [10, 7])
    assert {name: tuple(value.shape) for name, value in said.items()} == {
        "mel": (2, 10, MELS),
        "stop": (2, 5),
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_padding_changes_nothing(strategy):
    decoder, inputs = make_decoder(strategy), make_inputs(20)
    short = {name: value[:, :8] if name != "voice" else value for name, value in inputs.items()}
    expected = speak(decoder, short, [8, 8])
    padded = speak(decoder, inputs, [8, 8])
    np.testing.assert_allclose(padded["mel"][:, :8], expected["mel"], atol=1e-5)
    np.testing.assert_allclose(padded["stop"][:, :4], expected["stop"], atol=1e-5)
    generated = decoder.generate(inputs["frames"], tf.constant([8, 8]), inputs["voice"])
    alone = decoder.generate(short["frames"], tf.constant([8, 8]), inputs["voice"])
    np.testing.assert_allclose(generated["mel"][:, :8], alone["mel"], atol=1e-5)
    np.testing.assert_allclose(generated["stop"][:, :4], alone["stop"], atol=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_utterance_is_said_as_it_is_alone(strategy):
    decoder, inputs = make_decoder(strategy), make_inputs(12)
    together = speak(decoder, inputs, [12, 6])
    alone = speak(decoder, {name: value[1:] for name, value in inputs.items()}, [6])
    np.testing.assert_allclose(together["mel"][1:, :6], alone["mel"][:, :6], atol=1e-5)
    np.testing.assert_allclose(together["stop"][1:, :3], alone["stop"][:, :3], atol=1e-5)


@pytest.mark.parametrize("name", ["frames", "mel"])
def test_the_autoregressive_decoder_sees_no_future(name):
    decoder, inputs = make_decoder("autoregressive"), make_inputs(16)
    expected = speak(decoder, inputs, [16, 16])
    found = speak(decoder, inputs, [16, 16], **{name: with_noise_from(inputs[name], 8)})
    # A group sees its own text, and the mel of the groups before it.
    seen = 8 if name == "frames" else 8 + REDUCTION
    np.testing.assert_array_equal(found["mel"][:, :seen], expected["mel"][:, :seen])
    np.testing.assert_array_equal(found["stop"][:, : seen // 2], expected["stop"][:, : seen // 2])
    after = np.abs(found["mel"][:, seen:] - expected["mel"][:, seen:])
    assert (after.max(axis=(1, 2)) > 1e-3).all()


def test_the_parallel_decoder_sees_both_sides_of_a_frame():
    decoder, inputs = make_decoder("parallel"), make_inputs(16)
    expected = speak(decoder, inputs, [16, 16])["mel"]
    later = speak(decoder, inputs, [16, 16], frames=with_noise_from(inputs["frames"], 8))["mel"]
    assert np.abs(later[:, 7] - expected[:, 7]).max() > 1e-3
    # Three blocks of two groups each way reach no further than six groups.
    long = make_inputs(32)
    expected = speak(decoder, long, [32, 32])["mel"]
    later = speak(decoder, long, [32, 32], frames=with_noise_from(long["frames"], 20))["mel"]
    np.testing.assert_array_equal(later[:, :8], expected[:, :8])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_speaker_embedding_changes_the_mel(strategy):
    decoder, inputs = make_decoder(strategy), make_inputs(8)
    expected = speak(decoder, inputs, [8, 8])["mel"]
    found = speak(decoder, inputs, [8, 8], voice=-inputs["voice"])["mel"]
    assert np.abs(found - expected).max() > 1e-3


def test_generating_equals_reading_what_was_generated():
    decoder, inputs = make_decoder("autoregressive"), make_inputs(14)
    lengths = tf.constant([14, 14])
    generated = decoder.generate(inputs["frames"], lengths, inputs["voice"])
    forced = speak(decoder, inputs, [14, 14], mel=generated["mel"])
    np.testing.assert_allclose(forced["mel"], generated["mel"], atol=1e-4)
    np.testing.assert_allclose(forced["stop"], generated["stop"], atol=1e-4)


def test_without_a_true_mel_the_autoregressive_decoder_generates():
    decoder, inputs = make_decoder("autoregressive"), make_inputs(6)
    generated = decoder.generate(inputs["frames"], tf.constant([6, 6]), inputs["voice"])
    found = speak(decoder, inputs, [6, 6], mel=None)
    np.testing.assert_array_equal(found["mel"], generated["mel"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_generating_in_a_graph_takes_any_shape_in_one_trace(strategy):
    decoder = make_decoder(strategy)
    signature = [
        tf.TensorSpec([None, None, WIDTH]),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None, VOICE_DIM]),
    ]
    graph = tf.function(decoder.generate, input_signature=signature)
    for batch, num_frames in ((1, 4), (3, 10)):
        inputs = make_inputs(num_frames, batch)
        given = inputs["frames"], tf.fill([batch], num_frames), inputs["voice"]
        expected, found = decoder.generate(*given), graph(*given)
        for name in ("mel", "stop"):
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    assert graph.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_weight_learns(strategy):
    decoder, inputs = make_decoder(strategy), make_inputs(12)
    with tf.GradientTape() as tape:
        said = speak(decoder, inputs, [12, 12])
        loss = tf.reduce_sum(said["mel"] ** 2) + tf.reduce_sum(said["stop"])
    for weight, gradient in zip(
        decoder.trainable_variables,
        tape.gradient(loss, [weight.value for weight in decoder.trainable_variables]),
        strict=True,
    ):
        assert gradient is not None, weight.path
        assert np.abs(gradient).max() > 0, weight.path


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_under_a_mixed_policy_the_heads_are_float32(strategy):
    decoder, inputs = make_decoder(strategy, "mixed_float16"), make_inputs(8)
    said = speak(decoder, inputs, [8, 6])
    generated = decoder.generate(inputs["frames"], tf.constant([8, 6]), inputs["voice"])
    for name in ("mel", "stop"):
        assert said[name].dtype == tf.float32
        assert generated[name].dtype == tf.float32
        assert np.isfinite(said[name]).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_decoder_comes_back_from_its_config(strategy):
    decoder = make_decoder(strategy)
    twin = type(decoder).from_config(decoder.get_config())
    twin.build((None, None, WIDTH), (None,), (None, VOICE_DIM), (None, None, MELS))
    twin.set_weights(decoder.get_weights())
    inputs = make_inputs(8)
    expected, found = speak(decoder, inputs, [8, 8]), speak(twin, inputs, [8, 8])
    np.testing.assert_array_equal(found["mel"], expected["mel"])
