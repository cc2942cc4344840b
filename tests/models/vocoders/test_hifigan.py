"""HiFi-GAN against reference vectors, and tiny ones against the same in NumPy."""

import dataclasses
from functools import cache

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from myxtts.models.vocoders import hifigan
from myxtts.models.vocoders.hifigan import (
    HIFIGAN_VERSIONS,
    HiFiGAN,
    HiFiGANSettings,
    build_hifigan,
    folded,
    load_hifigan,
    published_shapes,
)
from myxtts.weights import WeightsError
from tests.helpers.make_torch_file import ordered, tensor, write_zip
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

TINY = {
    1: HiFiGANSettings(8, (4, 2), (8, 4), 1, (3, 5), ((1, 3), (1, 2)), n_mels=5),
    2: HiFiGANSettings(8, (2, 3), (4, 7), 2, (3, 5), ((1, 2), (2, 6)), n_mels=5),
}


# Against the original implementation.


@cache
def published(fold: bool = False) -> HiFiGAN:
    return load_hifigan(public_weights("hifigan_universal"), fold)


@cache
def reference():
    return np.load(shared("reference") / "hifigan.npz")


@pytest.mark.parametrize("fold", [False, True])
def test_the_waveform_equals_the_reference(fold):
    vectors = reference()
    found = published(fold)(vectors["mel"][None])[0]
    np.testing.assert_allclose(found, vectors["wav"], atol=1e-4)
    np.testing.assert_allclose(found, vectors["wav_float64"], atol=1e-5)


def test_every_stage_equals_the_reference():
    vectors, model = reference(), published()
    x = model.conv_pre(vectors["mel"][None])
    close(x[0, :8], vectors["conv_pre"])
    for i, up in enumerate(model.ups):
        x = up(tf.nn.leaky_relu(x, 0.1))
        close(np.mean(x[0], axis=0), vectors[f"ups_{i}_mean"])
        x = sum(block(x) for block in model.resblocks[3 * i : 3 * i + 3]) / 3
        close(np.mean(x[0], axis=0), vectors[f"stage_{i}_mean"])
        close(x[0, :4], vectors[f"stage_{i}_first"])
    close(model.conv_post(tf.nn.leaky_relu(x, 0.01))[0, :2000, 0], vectors["conv_post"])


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_the_table_of_tensors_is_the_checkpoint_s():
    lines = (shared("reference") / "hifigan_checkpoint_keys.txt").read_text().splitlines()[1:]
    shapes = {name: shape for name, shape, _ in (line.split("\t") for line in lines)}
    found = published_shapes(HIFIGAN_VERSIONS["v1"])
    assert {name: str(shape) for name, shape in found.items()} == shapes
    assert len(shapes) == 234 and len(published_shapes(HIFIGAN_VERSIONS["v1"], False)) == 156


# As published: 13.92, 0.92 and 1.46 million, without the lengths of weight normalisation.
@pytest.mark.parametrize(
    ("version", "parameters"), [("v1", 13_926_017), ("v2", 925_985), ("v3", 1_462_273)]
)
def test_numbers_of_weights(version, parameters):
    model = build_hifigan(version, weight_norm=False)
    assert sum(int(np.prod(weight.shape)) for weight in model.trainable_weights) == parameters
    assert len(model.non_trainable_weights) == 0
    shapes = published_shapes(HIFIGAN_VERSIONS[version], has_norms=False)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == parameters
    assert model.hop == 256


# With random weights.


