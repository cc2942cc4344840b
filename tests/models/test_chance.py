"""Readings: melody and tempo that vary with a seed, as much as recordings do."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.prosody import Calibration, Chance
from tests.helpers.tiny_model import make_batch, tiny_model

FRAMES, TOKENS = [20, 13, 17], [6, 4, 5]


@pytest.fixture(scope="module")
def model():
    found = tiny_model(token_states=2, pitch_contour="frame")
    found.calibration.pitch_range.assign(1.3)
    found.calibration.length.assign(1.15)
    return found


@pytest.fixture(scope="module")
def said():
    batch = make_batch(FRAMES, TOKENS, [0, 0, 1])
    names = ("tokens", "text_lengths", "language")
    return *(batch[name] for name in names), tf.zeros([3, 8]), tf.ones([3])


def calibration(pitch_range: float, length: float) -> Calibration:
    found = Calibration()
    found.build()
    found.pitch_range.assign(pitch_range)
    found.length.assign(length)
    return found


def chances(temperature: float, rows: int = 1000) -> Chance:
    """The chance of many different sentences."""
    tokens = tf.range(1, rows + 1)[:, None]
    return Chance(tokens, tf.constant(3), tf.constant(temperature))


def test_without_variation_it_is_what_the_voice_says(model, said):
    plain, calm = model.synthesize(*said), model.synthesize_varied(*said, 5, 0.0)
    for name in plain:
        np.testing.assert_array_equal(calm[name], plain[name])


def test_a_seed_is_a_reading(model, said):
    first, again, other = (model.synthesize_varied(*said, seed, 1.0) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first["mel"], again["mel"])
    shapes = first["mel"].shape, other["mel"].shape
    assert shapes[0] != shapes[1] or not np.allclose(first["mel"], other["mel"])


def test_a_sentence_is_read_the_same_in_any_batch(model, said):
    whole = model.synthesize_varied(*said, 5, 1.0)
    tokens, lengths, *others = said
    alone = (tokens[1:2, : TOKENS[1]], lengths[1:2], *(one[1:2] for one in others))
    single = model.synthesize_varied(*alone, 5, 1.0)
    np.testing.assert_array_equal(single["durations"][0], whole["durations"][1, : TOKENS[1]])
    frames = int(single["mel_lengths"][0])
    assert frames == int(whole["mel_lengths"][1])
    np.testing.assert_allclose(single["mel"][0, :frames], whole["mel"][1, :frames], atol=1e-5)


def test_sentences_of_one_text_differ(model):
    noise = chances(1.0, rows=8).noise(1, 200, 24).numpy()
    assert np.abs(np.corrcoef(noise)[0, 1:]).max() < 0.99


def test_noise_of_seeds_and_of_pitch_and_lengths_is_unrelated():
    tokens = tf.constant([[7, 3, 12]])
    seeds = (0, 1, 2, 3, 511, 512, 513, 100_000, 2**31 - 1)
    chances = [Chance(tokens, tf.constant(seed), tf.constant(1.0)) for seed in seeds]
    noise = [chance.noise(key, 1024, 1)[0].numpy() for chance in chances for key in (1, 2)]
    found = np.corrcoef(np.stack(noise)) - np.eye(len(noise))
    assert np.abs(found).max() < 0.2
    for one in noise:  # every number of the table once
        assert one.mean() == pytest.approx(0.0, abs=1e-5)
        assert one.std() == pytest.approx(1.0, abs=1e-5)


def test_noise_is_smooth_and_normal():
    noise = chances(1.0).noise(1, 240, 24).numpy()
    assert noise.mean() == pytest.approx(0.0, abs=0.1)
    assert noise.std() == pytest.approx(1.0, abs=0.1)
    assert np.abs(np.diff(noise)).mean() < 0.1


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_the_range_of_the_pitch_is_kept(temperature):
    pitch = tf.constant(np.random.default_rng(0).normal(size=(1000, 300)), tf.float32)
    voiced = tf.ones_like(pitch)
    found = calibration(1.4, 1.0).varied(pitch, voiced, chances(temperature)).numpy()
    assert found.std() == pytest.approx(1.4, abs=0.06)


def test_beyond_a_temperature_of_1_the_melody_is_wider():
    pitch = tf.constant(np.random.default_rng(0).normal(size=(1000, 300)), tf.float32)
    found = calibration(1.4, 1.0).varied(pitch, tf.ones_like(pitch), chances(2.0)).numpy()
    assert found.std() == pytest.approx(np.sqrt(1.0 + 4 * 0.96), abs=0.15)


@pytest.mark.parametrize("length", [0.9, 1.15])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_speech_is_as_long_as_without_chance(temperature, length):
    log_durations = tf.zeros([1000, 80])
    found = calibration(1.0, length).varied_lengths(log_durations, chances(temperature)).numpy()
    assert np.exp(found).mean() == pytest.approx(length, rel=0.03)
    assert (np.ptp(found) > 0.3) == (temperature > 0 and length > 1)


def test_without_calibration_there_is_one_reading():
    pitch = tf.constant([[0.5, -1.0, 2.0]])
    varied = calibration(1.0, 1.0).varied(pitch, tf.ones_like(pitch), chances(1.0, rows=1))
    np.testing.assert_allclose(varied, pitch, atol=1e-6)


def test_a_pitch_per_token_has_one_reading():
    assert not tiny_model().can_vary
