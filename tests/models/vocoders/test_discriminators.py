"""The discriminators against the same in NumPy, and what training needs of them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.vocoders.discriminators import (
    PERIODS,
    MultiPeriodDiscriminator,
    MultiScaleDiscriminator,
    PeriodDiscriminator,
    ScaleDiscriminator,
    _halved,
)

KINDS = {"period": MultiPeriodDiscriminator, "scale": MultiScaleDiscriminator}
WIDTH = 32


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(7)


def make(kind: str, width: int = WIDTH):
    model = KINDS[kind](width)
    model.build((None, None))
    return model


def waveform(batch: int, samples: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(batch, samples)).astype(np.float32)


# As the authors' code has in torch, singular vectors not counted.
@pytest.mark.parametrize(("kind", "parameters"), [("period", 41_105_770), ("scale", 29_618_821)])
def test_numbers_of_weights_as_published(kind, parameters):
    weights = make(kind, width=1).trainable_weights
    assert sum(int(np.prod(weight.shape)) for weight in weights) == parameters


@pytest.mark.parametrize("period", [2, 3, 5])
def test_a_period_discriminator_in_numpy(period):
    part, x = PeriodDiscriminator(period, WIDTH), waveform(1, 100)
    scores, maps = part(x)
    missing = -100 % period
    # Mirrored at the last sample, which is not repeated.
    mirrored = np.concatenate([x[0], x[0, 98 : 98 - missing : -1]])
    rows = [scores_by_numpy(part, mirrored[phase::period]) for phase in range(period)]
    np.testing.assert_allclose(maps[-1][0, :, :, 0], np.stack(rows, axis=1), atol=1e-5)
    np.testing.assert_array_equal(scores, tf.reshape(maps[-1], [1, -1]))
    assert [m.shape[-1] for m in maps] == [1, 4, 16, 32, 32, 1]


def test_a_scale_discriminator_in_numpy():
    part, x = ScaleDiscriminator(WIDTH), waveform(1, 200)
    scores, maps = part(x)
    np.testing.assert_allclose(scores[0], scores_by_numpy(part, x[0]), atol=1e-5)
    assert [m.shape[-1] for m in maps] == [4, 4, 8, 16, 32, 32, 32, 1]
    assert [m.shape[1] for m in maps] == [200, 100, 50, 13, 4, 4, 4, 4]


def scores_by_numpy(part, samples):
    """The convolutions of a discriminator along one row of samples, by the definition."""
    x = samples[:, None].astype(np.float64)
    for layer in [*part.convs, part.conv_post]:
        kernel = layer.effective_kernel().numpy()
        kernel = kernel.reshape(kernel.shape[0], *kernel.shape[-2:])
        stride = np.ravel(layer.stride)[0]
        x = conv(x, kernel, layer.bias.numpy(), stride)
        x = x if layer is part.conv_post else np.where(x > 0, x, 0.1 * x)
    return x[:, 0]


def conv(x, kernel, bias, stride):
    """[time, in] by [size, in / groups, out]."""
    size, inputs, outputs = kernel.shape
    groups, side = x.shape[1] // inputs, (size - 1) // 2
    x = np.pad(x, [(side, side), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=0)[::stride]
    parts = [
        np.einsum("tik,kio->to", windows[:, g * inputs : (g + 1) * inputs], own)
        for g, own in enumerate(np.split(kernel, groups, axis=-1))
    ]
    return np.concatenate(parts, axis=1) + bias


def test_halving_by_hand():
    # 0 0 1 2 | 1 2 3 4 | 3 4 0 0
    np.testing.assert_allclose(_halved(tf.constant([[1.0, 2, 3, 4]])), [[0.75, 2.5, 1.75]])


def test_each_scale_sees_half_of_the_one_before():
    model, x = make("scale"), waveform(2, 1000)
    found = model(x)
    for part, (scores, _) in zip(model.parts, found, strict=True):
        np.testing.assert_allclose(scores, part(x)[0], atol=1e-6)
        x = _halved(x)


def test_each_period_has_its_part():
    model, x = make("period"), waveform(2, 500)
    assert [part.period for part in model.parts] == list(PERIODS)
    for (scores, maps), period in zip(model(x), PERIODS, strict=True):
        assert len(maps) == 6 and [m.shape[2] for m in maps] == [period] * 6
        assert scores.shape == (2, maps[-1].shape[1] * period)


def test_only_the_first_scale_has_spectral_norm():
    names = [{weight.name for weight in part.weights} for part in make("scale").parts]
    assert names == [{"kernel", "bias", "left", "right"}, {"v", "g", "bias"}, {"v", "g", "bias"}]


@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_judges_and_trains_all_sizes(kind):
    model = make(kind)

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            judgements = model(x, training=True)
            loss = sum(tf.reduce_mean(tf.square(scores - 1.0)) for scores, _ in judgements)
            loss += sum(tf.reduce_mean(tf.abs(m)) for _, maps in judgements for m in maps)
        return tape.gradient(loss, [x, *model.trainable_weights])

    for batch, samples in ((1, 501), (3, 640)):
        of_x, *gradients = step(waveform(batch, samples))
        assert of_x.shape == (batch, samples) and np.abs(of_x).max(axis=0).min() > 0
        for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
            assert np.abs(gradient).max() > 0, weight.path
    assert step.experimental_get_tracing_count() == 1


def test_only_training_moves_the_singular_vectors():
    model, x = make("scale"), waveform(1, 300)
    vectors = model.non_trainable_weights
    assert len(vectors) == 16  # two of each of the first part's eight layers
    before = [vector.numpy() for vector in vectors]
    model(x)
    assert all(np.array_equal(a, b) for a, b in zip(vectors, before, strict=True))
    for _ in range(2):
        model(x, training=True)
    is_moved = [not np.array_equal(a, b) for a, b in zip(vectors, before, strict=True)]
    # The last layer has one channel: its singular vectors are known at once.
    assert is_moved == [True] * 14 + [False] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_float32_under_a_mixed_policy(kind):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = make(kind)
    finally:
        keras.config.set_dtype_policy("float32")
    for scores, maps in model(waveform(1, 300)):
        assert scores.dtype == tf.float32 and maps[0].dtype == tf.float16
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_discriminator_comes_back_the_same(kind, tmp_path):
    model, x = make(kind), waveform(1, 300)
    expected = model(x)
    model.save(tmp_path / "judge.keras")
    loaded = keras.saving.load_model(tmp_path / "judge.keras")
    for (found, _), (scores, _) in zip(loaded(x), expected, strict=True):
        np.testing.assert_array_equal(found, scores)


@pytest.mark.parametrize("kind", KINDS)
def test_a_width_that_does_not_divide_is_rejectd(kind):
    with pytest.raises(ValueError, match="a width of 3 does not divide"):
        KINDS[kind](width=3)
