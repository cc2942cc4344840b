"""A warm start: what it takes over, what is extended, and what is an error."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import SavedState, weights_of
from myxtts.config.config import SETTINGS
from myxtts.config.io import Setting
from myxtts.data.features.features import FeatureSettings
from myxtts.errors import UserError
from myxtts.training.warm_start import (
    LASTING,
    check_beginning,
    check_lasting,
    freeze_speaker_encoder,
    identity,
    warm_start,
    with_known_embeddings,
)
from tests.helpers.tiny_model import tiny_config, tiny_model

VOICES = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
SHARED = {"text_voice": "shared"}
ENCODER = {"use_pretrained_speaker_encoder": True, "speaker_encoder_type": "resemblyzer"}


def test_weights_are_taken_over_and_a_new_speaker_begins_as_the_mean_of_the_known():
    known, model = tiny_model(speakers=3, seed=1), tiny_model(speakers=4, seed=2)
    warm_start(model, known, VOICES)
    own, given = weights_of(model), weights_of(known)
    for name in own.keys() - {"speaker/kernel", "speaker/bias"}:
        np.testing.assert_array_equal(own[name], given[name], err_msg=name)
    kernel, before = np.asarray(own["speaker/kernel"]), np.asarray(given["speaker/kernel"])
    np.testing.assert_array_equal(kernel[:, :3], before)
    np.testing.assert_allclose(kernel[:, 3], before.mean(axis=1), rtol=1e-6)
    bias = np.asarray(given["speaker/bias"])
    np.testing.assert_allclose(own["speaker/bias"], [*bias, bias.mean()], rtol=1e-6)


def test_a_model_of_one_speaker_gets_a_head_to_tell_two_apart():
    known, model = tiny_model(speakers=1, seed=1), tiny_model(speakers=2, seed=2)
    head = np.asarray(model.speaker_head.kernel)
    warm_start(model, known, VOICES)
    np.testing.assert_array_equal(model.speaker_head.kernel, head)
    np.testing.assert_array_equal(model.mu_head.kernel, known.mu_head.kernel)


@pytest.mark.parametrize("settings", [{"decoder_dim": 24}, {"use_gst": True}, {"speakers": 2}])
def test_another_model_is_refused_by_the_names_of_its_weights(settings):
    model = tiny_model(seed=2, **settings)
    before = [weight.numpy() for weight in model.weights]
    with pytest.raises(UserError, match="another than the voice's .*(decoder|style|speaker)"):
        warm_start(model, tiny_model(), VOICES)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, value)


def test_a_shared_text_voice_begins_as_the_mean_of_the_known_voices():
    known, model = tiny_model(seed=1, use_gst=True), tiny_model(seed=2, **SHARED, use_gst=True)
    warm_start(model, known, VOICES)
    styled = known.styled(tf.constant(VOICES))
    np.testing.assert_allclose(model.text_voice, np.mean(styled, axis=0), rtol=1e-5)
    tokens, lengths = tf.constant([[3, 4, 5]]), tf.constant([3])
    text, _ = model._encode(tokens, lengths, tf.constant([0]), tf.ones([1, 8]), False)
    mean = tf.reduce_mean(styled, axis=0, keepdims=True)
    expected, _ = known._encode(tokens, lengths, tf.constant([0]), mean, False)
    np.testing.assert_allclose(text, expected, rtol=1e-5, atol=1e-5)


def test_a_published_encoder_takes_the_place_of_the_learnt_one_near_the_known_voices():
    known, model = tiny_model(seed=1), tiny_model(seed=2, **ENCODER)
    warm_start(model, known, VOICES)
    embeddings = np.random.default_rng(1).normal(size=(20, 256)).astype(np.float32)
    model.published_voice.adapt(embeddings)
    begun = model.encode_embedding(tf.constant(embeddings)).numpy()
    mean = VOICES.mean(axis=0)
    cosines = begun @ mean / np.linalg.norm(begun, axis=1) / np.linalg.norm(mean)
    assert cosines.min() > 0.8
    assert begun.std(axis=0).min() > 0.01  # and yet no two are the same
    np.testing.assert_array_equal(model.mu_head.kernel, known.mu_head.kernel)


@pytest.mark.parametrize("settings", [SHARED, ENCODER])
def test_what_a_voice_has_is_not_taken_from_it(settings):
    with pytest.raises(UserError, match="another than the voice's"):
        warm_start(tiny_model(seed=2), tiny_model(**settings), VOICES)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        ENCODER,
        {**ENCODER, "freeze_speaker_encoder": False},
    ],
    ids=["learnt", "published", "published and unfrozen"],
)
def test_what_describes_voices_is_not_trained_and_all_else_is(settings):
    model = tiny_model(**settings)
    names = list(weights_of(model))
    part = model.published_voice if settings else model.audio_encoder
    describing = {variable.path for variable in part.trainable_variables}
    before = {variable.path for variable in model.trainable_variables}
    freeze_speaker_encoder(model)
    assert describing and part.trainable_variables == []
    assert {variable.path for variable in model.trainable_variables} == before - describing
    assert list(weights_of(model)) == names  # a checkpoint still has all of them


def test_known_speakers_keep_their_vectors_unless_they_are_heard_again():
    measured = np.array([[0.0], [7.0], [0.0], [9.0]])
    known = np.array([[1.0], [2.0], [3.0]])
    voices = with_known_embeddings(measured, known, np.array([3, 1, 3]))
    assert voices.tolist() == [[1.0], [7.0], [3.0], [9.0]]


def test_the_model_the_features_and_the_text_units_must_last():
    config = tiny_config()
    same = {"data.sample_rate": Setting(config.data.sample_rate, "flag --sample-rate")}
    check_lasting(config, same | {"training.learning_rate": Setting(1e-5, "flag --lr")})
    for path, value in {
        "data.sample_rate": 16000,
        "data.text_units": "phonemes",
        "data.loudness_lufs": -20.0,
        "model.use_gst": True,
    }.items():
        with pytest.raises(UserError, match=rf"{path} is .*flag --x.*leave that out"):
            check_lasting(config, {path: Setting(value, "flag --x")})


def test_a_voice_may_be_given_parts_that_it_lacks_and_no_others_in_their_place():
    encoder = {
        "model.use_pretrained_speaker_encoder": Setting(True, "flag --x"),
        "model.speaker_encoder_type": Setting("resemblyzer", "flag --x"),
        "model.speaker_encoder_path": Setting("my.pt", "flag --x"),
    }
    check_lasting(tiny_config(), encoder | {"model.text_voice": Setting("shared", "flag --x")})
    known = tiny_config(**SHARED, use_pretrained_speaker_encoder=True)
    for path, value in {
        "model.text_voice": "own",
        "model.use_pretrained_speaker_encoder": False,
        "model.speaker_encoder_type": "resemblyzer",
    }.items():
        with pytest.raises(UserError, match=rf"{path} is .*flag --x.*leave that out"):
            check_lasting(known, {path: Setting(value, "flag --x")})


def test_every_setting_that_makes_features_lasts():
    """What FeatureSettings has that is not here: how they are stored, and which are too short."""
    named = {path.partition(".")[2] for path in LASTING}
    assert set(LASTING) <= SETTINGS.keys()
    for name in FeatureSettings.__dataclass_fields__.keys() - {"spec", "dtype", "min_seconds"}:
        assert name in named
    for name in tiny_config().data.audio_spec.__dataclass_fields__:
        assert name in named or name == "floor" and "mel_floor" in named


def voice(value: float) -> SimpleNamespace:
    return SimpleNamespace(folder=Path("runs/multi"), voices=np.full((2, 4), value, np.float32))


def test_going_on_needs_the_beginning_that_there_was():
    def saved(start):
        return SavedState(1, {}, {"start": start}, Path("step-1"))

    check_beginning(saved(None), None)
    check_beginning(SavedState(1, {}, {}, Path("of an earlier version")), None)
    check_beginning(saved(identity(voice(1))), voice(1))
    with pytest.raises(UserError, match="began from a voice.*myxtts finetune"):
        check_beginning(saved(identity(voice(1))), None)
    with pytest.raises(UserError, match="began from nothing.*--checkpoint-dir"):
        check_beginning(saved(None), voice(1))
    with pytest.raises(UserError, match="another voice than runs/multi is now.*bring that one"):
        check_beginning(saved(identity(voice(1))), voice(2))
