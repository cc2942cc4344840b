"""The speaker encoders against reference vectors, and against the same networks in NumPy."""

from functools import cache

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.io import AudioError, read_audio
from myxtts.audio.speaker_features import coqui_partials, resemblyzer_partials
from myxtts.models.speaker_encoders import coqui, ecapa, resemblyzer
from myxtts.models.speaker_encoders.registry import build_speaker_encoder, path_within
from myxtts.weights import WeightsError, read_checkpoint
from tests.helpers.make_voice import make_voice
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

KINDS = {"ecapa_tdnn": ecapa, "resemblyzer": resemblyzer, "coqui": coqui}
DIMS = {"ecapa_tdnn": 192, "resemblyzer": 256, "coqui": 512}
CLIPS = ["LJ_61", "LJ_72", "WS_61", "WS_15", "HS_61", "HS_72", "HS_63"]
# A softmax over time takes no notice of what is added to all scores of a channel.
NEVER_LEARNT = {
    "ecapa_tdnn": {"asp/conv/bias"},
    "resemblyzer": set(),
    "coqui": {"attention_2/beta", "attention_3/bias"},
}


# Against the original implementations.


@cache
def published(kind):
    encoder = build_speaker_encoder(kind)
    path = public_weights(kind)
    encoder.load(read_checkpoint(path), path)
    return encoder


@cache
def reference(name):
    return np.load(shared("reference") / f"{name}.npz")


@pytest.mark.parametrize("clip", CLIPS)
def test_ecapa_equals_the_reference(clip):
    vectors, encoder = reference("ecapa"), published("ecapa_tdnn")
    expected = vectors[f"embed_{clip}"]
    from_features = encoder.network(vectors[f"fbank_{clip}"][None])[0]
    np.testing.assert_allclose(from_features, expected, atol=2e-3)
    assert np.abs(from_features - expected).max() < 1e-4 * np.abs(expected).max()
    from_samples = encoder.embed(vectors[f"pcm_{clip}"] / np.float32(32768), 16000)
    np.testing.assert_allclose(from_samples, expected, atol=2e-2)
    assert cosine(from_samples, expected) >= 0.99999


def test_every_layer_of_ecapa_equals_the_reference():
    vectors, network = reference("ecapa"), published("ecapa_tdnn").network
    for name, found in ecapa_activations(network, vectors["fbank_LJ_61"][None]).items():
        for what, value in (("mean", found.mean(axis=0)), ("t0", found[0])):
            expected = vectors[f"act_{name}_{what}"]
            error = np.abs(value - expected).max()
            assert error < 1e-4 * np.abs(expected).max(), f"{name} {what}: {error}"


def test_ecapa_pooling_equals_the_reference():
    vectors, network = reference("ecapa"), published("ecapa_tdnn").network
    mfa = ecapa_activations(network, vectors["fbank_LJ_61"][None])["mfa"]
    pooled = network.asp(mfa[None])
    normed = network.asp_bn(pooled, training=False)
    for found, name in ((pooled, "act_asp"), (normed, "act_asp_bn")):
        limit = 1e-4 * np.abs(vectors[name]).max()
        np.testing.assert_allclose(found[0], vectors[name], atol=limit)


def ecapa_activations(network, features):
    """What each layer gives, [frames, channels], by the names of the reference."""
    first, block = network.first(features), network.blocks[0]
    found = {"blocks_0": first, "blocks_1_tdnn1": block.tdnn1(first)}
    found["blocks_1_res2net"] = block.res2net(found["blocks_1_tdnn1"])
    found["blocks_1_tdnn2"] = block.tdnn2(found["blocks_1_res2net"])
    found["blocks_1_se"] = block.se(found["blocks_1_tdnn2"])
    for number, block in enumerate(network.blocks, start=1):
        found[f"blocks_{number}"] = block(found[f"blocks_{number - 1}"])
    found["mfa"] = network.mfa(tf.concat([found[f"blocks_{n}"] for n in (1, 2, 3)], axis=-1))
    return {name: value[0].numpy() for name, value in found.items()}


