"""States of tokens and pitch contours: what a model with both must and must not depend on."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.models import xtts
from myxtts.models.prosody import PitchContour, TokenStates, scaled_pitch
from myxtts.training.losses import XTTSLoss, contour_loss
from tests.helpers.tiny_model import (
    N_MELS,
    make_batch,
    padded,
    tiny_config,
    tiny_model,
    with_reference,
)

RECIPE = {"token_states": 2, "pitch_contour": "frame"}
FRAMES, TOKENS = [20, 13, 17], [6, 4, 5]


@pytest.fixture(scope="module")
def model() -> xtts.XTTS:
    return tiny_model(**RECIPE)


@pytest.fixture(scope="module")
def batch() -> dict[str, tf.Tensor]:
    return make_batch(FRAMES, TOKENS, [0, 0, 1])


def test_every_state_is_aligned_and_tokens_have_the_frames_of_theirs(model, batch):
    outputs = model(with_reference(batch))
    assert outputs["mu"].shape == (3, 12, N_MELS)
    durations, frame_tokens = outputs["durations"].numpy(), outputs["frame_tokens"].numpy()
    for row, (frames, tokens) in enumerate(zip(FRAMES, TOKENS, strict=True)):
        own = durations[row, : 2 * tokens]
        assert own.min() >= 1 and own.sum() == frames
        counted = np.bincount(frame_tokens[row, :frames], minlength=tokens)
        np.testing.assert_array_equal(counted, own.reshape(-1, 2).sum(axis=1))


def test_speaking_gives_durations_of_tokens(model, batch):
    voice = tf.zeros([3, 8])
    said = model.synthesize(
        batch["tokens"], batch["text_lengths"], batch["language"], voice, tf.ones([3])
    )
    durations = said["durations"].numpy()
    assert durations.shape == (3, 6)
    for row, tokens in enumerate(TOKENS):
        # A frame for each of two states at least; nothing for padding.
        assert durations[row, :tokens].min() >= 2 and not durations[row, tokens:].any()


def test_padding_changes_no_loss(model, batch):
    inputs, wider = with_reference(batch), with_reference(padded(batch, tokens=3, frames=6))
    loss = XTTSLoss.from_config(tiny_config(**RECIPE))
    terms, others = loss.terms(inputs, model(inputs)), loss.terms(wider, model(wider))
    for name in terms:
        np.testing.assert_allclose(others[name], terms[name], atol=1e-5, err_msg=name)


def test_the_decoder_hears_the_pitch_of_voiced_frames_only(model):
    frames = tf.zeros([1, 4, 20])
    pitch = scaled_pitch(tf.constant([[100.0, 200.0, 300.0, 400.0]]))
    voiced = tf.constant([[True, False, True, False]])
    added = model._with_contour(frames, pitch, voiced)[0, :, 20:].numpy()
    assert added.shape == (4, model.harmonics.bands + 2)
    assert not added[[1, 3]].any()
    np.testing.assert_allclose(added[0, -2:], [pitch[0, 0], 1.0], atol=1e-6)
    assert np.abs(added[0, :-2] - added[2, :-2]).max() > 0.1


def test_another_true_pitch_changes_the_mel(model, batch):
    hertz = np.zeros(batch["pitch"].shape, np.float32)
    hertz[:, 2:9] = 120.0
    low = model(with_reference({**batch, "pitch": tf.constant(hertz)}))
    high = model(with_reference({**batch, "pitch": tf.constant(2 * hertz)}))
    assert np.abs(low["mel"] - high["mel"]).max() > 1e-3
    # What is predicted must not have seen it.
    np.testing.assert_array_equal(low["pitch"], high["pitch"])


def test_states_differ_and_stay_next_to_each_other():
    layer = TokenStates(4, 3)
    layer.build((None, None, 4))
    x = tf.random.stateless_normal([1, 2, 4], [1, 2])
    states = layer(x).numpy()
    assert states.shape == (1, 6, 4)
    kernel = layer.project.kernel.numpy()
    np.testing.assert_allclose(states[0, 4], x[0, 1] + x[0, 1].numpy() @ kernel[:, 4:8], atol=1e-5)


def test_a_contour_has_a_value_for_each_frame_and_ignores_padding():
    layer = PitchContour(8, 2)
    layer.build((None, None, 5), (None,), (None, 3))
    x, voice = tf.random.stateless_normal([1, 10, 5], [3, 4]), tf.ones([1, 3])
    pitch, voicing = layer(x, tf.constant([6]), voice)
    other = tf.concat([x[:, :6], 9.0 + x[:, 6:]], axis=1)
    again, voiced = layer(other, tf.constant([6]), voice)
    assert pitch.shape == voicing.shape == (1, 10)
    np.testing.assert_allclose(again[:, :6], pitch[:, :6], atol=1e-5)
    np.testing.assert_allclose(voiced[:, :6], voicing[:, :6], atol=1e-5)


def test_the_loss_of_a_contour_by_hand():
    # ln 148.413 = 5 is 0 on the model's scale, and a third of a unit off is all there is of pitch.
    truth = tf.constant([[148.413, 0.0, 148.413]])
    pitch = tf.constant([[0.5, 9.0, 7.0]])
    voicing = tf.zeros([1, 3])
    counts = XTTSLoss({}).counts(
        {
            "mel_lengths": tf.constant([2]),
            "text_lengths": tf.constant([1]),
            "speaker": tf.constant([0]),
            "pitch": truth[:, :2],
        }
    )
    found = contour_loss(pitch, voicing, truth, tf.constant([2]), counts)
    # One voiced frame within the length, half a unit off; ln 2 for a coin's voicing.
    assert float(found) == pytest.approx(0.5 + np.log(2.0), abs=1e-4)
