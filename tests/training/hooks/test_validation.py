"""Validation: real inputs, EMA weights, and nothing is changed by it."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.validation import (
    Scoring,
    ValidationHook,
    mean_mel_loss,
    scores,
    speaker_embeddings,
)
from myxtts.training.loop import Hook, OutOfMemory, StepRecord
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import build_optimizer, ema_values
from myxtts.training.steps import batch_signature, make_eval_step
from tests.helpers.tiny_model import N_MELS, make_batch, tiny_config, tiny_model


class Remember(Hook):
    def __init__(self):
        self.heard = {}

    def record_validation(self, step, metrics):
        self.heard[step] = metrics


@pytest.fixture(scope="module")
def parts():
    """A model whose EMA weights are not its own, and what scores it."""
    model = tiny_model(text_encoder_conv_layers=0, text_encoder_layers=0, decoder_layers=1)
    config = tiny_config(ema_decay=0.5)
    optimizer = build_optimizer(config.training, 10)
    optimizer.build(model.trainable_variables)
    for average, variable in zip(
        ema_values(optimizer, model.trainable_variables),
        model.trainable_variables,
        strict=True,
    ):
        average.assign(0.5 * variable)
    batches = [make_batch([12, 9], [4, 3], [0, 1]), make_batch([7], [2], [2], seed=5)]
    loss = XTTSLoss.from_config(config)
    evaluate = make_eval_step(model, loss, batch_signature(batches[0], N_MELS), graph=False)
    return model, optimizer, evaluate, batches


def test_the_ema_weights_are_scored_and_the_own_ones_come_back(parts):
    model, optimizer, evaluate, batches = parts
    own = [variable.numpy() for variable in model.trainable_variables]
    listener = Remember()
    hook = ValidationHook(Scoring(model, optimizer, evaluate, batches, 1.25), 5, [listener])
    found = hook.validate(5)
    for variable, value in zip(model.trainable_variables, own, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    with_own = scores(evaluate, batches)
    assert found["loss"] != pytest.approx(with_own["loss"], rel=1e-3)
    for variable in model.trainable_variables:
        variable.assign(0.5 * variable)
    try:
        assert scores(evaluate, batches) == pytest.approx(found, rel=1e-5)
    finally:
        for variable, value in zip(model.trainable_variables, own, strict=True):
            variable.assign(value)
    assert listener.heard == {5: {**found, "mean_mel_loss": 1.25}}
    assert hook.scored == {5: found}


class Replies:
    """Stands for an evaluation: it answers with given losses, and keeps what it was given."""

    def __init__(self, *losses: float):
        self.losses, self.seen = list(losses), []

    def __call__(self, batch, number):
        self.seen.append(batch)
        return self.losses[len(self.seen) - 1]

    def read(self, metrics):
        return {"loss": metrics}


def test_every_utterance_counts_once_and_the_batches_are_the_real_ones(parts):
    batches = parts[-1]
    evaluate = Replies(1.0, 4.0)
    # Two utterances scored 1, one scored 4.
    assert scores(evaluate, batches) == {"loss": 2.0}
    assert evaluate.seen == batches
    assert all(np.abs(batch["mel"]).max() > 0 for batch in evaluate.seen)


def test_it_is_due_every_interval_and_at_the_end_of_a_run_that_ends_by_itself(parts, monkeypatch):
    model, optimizer, evaluate, batches = parts
    hook = ValidationHook(Scoring(model, optimizer, evaluate, batches, 0.0), 5, [])
    done = []
    monkeypatch.setattr(hook, "validate", done.append)
    assert [step for step in range(1, 11) if hook.is_due(step)] == [5, 10]
    hook.finish(6, "finished")  # no step was made: a finished run was started again
    hook.after_step(StepRecord(7, 0, 6, {}, np.zeros(1), StepTimes()))
    hook.finish(7, "finished")
    hook.finish(8, "failed")
    hook.finish(9, "SIGTERM")  # there is only time to save
    assert done == [7]


def test_the_mean_mel_scores_by_its_mean_absolute_deviation():
    mel = np.zeros((2, 3, 1), np.float16)
    mel[0, :2, 0] = [1, 3]
    mel[1, :1, 0] = [8]
    mel[1, 1:] = 99  # padding
    batch = {"mel": tf.constant(mel), "mel_lengths": tf.constant([2, 1])}
    # The frames are 1, 3 and 8, their mean 4: (3 + 1 + 4) / 3.
    assert mean_mel_loss([batch]) == pytest.approx(8 / 3)


def test_a_speakers_voice_is_the_mean_of_some_utterances():
    class FirstFrame:
        """Takes the first frame for the voice."""

        speaker_embedding_dim = 1

        def embed(self, inputs):
            return inputs["reference"][:, 0]

    mel = np.arange(1, 7, dtype=np.float16).reshape(6, 1, 1)
    batch = {
        "mel": tf.constant(mel),
        "mel_lengths": tf.ones([6], tf.int32),
        "speaker": tf.constant([0, 1, 0, 0, 1, 0]),
    }
    voices = speaker_embeddings(FirstFrame(), [batch], 2)
    # Of the first speaker 1, 3, 4 and 6; of the second 2 and 5.
    np.testing.assert_allclose(voices, [[3.5], [3.5]], rtol=1e-6)


def test_out_of_memory_while_validating_says_what_to_lower(parts):
    model, optimizer, _, batches = parts

    class Greedy:
        read = None

        def __call__(self, batch, step):
            raise tf.errors.ResourceExhaustedError(None, None, "too much")

    hook = ValidationHook(Scoring(model, optimizer, Greedy(), batches, 0.0), 5, [])
    before = [variable.numpy() for variable in model.trainable_variables]
    with pytest.raises(OutOfMemory, match="validating after step 5: lower --batch-size"):
        hook.validate(5)
    for variable, value in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
