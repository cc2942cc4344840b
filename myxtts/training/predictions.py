"""Teacher-forced (GTA) mels: what a model says along the true alignments."""

import keras
import numpy as np
import tensorflow as tf

from myxtts.config.model import USUAL_REFINE_STEPS, USUAL_TEMPERATURE
from myxtts.training.references import own_references
from myxtts.training.steps import complete


def predict_mels(
    model: keras.Model, batch: dict[str, tf.Tensor], is_refined: bool = False
) -> list[np.ndarray]:
    """The mels [frames, mels] of a batch, without padding; refined where the model can do that."""
    inputs = own_references(complete(batch))
    inputs["prior_weight"] = tf.constant(0.0)
    outputs = model(inputs)
    mels, lengths = outputs["mel"], batch["mel_lengths"]
    if is_refined and model.refiner:
        how = tf.constant([0, 0]), USUAL_TEMPERATURE, tf.constant(USUAL_REFINE_STEPS)
        mels = model.refiner.refine(mels, outputs["frames"], lengths, outputs["voice"], *how)
    found = zip(mels.numpy(), np.asarray(lengths).tolist(), strict=True)
    return [mel[:length] for mel, length in found]
