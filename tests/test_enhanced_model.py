"""The model as a user meets it, and that what once went wrong with it does not."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import best_state, load_state
from myxtts.config.config import ModelConfig, XTTSConfig
from myxtts.training.losses import XTTSLoss
from myxtts.training.trainer import XTTSTrainer
from tests.make_corpus import make_corpus
from tests.tiny_model import (
    VOCAB,
    make_batch,
    padded,
    rows,
    tiny_config,
    tiny_model,
    with_reference,
)
from tests.training.runs import run_config


@pytest.mark.parametrize("strategy", ["parallel", "autoregressive"])
def test_with_padded_text_every_token_changes_the_mel(strategy):
    """The attention mask's sign was inverted, and the text made no difference."""
    model = tiny_model(decoder_strategy=strategy)
    batch = rows(padded(make_batch([16], [5]), tokens=6), *[0] * 6)
    tokens = batch["tokens"].numpy()
    for position in range(5):
        tokens[position + 1, position] = tokens[0, position] % (VOCAB - 1) + 1
    mel = model(with_reference({**batch, "tokens": tf.constant(tokens)}))["mel"]
    assert (np.abs(mel[1:] - mel[:1]).max(axis=(1, 2)) > 1e-3).all()


def test_the_reference_reaches_the_mel_and_its_encoder_learns():
    """Cloning was never trained: no reference reached the model."""
    model = tiny_model()
    inputs = with_reference(make_batch([16, 12], [5, 4], [0, 1]))
    with tf.GradientTape() as tape:
        mel = model(inputs, training=True)["mel"]
        loss = tf.reduce_mean(tf.abs(mel[:, :16] - inputs["mel"]))
    gradients = tape.gradient(loss, model.audio_encoder.trainable_variables)
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)
    other = model({**inputs, "reference": inputs["reference"][::-1]})["mel"]
    assert np.abs(other - model(inputs)["mel"]).max() > 1e-3


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[str, Path, str]:
    """A short run, with what its log says."""
    import logging

    folder = tmp_path_factory.mktemp("enhanced")
    corpus = make_corpus(folder / "corpus", 8, speakers=2, seconds=(0.3, 0.6))
    lines: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("myxtts")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        settings = {"max_steps": 4, "save_interval": 2, "validation_interval": 2}
        trainer = XTTSTrainer(run_config(corpus, folder / "run", **settings))
        reason = trainer.train(*trainer.prepare_datasets())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return reason, folder / "run", "\n".join(lines)


def test_the_log_says_how_the_step_really_ran(run):
    """It logged "graph mode enabled with XLA", and ran eagerly."""
    reason, _, log = run
    assert reason == "finished"
    assert "the step ran as a graph, traced 1 x for" in log and "without XLA" in log


def test_the_best_checkpoint_is_written_and_the_optimizer_is_in_it(run):
    """The best was logged and not written, and the optimizer's state was empty."""
    _, folder, log = run
    best = best_state(folder / "checkpoints")
    assert best is not None and "the best so far" in log
    arrays = load_state(best.path).arrays
    for part in ("model/audio_encoder/", "optimizer/"):
        assert any(name.startswith(part) for name in arrays)
    moments = [value for name, value in arrays.items() if "momentum" in name]
    assert moments and any(np.abs(value).max() > 0 for value in moments)


def test_a_user_sees_weights_components_and_what_the_mean_mel_would_score(run):
    *_, log = run
    assert log.count("Loss weights: mel_loss=1, stop_loss=0.2, voice_similarity_loss=0.1") == 1
    assert "Train loss components: mel_loss=" in log
    assert "predicting the mean mel scores" in log


def test_the_names_that_users_import_are_there():
    assert XTTSLoss.from_config(XTTSConfig()).weights["mel_loss"] == 1.0
    assert ModelConfig().decoder_strategy == "parallel"
    assert tiny_config().model.decoder_dim == 16