@pytest.mark.parametrize("clip", CLIPS)
def test_resemblyzer_equals_the_reference(clip):
    vectors, network = reference("resemblyzer"), published("resemblyzer").network
    partial = network(vectors[f"mel0_{clip}"][None])[0]
    np.testing.assert_allclose(partial, vectors[f"partial0_{clip}"], atol=1e-5)
    # The reference's samples are those that the preprocessing left.
    partials = network(resemblyzer_partials(vectors[f"pcm_{clip}"] / np.float32(32768)))
    mean = np.mean(partials, axis=0)
    expected = vectors[f"embed_{clip}"]
    np.testing.assert_allclose(mean / np.linalg.norm(mean), expected, atol=1e-4)


def test_resemblyzer_embeds_recordings_as_the_reference_does():
    pytest.importorskip("webrtcvad")
    encoder, vectors = published("resemblyzer"), reference("resemblyzer")
    for clip in ("WS_15", "HS_63"):
        path = shared("excerpts80") / "wavs" / f"{clip.replace('_', '-')}.flac"
        found = encoder.embed(read_audio(path, 22050), 22050)
        # The reference rounded the samples to 16 bits in between.
        np.testing.assert_allclose(found, vectors[f"embed_{clip}"], atol=1e-3)


def test_the_table_of_ecapa_is_the_checkpoint_s():
    lines = (shared("reference") / "ecapa_checkpoint_keys.txt").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    counters = {name for name, *_ in rows if name.endswith("num_batches_tracked")}
    shapes = {name: shape for name, shape, _ in rows if name not in counters}
    assert {name: str(shape) for name, shape in ecapa.published_shapes().items()} == shapes
    assert len(shapes) == 200 and len(counters) == 31


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


# With random weights.


