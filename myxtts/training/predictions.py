"""What a model predicts along the true alignments: teacher-forced (GTA) mels, and all the rest."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from myxtts.config.model import USUAL_REFINE_STEPS, USUAL_TEMPERATURE
from myxtts.training.references import own_references
from myxtts.training.steps import batch_signature, complete

Batch = dict[str, tf.Tensor]


class TeacherForced:
    """A model as a function of batches, each utterance with itself as its reference.

    It is compiled once for all shapes: eagerly, the exports of a run would take a good part of it.
    """

    def __init__(self, model: keras.Model):
        self.model = model
        self._compiled: Callable[[Batch], dict[str, Any]] | None = None

    def __call__(self, batch: Batch) -> dict[str, Any]:
        inputs = own_references(complete(batch))
        if self._compiled is None:
            signature = batch_signature(inputs, self.model.n_mels)
            self._compiled = tf.function(self._predict, input_signature=[signature])
        return self._compiled(inputs)

    def _predict(self, inputs: Batch) -> dict[str, Any]:
        return self.model({**inputs, "prior_weight": tf.constant(0.0)})


def predict_mels(
    predict: TeacherForced, batch: Batch, is_refined: bool = False
) -> list[np.ndarray]:
    """The mels [frames, mels] of a batch, without padding; refined where the model can do that."""
    model, outputs = predict.model, predict(batch)
    mels, lengths = outputs["mel"], batch["mel_lengths"]
    if is_refined and model.refiner:
        how = tf.constant([0, 0]), USUAL_TEMPERATURE, tf.constant(USUAL_REFINE_STEPS)
        mels = model.refiner.refine(mels, outputs["frames"], lengths, outputs["voice"], *how)
    found = zip(mels.numpy(), np.asarray(lengths).tolist(), strict=True)
    return [mel[:length] for mel, length in found]