def random_arrays(settings, has_norms=True, seed=0) -> dict[str, np.ndarray]:
    """Tensors as a checkpoint has them, of a size that lets activations neither grow nor fade."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, shape in published_shapes(settings, has_norms).items():
        noise = rng.normal(size=shape).astype(np.float32)
        if name.endswith("weight_g"):
            arrays[name] = 1.0 + 0.2 * np.abs(noise)
        else:
            arrays[name] = (0.1 if name.endswith("bias") else 0.4) * noise
    return arrays


@pytest.fixture
def tiny_versions(monkeypatch):
    for block, settings in TINY.items():
        monkeypatch.setitem(HIFIGAN_VERSIONS, f"tiny{block}", settings)


@pytest.fixture
def load_tiny(tiny_versions, tmp_path):
    """Load arrays by way of a file."""

    def load(arrays, fold=False) -> HiFiGAN:
        safetensors.numpy.save_file(arrays, tmp_path / "tiny")
        return load_hifigan(tmp_path / "tiny", fold)

    return load


@pytest.fixture
def tiny(load_tiny):
    return lambda block: load_tiny(random_arrays(TINY[block]))


def mel(batch, frames, seed=1):
    return np.random.default_rng(seed).normal(size=(batch, frames, 5)).astype(np.float32)


@pytest.mark.parametrize("block", TINY)
@pytest.mark.parametrize("has_norms", [True, False])
@pytest.mark.parametrize("fold", [True, False])
def test_a_generator_in_numpy(load_tiny, block, has_norms, fold):
    arrays = random_arrays(TINY[block], has_norms)
    model = load_tiny(arrays, fold)
    assert model.settings == TINY[block] and model.weight_norm is not fold
    expected = numpy_generator(mel(1, 9)[0].T, arrays, TINY[block])
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(model(mel(1, 9))[0], expected, atol=2e-6)


def numpy_generator(x, arrays, settings):
    """The waveform of [mels, frames], by the definition."""
    x = conv(x, *weight(arrays, "conv_pre"))
    for i, rate in enumerate(settings.rates):
        x = transposed(leaky(x), *weight(arrays, f"ups.{i}"), rate)
        outputs = []
        for j, dilations in enumerate(settings.dilations):
            name, y = f"resblocks.{i * len(settings.kernels) + j}", x
            for n, dilation in enumerate(dilations):
                if settings.block == 1:
                    h = conv(leaky(y), *weight(arrays, f"{name}.convs1.{n}"), dilation)
                    y = y + conv(leaky(h), *weight(arrays, f"{name}.convs2.{n}"))
                else:
                    y = y + conv(leaky(y), *weight(arrays, f"{name}.convs.{n}"), dilation)
            outputs.append(y)
        x = np.mean(outputs, axis=0)
    return np.tanh(conv(leaky(x, 0.01), *weight(arrays, "conv_post")))[0]


def weight(arrays, name):
    if f"{name}.weight" in arrays:
        return arrays[f"{name}.weight"].astype(np.float64), arrays[f"{name}.bias"]
    v = arrays[f"{name}.weight_v"].astype(np.float64)
    lengths = np.sqrt((v**2).sum(axis=(1, 2), keepdims=True))
    return arrays[f"{name}.weight_g"] * v / lengths, arrays[f"{name}.bias"]


def leaky(x, slope=0.1):
    return np.where(x > 0, x, slope * x)


def conv(x, weight, bias, dilation=1):
    size, length = weight.shape[2], x.shape[1]
    padding = dilation * (size - 1) // 2
    x = np.pad(x, [(0, 0), (padding, padding)])
    taps = [weight[:, :, k] @ x[:, k * dilation :][:, :length] for k in range(size)]
    return sum(taps) + bias[:, None]


def transposed(x, weight, bias, rate):
    size, length = weight.shape[2], x.shape[1]
    whole = np.zeros((weight.shape[1], (length - 1) * rate + size))
    for t in range(length):
        whole[:, t * rate : t * rate + size] += np.einsum("i,iok->ok", x[:, t], weight)
    cropped = (size - rate) // 2
    return whole[:, cropped : cropped + length * rate] + bias[:, None]


@pytest.mark.parametrize("block", TINY)
def test_folding_changes_nothing_but_the_weights(tiny, block):
    model = tiny(block)
    plain = folded(model)
    assert {weight.name for weight in plain.weights} == {"kernel", "bias"}
    np.testing.assert_allclose(plain(mel(2, 9)), model(mel(2, 9)), atol=1e-6)


@pytest.mark.parametrize("block", TINY)
def test_gradients_reach_every_weight(tiny, block):
    model = tiny(block)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(mel(2, 9))))
    weights = model.trainable_weights
    assert {weight.name for weight in weights} == {"v", "g", "bias"}
    assert len(weights) == 3 * len(model.convolutions)
    for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        assert np.abs(gradient).max() > 1e-6, variable.path


@pytest.mark.parametrize("block", TINY)
def test_one_graph_serves_all_sizes(tiny, block):
    model = tiny(block)
    spec = tf.TensorSpec([None, None, 5])
    function = tf.function(lambda x: model(x), input_signature=[spec])
    for batch, frames in ((1, 1), (3, 7), (2, 20)):
        found = function(mel(batch, frames))
        assert found.shape == (batch, frames * model.hop) and found.dtype == tf.float32
        np.testing.assert_allclose(found, model(mel(batch, frames)), atol=1e-6)
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("block", TINY)
def test_the_context_is_what_a_frame_s_samples_hear_and_no_more(tiny, block):
    model = tiny(block)
    context, hop = model.context_frames, model.hop
    frames = 2 * context + 5
    middle = frames // 2
    x = tf.constant(mel(1, frames))
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = tf.reduce_sum(model(x)[:, middle * hop : (middle + 1) * hop])
    is_used = np.abs(tape.gradient(output, x)[0]).max(axis=-1) > 0
    distances = np.abs(np.arange(frames) - middle)
    np.testing.assert_array_equal(is_used, distances <= context)


def test_the_contexts_of_the_published_versions():
    # V1, from the samples back: 3 + 5 * (2 + 4 + 6) on each side of a sample at each stage, then
    # what a transposed convolution sees; in frames 0.25 + 0.47 + 0.94 + 7.5 + 3, and its overlap.
    contexts = {version: settings.context_frames for version, settings in HIFIGAN_VERSIONS.items()}
    assert contexts == {"v1": 13, "v2": 13, "v3": 11}


@pytest.mark.parametrize("block", TINY)
def test_chunks_with_their_context_make_the_whole(tiny, block):
    model, frames, size = tiny(block), 40, 8
    x, context, hop = mel(1, frames), model.context_frames, model.hop
    chunks = []
    for start in range(0, frames, size):
        first = max(0, start - context)
        found = model(x[:, first : start + size + context])
        chunks.append(found[:, (start - first) * hop :][:, : size * hop])
    np.testing.assert_allclose(np.concatenate(chunks, axis=1), model(x), atol=1e-6)


def test_a_mixed_policy_ends_in_float32(tiny_versions):
    keras.utils.set_random_seed(2)
    exact = build_hifigan("tiny1")
    keras.config.set_dtype_policy("mixed_float16")
    try:
        half = build_hifigan("tiny1")
    finally:
        keras.config.set_dtype_policy("float32")
    for own, other in zip(half.weights, exact.weights, strict=True):
        own.assign(other)
    found = half(mel(2, 9))
    assert half.conv_pre(mel(2, 9)).dtype == tf.float16 and found.dtype == tf.float32
    np.testing.assert_allclose(found, exact(mel(2, 9)), atol=1e-3)


@pytest.mark.parametrize("fold", [False, True])
def test_a_saved_model_comes_back_the_same(load_tiny, tmp_path, fold):
    model = load_tiny(random_arrays(TINY[2]), fold)
    expected = model(mel(1, 9))
    model.save(tmp_path / "vocoder.keras")
    loaded = keras.saving.load_model(tmp_path / "vocoder.keras")
    assert (loaded.settings, loaded.weight_norm) == (TINY[2], not fold)
    np.testing.assert_array_equal(loaded(mel(1, 9)), expected)


# Loading.


def test_a_checkpoint_of_torch_is_read(tiny_versions, tmp_path):
    arrays = random_arrays(TINY[1])
    tensors, storages = {}, {}
    for key, (name, array) in enumerate(arrays.items()):
        strides = tuple(stride // array.itemsize for stride in array.strides)
        tensors[name] = tensor("Float", str(key), array.size, 0, array.shape, strides)
        storages[str(key)] = array.tobytes()
    path = write_zip(tmp_path / "g.pth", {"generator": ordered(**tensors), "steps": 3}, storages)
    found = load_hifigan(path)(mel(1, 9))[0]
    expected = numpy_generator(mel(1, 9)[0].T, arrays, TINY[1])
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("version", HIFIGAN_VERSIONS)
@pytest.mark.parametrize("has_norms", [True, False])
def test_the_shapes_give_the_version(version, has_norms):
    settings = HIFIGAN_VERSIONS[version]
    shapes = published_shapes(settings, has_norms)
    arrays = {name: np.broadcast_to(np.float32(1), shape) for name, shape in shapes.items()}
    assert hifigan._settings_of(arrays, has_norms) is settings


@pytest.mark.parametrize("has_norms", [True, False])
def test_what_does_not_fit_is_named(load_tiny, has_norms):
    arrays = random_arrays(TINY[1], has_norms)
    name = "ups.1.weight_v" if has_norms else "ups.1.weight"
    wrong = {
        f"1 missing: {name}": {key: value for key, value in arrays.items() if key != name},
        "1 surplus: head.bias": arrays | {"head.bias": np.zeros(3, np.float32)},
        rf"1 of another shape: {name} \(in the file \[3, 5\], needed \[4, 2, 4\]\)": (
            arrays | {name: np.zeros((3, 5), np.float32)}
        ),
        f"1 not finite: {name}": arrays | {name: np.full_like(arrays[name], np.nan)},
    }
    for message, given in wrong.items():
        with pytest.raises(WeightsError, match=f"tiny does not fit the model: {message}"):
            load_tiny(given)


def test_an_unknown_version_is_rejectd_with_the_known_ones():
    with pytest.raises(ValueError, match="'v4'; known are: v1, v2, v3"):
        build_hifigan("v4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate_kernels": (8, 5)}, "upsampling by 2 with a kernel of 5"),
        ({"rate_kernels": (8, 4, 4)}, "a kernel for each rate"),
        ({"dilations": ((1, 3),)}, "dilations for each kernel"),
        ({"channels": 6}, "6 channels cannot be halved 2 times"),
        ({"block": 3}, "1 or 2, not 3"),
    ],
)
def test_settings_that_contradict_each_other_are_rejectd(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TINY[1], **change)
