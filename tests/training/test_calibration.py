"""Calibration: a voice speaks with the pitch range and the lengths of held-out recordings."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.training import calibration
from myxtts.training.calibration import calibrated, measure
from myxtts.training.predictions import TeacherForced
from tests.helpers.tiny_model import make_batch, tiny_model

FRAMES, TOKENS = [20, 13, 17, 16, 14, 18, 19, 20], [6, 4, 5, 4, 4, 5, 6, 6]


@pytest.fixture(scope="module")
def model():
    return tiny_model(token_states=2, pitch_contour="frame")


@pytest.fixture(scope="module")
def batch():
    return make_batch(FRAMES, TOKENS)


def factors(model) -> tuple[float, float]:
    return float(model.calibration.pitch_range), float(model.calibration.length)


def test_the_factors_hold_while_a_voice_is_exported_and_not_longer(model, batch, monkeypatch):
    monkeypatch.setattr(calibration, "measure", lambda predict, batches: (1.25, 1.1))
    with calibrated(TeacherForced(model), [batch]):
        assert factors(model) == pytest.approx((1.25, 1.1))
    assert factors(model) == (1.0, 1.0)


def test_few_utterances_say_nothing(model):
    assert measure(TeacherForced(model), [make_batch(FRAMES[:3], TOKENS[:3])]) == (1.0, 1.0)


def test_the_range_is_the_ratio_of_spreads_about_each_utterances_mean(model, batch, monkeypatch):
    monkeypatch.setattr(calibration, "PITCH_RANGES", (0.0, 1e9))
    before, _ = measure(TeacherForced(model), [batch])
    # An octave for every step of half an octave: twice the spread, at any mean.
    pitch = batch["pitch"].numpy()
    mean = [np.exp(np.log(row[row > 0]).mean()) for row in pitch]
    wide = np.where(pitch > 0, pitch**2 / np.array(mean)[:, None], 0.0).astype(np.float32)
    after, _ = measure(TeacherForced(model), [{**batch, "pitch": tf.constant(wide)}])
    # The decoder hears the pitch, its prediction does not: only the recorded spread has changed.
    assert after == pytest.approx(2.0 * before, rel=1e-4)


def test_a_wider_range_keeps_the_mean_and_longer_lengths_the_order(model, batch):
    pitch = tf.constant([[1.0, 3.0, 9.0, 2.0]])
    voiced = tf.constant([[True, True, False, False]])
    said = (batch["tokens"], batch["text_lengths"], batch["language"])
    how = (tf.zeros([8, 8]), tf.ones([8]))
    short = model.synthesize(*said, *how)["durations"].numpy()
    try:
        model.calibration.pitch_range.assign(1.5)
        model.calibration.length.assign(1.5)
        widened = model.calibration.widened(pitch, voiced).numpy()
        long = model.synthesize(*said, *how)["durations"].numpy()
    finally:
        model.calibration.pitch_range.assign(1.0)
        model.calibration.length.assign(1.0)
    # About the mean 2 of the voiced frames.
    np.testing.assert_allclose(widened, [[0.5, 3.5, 12.5, 2.0]], atol=1e-6)
    assert long.sum() == pytest.approx(1.5 * short.sum(), rel=0.1)


def test_a_model_with_a_pitch_per_token_is_left_alone(batch):
    model = tiny_model()
    with calibrated(TeacherForced(model), []):
        assert not hasattr(model, "calibration")
