"""What a vocoder is trained for, worked out by hand where a number can be."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.training.vocoder.losses import (
    SpectralLoss,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    pitch_loss,
)
from tests.helpers.tiny_vocoder import SMALL, SPEC, voiced

LOSS = SpectralLoss(SMALL)
TERMS = pytest.mark.parametrize("term", ["mel", "stft"])


def recording() -> np.ndarray:
    return voiced(40, SMALL)[None]


def noise(level: float) -> np.ndarray:
    size = recording().shape
    return (level * np.random.default_rng(0).normal(size=size)).astype(np.float32)


# Spectra.


@TERMS
def test_a_recording_is_no_distance_from_itself_and_farther_the_more_noise_there_is(term):
    distance = getattr(LOSS, term)
    found = [float(distance(recording() + noise(x), recording())) for x in (0.0, 1e-3, 1e-2, 0.1)]
    assert found[0] == 0.0
    assert found[0] < found[1] < found[2] < found[3]


@TERMS
def test_phases_are_not_asked_for(term):
    # The same noise with its sign turned, and another noise as loud: neither has its samples.
    distance = getattr(LOSS, term)
    one, turned = noise(0.1), -noise(0.1)
    assert float(distance(turned, one)) == pytest.approx(0.0, abs=1e-6)


@TERMS
def test_a_batch_is_the_mean_of_its_rows(term):
    distance = getattr(LOSS, term)
    near, far = (recording() + noise(level) for level in (0.001, 0.05))
    both = distance(np.concatenate([near, far]), np.concatenate([recording(), recording()]))
    alone = [float(distance(one, recording())) for one in (near, far)]
    assert float(both) == pytest.approx(np.mean(alone), rel=1e-4)


def test_twice_as_loud_is_the_logarithm_of_two_away():
    # Noise is above the floor in every band and bin.
    one = noise(0.1)
    assert float(LOSS.mel(2.0 * one, one)) == pytest.approx(np.log(2.0), rel=1e-3)
    # By the spectral convergence a whole, and the same of the logarithms.
    assert float(LOSS.stft(2.0 * one, one)) == pytest.approx(1.0 + np.log(2.0), rel=1e-3)


def test_the_mel_loss_hears_above_what_the_model_hears():
    time = np.arange(40 * SPEC.hop_length) / SPEC.sample_rate
    hiss = (0.1 * np.sin(2 * np.pi * 10_000 * time)).astype(np.float32)
    one = voiced(40)
    inside = np.abs(log_mel(one + hiss, SPEC) - log_mel(one, SPEC))[2:-2]
    assert inside.mean() < 0.002  # the model's own mel ends at 8 kHz
    assert float(SpectralLoss(SPEC).mel((one + hiss)[None], one[None])) > 0.05


def test_a_piece_shorter_than_the_longest_frame_counts_too():
    short = recording()[:, :500]
    assert float(LOSS.stft(short + noise(0.1)[:, :500], short)) > 0.1


def test_silence_has_gradients_that_are_numbers():
    generated = tf.Variable(noise(1e-3))
    with tf.GradientTape() as tape:
        silence = tf.zeros_like(generated)
        total = LOSS.mel(generated, silence) + LOSS.stft(generated, silence)
    gradient = tape.gradient(total, generated)
    assert np.isfinite(gradient).all() and np.any(gradient != 0)


# The pitch.


def test_the_pitch_is_compared_where_the_recording_has_one():
    pitch = tf.constant([[100.0, 0.0, 200.0], [0.0, 0.0, 150.0]])
    heard = tf.constant([[200.0, 699.0, 200.0], [51.0, 400.0, 75.0]])
    # An octave twice, and once nothing, in three voiced frames.
    assert float(pitch_loss(heard, pitch)) == pytest.approx(2 / 3 * np.log(2.0), rel=1e-6)
    assert float(pitch_loss(pitch + 50.0 * tf.cast(pitch == 0, tf.float32), pitch)) == 0.0


def test_of_a_piece_without_a_voice_no_pitch_is_asked():
    heard = tf.Variable([[70.0, 300.0]])
    with tf.GradientTape() as tape:
        loss = pitch_loss(heard, tf.zeros((1, 2)))
    assert float(loss) == 0.0
    np.testing.assert_array_equal(tape.gradient(loss, heard), [[0.0, 0.0]])


# Discriminators.


def judged(*scores: float) -> list:
    """What judges say who give each a piece the same score everywhere."""
    return [(tf.fill([2, 5], score), []) for score in scores]


@pytest.mark.parametrize(
    ("recorded", "generated", "expected"),
    [
        ((1.0, 1.0), (0.0, 0.0), 0.0),  # they know both
        ((0.0, 0.0), (1.0, 1.0), 4.0),  # they take each for the other
        ((0.5, 0.5), (0.5, 0.5), 1.0),  # they cannot notify
        ((1.0, 0.5), (0.0, 0.0), 0.25),
    ],
)
def test_discriminators_want_recordings_at_one_and_the_rest_at_nothing(
    recorded, generated, expected
):
    found = discriminator_loss(judged(*recorded), judged(*generated))
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("generated", "expected"), [((1.0, 1.0), 0.0), ((0.0, 0.0), 2.0), ((0.5, 1.0), 0.25)]
)
def test_the_vocoder_wants_to_pass_for_a_recording(generated, expected):
    assert float(adversarial_loss(judged(*generated))) == pytest.approx(expected)


def test_features_are_compared_layer_by_layer_and_pull_on_the_generated_alone():
    real, fake = tf.Variable([[1.0, 2.0]]), tf.Variable([[3.0, 1.0]])
    score = tf.zeros((1, 1))
    with tf.GradientTape() as tape:
        of_recorded = [(score, [real, 10.0 * real]), (score, [real])]
        of_generated = [(score, [fake, 10.0 * fake]), (score, [fake])]
        loss = feature_loss(of_recorded, of_generated)
    assert float(loss) == pytest.approx(1.5 + 15.0 + 1.5)
    pulled = tape.gradient(loss, [real, fake])
    assert pulled[0] is None
    np.testing.assert_allclose(pulled[1], [[6.0, -6.0]])
    assert float(feature_loss(of_recorded, of_recorded)) == 0.0


def test_as_many_judges_must_speak_of_both():
    with pytest.raises(ValueError, match="shorter"):
        discriminator_loss(judged(1.0, 1.0), judged(0.0))
