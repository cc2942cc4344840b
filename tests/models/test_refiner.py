"""The refiner: it learns the velocity of a flow, and adds detail that the seed decides."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.refiner import RESIDUAL_SCALE, Refiner, time_features
from myxtts.models.segments import (
    DRAWS,
    SEGMENT_FRAMES,
    longest_segment,
    segment_lengths,
)

N_MELS, WIDTH, VOICE, REDUCTION = 4, 6, 3, 2


@pytest.fixture
def refiner() -> Refiner:
    layer = Refiner(8, 2, REDUCTION, N_MELS)
    layer.build((None, None, WIDTH), (None, VOICE))
    return layer


def normal(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.random.stateless_normal(shape, [seed, 1])


def with_weights(refiner: Refiner) -> Refiner:
    for number, variable in enumerate(refiner.trainable_variables):
        variable.assign(0.3 * normal(*variable.shape, seed=number))
    return refiner


def refined(refiner, frames=20, seed=0, temperature=1.0, steps=2, rows=1, length=None):
    coarse, text = normal(rows, frames, N_MELS), normal(rows, frames, WIDTH, seed=1)
    lengths = tf.fill([rows], frames if length is None else length)
    key = tf.constant([seed, 0])
    mel = refiner.refine(
        coarse, text, lengths, tf.ones([rows, VOICE]), key, temperature, tf.constant(steps)
    )
    return coarse.numpy(), mel.numpy()


def test_a_new_refiner_has_no_velocity_and_leaves_noise_around_the_coarse_mel(refiner):
    coarse, mel = refined(refiner)
    noise = tf.random.stateless_normal([20, N_MELS], [0, 0]).numpy()
    np.testing.assert_allclose(mel[0], coarse[0] + RESIDUAL_SCALE * noise, rtol=1e-5)


def test_without_steps_the_mel_stays_to_the_bit(refiner):
    coarse, mel = refined(with_weights(refiner), steps=0)
    np.testing.assert_array_equal(mel, coarse)


def test_another_seed_is_another_reading_and_the_same_seed_the_same(refiner):
    with_weights(refiner)
    first, again, other = (refined(refiner, seed=seed)[1] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_temperature_0_has_one_reading(refiner):
    with_weights(refiner)
    first, other = (refined(refiner, seed=seed, temperature=0.0)[1] for seed in (3, 4))
    np.testing.assert_array_equal(first, other)


def test_the_noise_of_a_frame_does_not_depend_on_how_many_follow(refiner):
    coarse = normal(1, 40, N_MELS)
    short, long = refined(refiner, frames=20)[1], refined(refiner, frames=40)[1]
    np.testing.assert_allclose(
        short[0] - refined(refiner, frames=20)[0][0], (long - coarse)[0, :20], rtol=1e-4, atol=1e-6
    )


def test_the_midpoint_rule_follows_a_known_field(refiner):
    """Along dx/dt = 1, and along dx/dt = t, any number of steps is exact: x + 1, and x + 1/2."""
    for field, expected in ((lambda x, t: tf.ones_like(x), 1.0), (lambda x, t: x * 0 + t, 0.5)):
        one = Field(field)
        for steps in (1, 3):
            coarse, mel = refined(one, temperature=0.0, steps=steps)
            np.testing.assert_allclose(mel, coarse + RESIDUAL_SCALE * expected, rtol=1e-5)


class Field(Refiner):
    """A refiner whose velocity is given."""

    def __init__(self, field):
        super().__init__(8, 1, REDUCTION, N_MELS)
        self.field, self.built = field, True

    def call(self, residual, time, coarse, frames, lengths, voice, training=False):
        return self.field(residual, time[:, None, None])


def matched(refiner, lengths, frames=None, key=(5, 1)):
    frames = frames or max(lengths) + 4
    mel, coarse = normal(len(lengths), frames, N_MELS), normal(len(lengths), frames, N_MELS, seed=2)
    text = normal(len(lengths), frames, WIDTH, seed=3)
    voice, key = tf.ones([len(lengths), VOICE]), tf.constant(key, tf.int64)
    return refiner.matched(mel, coarse, text, tf.constant(lengths), voice, key)


def test_segments_of_each_utterance_are_matched(refiner):
    lengths = [30, SEGMENT_FRAMES + 50]
    found = matched(refiner, lengths)
    shape = [DRAWS * 2, longest_segment(REDUCTION), N_MELS]
    assert found["flow"].shape == found["flow_target"].shape == shape
    expected = DRAWS * [30, longest_segment(REDUCTION)]
    assert segment_lengths(tf.constant(lengths), REDUCTION).numpy().tolist() == expected


def test_what_is_drawn_follows_from_the_key(refiner):
    targets = [
        matched(refiner, [40, 30], key=key)["flow_target"] for key in ((5, 1), (5, 1), (5, 2))
    ]
    np.testing.assert_array_equal(targets[0], targets[1])
    assert not np.allclose(targets[0], targets[2])


def test_no_gradient_reaches_what_is_refined(refiner):
    with_weights(refiner)
    coarse, text, voice = normal(1, 24, N_MELS), normal(1, 24, WIDTH), tf.ones([1, VOICE])
    with tf.GradientTape() as tape:
        tape.watch([coarse, text, voice])
        found = refiner.matched(
            normal(1, 24, N_MELS, seed=9),
            coarse,
            text,
            tf.constant([20]),
            voice,
            tf.constant([1, 2]),
        )
        loss = tf.reduce_sum(tf.square(found["flow"] - found["flow_target"]))
    assert tape.gradient(loss, [coarse, text, voice]) == [None, None, None]


def test_padding_does_not_change_the_velocity(refiner):
    with_weights(refiner)
    residual, coarse, text = (normal(1, 20, size, seed=s) for s, size in enumerate((4, 4, 6)))
    later = [tf.concat([x, 7 * tf.ones([1, 10, x.shape[-1]])], 1) for x in (residual, coarse, text)]
    how = tf.constant([0.3]), tf.constant([20]), tf.ones([1, VOICE])
    short = refiner(residual, how[0], coarse, text, *how[1:])
    long = refiner(later[0], how[0], later[1], later[2], *how[1:])
    np.testing.assert_allclose(short[0], long[0, :20], rtol=1e-4, atol=1e-5)


def test_a_refiner_overfits_one_residual():
    layer = Refiner(32, 2, REDUCTION, N_MELS)
    layer.build((None, None, WIDTH), (None, VOICE))
    mel, coarse, text = (normal(1, 16, size, seed=s) for s, size in enumerate((4, 4, 6)))
    optimizer, losses = tf.keras.optimizers.Adam(1e-2), []

    @tf.function
    def step(number):
        with tf.GradientTape() as tape:
            key = tf.stack([tf.constant(1, tf.int64), number])
            found = layer.matched(mel, coarse, text, tf.constant([16]), tf.ones([1, VOICE]), key)
            loss = tf.reduce_mean(tf.square(found["flow"] - found["flow_target"]))
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    for number in range(300):
        losses.append(float(step(tf.constant(number, tf.int64))))
    assert np.mean(losses[-20:]) < 0.3 * np.mean(losses[:5])
    made = layer.refine(
        coarse,
        text,
        tf.constant([16]),
        tf.ones([1, VOICE]),
        tf.constant([2, 0]),
        1.0,
        tf.constant(4),
    )
    before, after = (float(tf.reduce_mean(tf.abs(x - mel))) for x in (coarse, made))
    assert after < 0.3 * before


def test_times_are_told_apart():
    features = time_features(tf.constant([0.0, 0.001, 0.5, 1.0])).numpy()
    assert features.shape == (4, 32) and np.abs(features).max() <= 1.0
    distances = np.linalg.norm(features[:, None] - features[None], axis=-1)
    assert distances[np.triu_indices(4, 1)].min() > 0.1
