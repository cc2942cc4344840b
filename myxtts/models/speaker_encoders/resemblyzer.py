"""Resemblyzer's voice encoder (GE2E, Wan et al., 2018), so that its public weights fit."""

from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.layers import sequence_mask, serialisable
from myxtts.models.torch_names import Shapes, keras_value, layer_shapes

BANDS, DIM = 40, 256
_NUM_LAYERS = 3

# They belong to the loss that it was trained with.
IGNORED = ("similarity_weight", "similarity_bias")


@serialisable
class Resemblyzer(keras.layers.Layer):
    """Mel windows [batch, frames, 40] -> embedding [batch, 256], of unit length, never negative.

    With `lengths` [batch] each window ends at its own.
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.lstms = [
            keras.layers.LSTM(
                DIM,
                return_sequences=number + 1 < _NUM_LAYERS,
                dtype="float32",
                name=f"lstm_{number}",
            )
            for number in range(_NUM_LAYERS)
        ]
        self.linear = keras.layers.Dense(DIM, activation="relu", dtype="float32", name="linear")

    def build(self, mel_shape, lengths_shape=None):
        width = BANDS
        for lstm in self.lstms:
            lstm.build((None, None, width))
            width = DIM
        self.linear.build((None, DIM))

    def call(self, mel, lengths=None):
        mask = None
        if lengths is not None:
            mask = sequence_mask(tf.cast(lengths, tf.int32), tf.shape(mel)[1]) > 0.0
        x = mel
        for lstm in self.lstms:
            x = lstm(x, mask=mask)
        return tf.math.l2_normalize(self.linear(x), axis=-1, epsilon=1e-24)


def weights_from_torch(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of all variables, by path within the network, from Resemblyzer's.

    The gates have the same order: input, forget, cell, output. The two biases per layer, which
    are only ever added, become one.
    """
    values = {}
    for number in range(_NUM_LAYERS):
        cell = f"lstm_{number}/lstm_cell"
        values[f"{cell}/kernel"] = keras_value(arrays[f"lstm.weight_ih_l{number}"])
        values[f"{cell}/recurrent_kernel"] = keras_value(arrays[f"lstm.weight_hh_l{number}"])
        values[f"{cell}/bias"] = (
            arrays[f"lstm.bias_ih_l{number}"] + arrays[f"lstm.bias_hh_l{number}"]
        )
    values["linear/kernel"] = keras_value(arrays["linear.weight"])
    values["linear/bias"] = arrays["linear.bias"]
    return values


def published_shapes() -> Shapes:
    """Name all tensors that the network needs, as Resemblyzer does."""
    shapes = layer_shapes("linear", DIM, DIM)
    for number in range(_NUM_LAYERS):
        width = DIM if number else BANDS
        shapes[f"lstm.weight_ih_l{number}"] = (4 * DIM, width)
        shapes[f"lstm.weight_hh_l{number}"] = (4 * DIM, DIM)
        shapes[f"lstm.bias_ih_l{number}"] = shapes[f"lstm.bias_hh_l{number}"] = (4 * DIM,)
    return shapes