def random_arrays(kind, seed=0):
    """Tensors as a checkpoint has them, of a size that lets activations neither grow nor fade."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, shape in KINDS[kind].published_shapes().items():
        noise = rng.normal(size=shape).astype(np.float32)
        if len(shape) > 1:
            arrays[name] = noise / np.float32(np.sqrt(np.prod(shape[1:]) / 2))
        elif name.endswith(("running_var", "norm.weight", "bn1.weight", "bn2.weight")):
            arrays[name] = 1.0 + 0.2 * np.abs(noise)
        else:
            arrays[name] = 0.1 * noise
    return arrays


@cache
def random_encoder(kind):
    encoder = build_speaker_encoder(kind)
    encoder.load(random_arrays(kind), "random")
    return encoder


def features(kind, batch, frames, seed=1):
    shape = (batch, frames, KINDS[kind].BANDS)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_dimensions(kind):
    encoder = random_encoder(kind)
    assert (encoder.kind, encoder.dim, encoder.sample_rate) == (kind, DIMS[kind], 16000)
    assert encoder.network(features(kind, 2, 20)).shape == (2, encoder.dim)


def test_numbers_of_trainable_weights():
    def count(kind):
        weights = random_encoder(kind).network.trainable_weights
        return sum(int(np.prod(weight.shape)) for weight in weights)

    assert count("ecapa_tdnn") == 20_767_552  # as published
    # The checkpoint's LSTMs have 1,357,824, of which a second bias of 1024 in each layer.
    assert count("resemblyzer") == 1_357_824 - 3 * 1024 + 256 * 256 + 256


@pytest.mark.parametrize("kind", KINDS)
def test_each_clip_of_a_padded_batch_gives_what_it_gives_alone(kind):
    network = random_encoder(kind).network
    lengths = [24, 23, 17, 9, 5]
    batch = np.full((len(lengths), 24, KINDS[kind].BANDS), 7.0, np.float32)
    for row, length in enumerate(lengths):
        batch[row, :length] = features(kind, 1, length, seed=row)[0]
    found = network(batch, np.array(lengths, np.int32))
    for row, length in enumerate(lengths):
        alone = network(batch[row : row + 1, :length])[0]
        np.testing.assert_allclose(found[row], alone, atol=2e-5 * np.abs(alone).max())
    without = network(batch)
    assert np.abs(without[2] - found[2]).max() > 1e-3 * np.abs(found[2]).max()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_trainable_weight(kind):
    network = random_encoder(kind).network
    with tf.GradientTape() as tape:
        embedding = network(features(kind, 2, 20), np.array([20, 13], np.int32))
        loss = tf.reduce_sum(embedding * np.linspace(-1, 1, DIMS[kind], dtype=np.float32))
    gradients = tape.gradient(loss, network.trainable_variables)
    for variable, gradient in zip(network.trainable_variables, gradients, strict=True):
        is_learnt = np.abs(gradient).max() > 1e-6
        assert is_learnt or path_within(variable) in NEVER_LEARNT[kind], variable.path


@pytest.mark.parametrize("kind", KINDS)
def test_training_does_not_move_the_running_statistics(kind):
    network = random_encoder(kind).network
    x = features(kind, 1, 20)
    expected, before = network(x), [w.numpy() for w in network.non_trainable_weights]
    np.testing.assert_array_equal(network(x, training=True), expected)
    for weight, value in zip(network.non_trainable_weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixed_policy_changes_nothing(kind):
    expected = random_encoder(kind).network(features(kind, 1, 20))
    keras.config.set_dtype_policy("mixed_float16")
    try:
        encoder = build_speaker_encoder(kind)
        encoder.load(random_arrays(kind), "random")
        found = encoder.network(features(kind, 1, 20))
    finally:
        keras.config.set_dtype_policy("float32")
    assert found.dtype == tf.float32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_network_comes_back_the_same(kind, tmp_path):
    network = random_encoder(kind).network
    x = keras.Input((None, KINDS[kind].BANDS))
    keras.Model(x, network(x)).save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    np.testing.assert_array_equal(loaded(features(kind, 1, 20)), network(features(kind, 1, 20)))


# Loading.


@pytest.mark.parametrize("kind", KINDS)
def test_every_variable_has_its_published_tensor(kind):
    network = build_speaker_encoder(kind).network
    values = KINDS[kind].weights_from_torch(random_arrays(kind))
    shapes = {path_within(weight): tuple(weight.shape) for weight in network.weights}
    assert {name: value.shape for name, value in values.items()} == shapes


@pytest.mark.parametrize(
    ("kind", "key", "extras"),
    [
        ("ecapa_tdnn", None, ["mfa.norm.norm.num_batches_tracked"]),
        ("resemblyzer", "model_state", ["similarity_weight", "similarity_bias"]),
        (
            "coqui",
            "model",
            [
                "bn1.num_batches_tracked",
                "torch_spec.0.filter",
                "torch_spec.1.spectrogram.window",
                "torch_spec.1.mel_scale.fb",
            ],
        ),
    ],
)
def test_what_only_the_training_needed_is_ignored(kind, key, extras):
    arrays = random_arrays(kind) | {name: np.zeros(3, np.float32) for name in extras}
    encoder = build_speaker_encoder(kind)
    encoder.load({key: arrays, "step": 7} if key else arrays, "file")
    x = features(kind, 1, 20)
    np.testing.assert_array_equal(encoder.network(x), random_encoder(kind).network(x))


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_named_and_nothing_is_loaded(kind):
    encoder, arrays = build_speaker_encoder(kind), random_arrays(kind)
    before = [weight.numpy() for weight in encoder.network.weights]
    name = list(arrays)[-1]
    wrong = {
        "missing": {key: value for key, value in arrays.items() if key != name},
        "surplus": arrays | {"head.weight": np.zeros(3, np.float32)},
        "shape": arrays | {name: np.zeros((3, 5), np.float32)},
    }
    for what, checkpoint in wrong.items():
        with pytest.raises(WeightsError, match=what) as error:
            encoder.load(checkpoint, "some.pt")
        assert ("head.weight" if what == "surplus" else name) in str(error.value)
        assert "some.pt" in str(error.value)
    for weight, value in zip(encoder.network.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_an_unknown_encoder_is_rejectd_with_the_known_ones():
    with pytest.raises(ValueError, match="'xvector'.*ecapa_tdnn, resemblyzer, coqui"):
        build_speaker_encoder("xvector")


# Recordings.


@pytest.mark.parametrize("kind", KINDS)
def test_recordings_of_all_lengths_and_rates_share_one_graph(kind):
    if kind == "resemblyzer":
        pytest.importorskip("webrtcvad")
    encoder = build_speaker_encoder(kind)
    for seconds, rate in ((0.5, 16000), (1.0, 22050), (2.0, 48000)):
        embedding = encoder.embed(make_voice(seconds, rate), rate)
        assert embedding.shape == (encoder.dim,) and embedding.dtype == np.float32
        assert np.isfinite(embedding).all() and embedding.any()
    assert encoder._embeddings.experimental_get_tracing_count() == 1


def test_resemblyzer_gives_a_unit_vector():
    pytest.importorskip("webrtcvad")
    embedding = random_encoder("resemblyzer").embed(make_voice(4.0), 16000)
    assert np.linalg.norm(embedding) == pytest.approx(1.0, abs=1e-6)


def test_coqui_gives_the_mean_of_ten_unit_vectors():
    encoder, voice = random_encoder("coqui"), make_voice(2.6)
    windows = encoder.network(coqui_partials(voice)).numpy()
    assert len(windows) == 10
    np.testing.assert_allclose(np.linalg.norm(windows, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(encoder.embed(voice, 16000), windows.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_recordings_without_a_voice_are_rejectd(kind):
    encoder = random_encoder(kind)
    with pytest.raises(AudioError, match="too short"):
        encoder.embed(make_voice(0.02), 16000)
    with pytest.raises(AudioError, match="too short"):
        encoder.embed(np.zeros(0, np.float32), 22050)
    with pytest.raises(AudioError, match="silent"):
        encoder.embed(np.zeros(16000, np.float32), 16000)
    with pytest.raises(AudioError, match="not-a-number"):
        encoder.embed(np.full(16000, np.nan, np.float32), 16000)
    with pytest.raises(ValueError, match="one axis"):
        encoder.embed(np.ones((2, 16000), np.float32), 16000)


def test_resemblyzer_rejects_a_recording_in_which_nobody_speaks():
    pytest.importorskip("webrtcvad")
    click = np.zeros(16000, np.float32)
    click[8000] = 0.5
    with pytest.raises(AudioError, match="it has no speech"):
        random_encoder("resemblyzer").embed(click, 16000)


# The same networks in NumPy, from the tensors as they are published.


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def normed(x, arrays, name):
    """Batch norm by running statistics of [channels, ...]."""
    weight, bias, mean, variance = (
        arrays[f"{name}.{leaf}"].reshape(-1, *[1] * (x.ndim - 1))
        for leaf in ("weight", "bias", "running_mean", "running_var")
    )
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def test_resemblyzer_in_numpy():
    arrays, mel = random_arrays("resemblyzer"), features("resemblyzer", 1, 6)
    sequence = mel[0]
    for layer in range(3):
        w_ih, w_hh, b_ih, b_hh = (
            arrays[f"lstm.{part}_l{layer}"]
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        hidden, cell, outputs = np.zeros(256), np.zeros(256), []
        for x in sequence:
            gates = w_ih @ x + b_ih + w_hh @ hidden + b_hh
            enter, forget, new, leave = np.split(gates, 4)
            cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
            hidden = sigmoid(leave) * np.tanh(cell)
            outputs.append(hidden)
        sequence = outputs
    expected = relu(arrays["linear.weight"] @ hidden + arrays["linear.bias"])
    found = random_encoder("resemblyzer").network(mel)[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


def test_ecapa_pooling_in_numpy():
    arrays = random_arrays("ecapa_tdnn")
    x = np.random.default_rng(2).normal(size=(3072, 7))
    mean, deviation = x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)
    context = np.concatenate([x, np.tile(mean, 7), np.tile(deviation, 7)])
    hidden = arrays["asp.tdnn.conv.conv.weight"][:, :, 0] @ context
    hidden = relu(hidden + arrays["asp.tdnn.conv.conv.bias"][:, None])
    hidden = np.tanh(normed(hidden, arrays, "asp.tdnn.norm.norm"))
    scores = arrays["asp.conv.conv.weight"][:, :, 0] @ hidden
    weights = softmax(scores + arrays["asp.conv.conv.bias"][:, None], axis=1)
    mean = (weights * x).sum(axis=1)
    variance = (weights * (x - mean[:, None]) ** 2).sum(axis=1)
    found = random_encoder("ecapa_tdnn").network.asp(x.T[None].astype(np.float32))[0]
    np.testing.assert_allclose(found, np.concatenate([mean, np.sqrt(variance)]), atol=1e-5)


def test_a_tdnn_in_numpy():
    layer = ecapa.Tdnn(2, kernel=3, dilation=2)
    layer.build((None, None, 3))
    rng = np.random.default_rng(3)
    kernel, bias = rng.normal(size=(3, 3, 2)), rng.normal(size=2)
    gamma, beta, mean, variance = *rng.normal(size=(3, 2)), np.array([0.5, 2.0])
    layer.set_weights([kernel, bias, gamma, beta, mean, variance])
    x = rng.normal(size=(6, 3))
    # Frames -2, -1 are frames 2, 1; frames 6, 7 are frames 4, 3.
    padded = x[[2, 1, 0, 1, 2, 3, 4, 5, 4, 3]]
    rows = [sum(padded[t + 2 * k] @ kernel[k] for k in range(3)) + bias for t in range(6)]
    expected = (relu(np.array(rows)) - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    np.testing.assert_allclose(layer(x[None].astype(np.float32))[0], expected, atol=1e-5)


def conv2d(x, weight, stride=1):
    """A convolution of [in, bands, frames] by [out, in, 3, 3] with one zero around."""
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, [(0, 0), (1, 1), (1, 1)]), (3, 3), axis=(1, 2)
    )[:, ::stride, ::stride]
    return np.tensordot(weight, windows, axes=([1, 2, 3], [0, 3, 4]))


def coqui_block(x, arrays, name):
    """A block of Coqui's ResNet on [channels, bands, frames]."""
    shortcut = f"{name}.downsample.0.weight" in arrays
    h = relu(conv2d(x, arrays[f"{name}.conv1.weight"], 2 if shortcut else 1))
    h = conv2d(normed(h, arrays, f"{name}.bn1"), arrays[f"{name}.conv2.weight"])
    h = normed(h, arrays, f"{name}.bn2")
    squeezed = relu(linear(h.mean(axis=(1, 2)), arrays, f"{name}.se.fc.0"))
    h = h * sigmoid(linear(squeezed, arrays, f"{name}.se.fc.2"))[:, None, None]
    if shortcut:
        kernel = arrays[f"{name}.downsample.0.weight"][:, :, 0, 0]
        x = np.tensordot(kernel, x[:, ::2, ::2], axes=1)
        x = normed(x, arrays, f"{name}.downsample.1")
    return relu(h + x)


