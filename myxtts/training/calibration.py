"""Measuring how far what a model predicts for new texts is from the scale of recordings."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import tensorflow as tf

from myxtts.models.layers import sequence_mask
from myxtts.models.prosody import scaled_pitch
from myxtts.models.xtts import whole_durations
from myxtts.training.predictions import TeacherForced
from myxtts.training.steps import complete

# Fewer utterances say little, and a model that needs more than this is not trained yet.
FEWEST, MOST = 8, 32
PITCH_RANGES, LENGTHS = (1.0, 1.5), (0.85, 1.2)


@contextmanager
def calibrated(predict: TeacherForced, batches: Iterable[dict[str, tf.Tensor]]) -> Iterator[None]:
    """Let the model have factors for its pitch and its lengths for a while.

    They are measured on `batches` of utterances. A model without a calibration stays as it is.
    """
    model = predict.model
    if not model.contour:
        yield
        return
    factors = (model.calibration.pitch_range, model.calibration.length)
    before = [factor.numpy() for factor in factors]
    try:
        for factor, value in zip(factors, measure(predict, batches), strict=True):
            factor.assign(value)
        yield
    finally:
        for factor, value in zip(factors, before, strict=True):
            factor.assign(value)


def measure(predict: TeacherForced, batches: Iterable[dict[str, tf.Tensor]]) -> tuple[float, float]:
    """Spread of the recorded pitch over that of the predicted one, and the same of lengths."""
    sums = np.zeros(4)
    seen = 0
    for batch in batches:
        sums += _sums(predict, batch)
        seen += len(batch["mel_lengths"])
        if seen >= MOST:
            break
    if seen < FEWEST:
        return 1.0, 1.0
    recorded, predicted, frames, spoken = np.maximum(sums, 1e-9)
    spread, length = np.sqrt(recorded / predicted), frames / spoken
    return float(np.clip(spread, *PITCH_RANGES)), float(np.clip(length, *LENGTHS))


def _sums(predict: TeacherForced, batch: dict[str, tf.Tensor]) -> np.ndarray:
    """Squares of recorded and of predicted pitch about their means; frames and predicted frames."""
    outputs, batch = predict(batch), complete(batch)
    hertz, lengths = batch["pitch"], batch["mel_lengths"]
    voiced = sequence_mask(lengths, tf.shape(hertz)[1]) * tf.cast(hertz > 0.0, tf.float32)
    pitches = (scaled_pitch(hertz), outputs["pitch"][:, : tf.shape(hertz)[1]])
    states = batch["text_lengths"] * predict.model.token_states
    mask = sequence_mask(states, tf.shape(outputs["log_durations"])[1])
    spoken = whole_durations(outputs["log_durations"], mask, tf.ones_like(lengths, tf.float32))
    found = (*(_squares(one, voiced) for one in pitches), *map(tf.reduce_sum, (lengths, spoken)))
    return np.array([float(one) for one in found])


def _squares(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The squares of values [batch, frames] about the means of their rows, added up."""
    mean = tf.math.divide_no_nan(
        tf.reduce_sum(values * mask, axis=1, keepdims=True),
        tf.reduce_sum(mask, axis=1, keepdims=True),
    )
    return tf.reduce_sum(tf.square(values - mean) * mask)