def linear(x, arrays, name):
    weight, bias = arrays[f"{name}.weight"], arrays[f"{name}.bias"]
    return weight.reshape(len(bias), -1) @ x + bias.reshape(-1, *[1] * (x.ndim - 1))


def test_coqui_in_numpy():
    arrays, x = random_arrays("coqui"), features("coqui", 1, 19)
    h = conv2d(x[0].T[None], arrays["conv1.weight"]) + arrays["conv1.bias"][:, None, None]
    h = normed(relu(h), arrays, "bn1")
    for stage, blocks in enumerate((3, 4, 6, 3), start=1):
        for number in range(blocks):
            h = coqui_block(h, arrays, f"layer{stage}.{number}")
    assert h.shape == (256, 8, 3)  # an eighth of 64 bands, and of 19 frames, rounded up
    h = h.reshape(2048, 3)
    scores = normed(relu(linear(h, arrays, "attention.0")), arrays, "attention.2")
    weights = softmax(linear(scores, arrays, "attention.3"), axis=1)
    mean = (h * weights).sum(axis=1)
    variance = np.maximum((h**2 * weights).sum(axis=1) - mean**2, 1e-5)
    expected = linear(np.concatenate([mean, np.sqrt(variance)]), arrays, "fc")
    found = random_encoder("coqui").network(x)[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_a_deviation_of_nothing_is_the_floor():
    x = tf.ones([1, 4, 3])
    found = coqui.attentive_statistics(x, tf.zeros([1, 4, 3]))
    np.testing.assert_allclose(found, [[1, 1, 1] + [np.sqrt(1e-5)] * 3], atol=1e-6)
