"""The mel of a reference recording to its speaker embedding."""

import keras
import tensorflow as tf

from myxtts.models.layers import LayerNorm, gelu, sequence_mask, serialisable


@serialisable
class AudioEncoder(keras.layers.Layer):
    """Mel [batch, frames, mels] of any length -> voice [batch, voice_dim], of unit mean square."""

    def __init__(self, dim: int, num_layers: int, voice_dim: int, n_mels: int, **kwargs):
        super().__init__(**kwargs)
        self.settings = {
            "dim": dim,
            "num_layers": num_layers,
            "voice_dim": voice_dim,
            "n_mels": n_mels,
        }
        self.convs = [
            keras.layers.Conv1D(dim, 5, strides=2, padding="valid", name=f"conv_{number}")
            for number in range(num_layers)
        ]
        self.norms = [LayerNorm(name=f"norm_{number}") for number in range(num_layers)]
        self.project = keras.layers.Dense(voice_dim, dtype="float32", name="project")

    def build(self, mel_shape, lengths_shape=None):
        width, dim = self.settings["n_mels"], self.settings["dim"]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            conv.build((None, None, width))
            norm.build((None, None, dim))
            width = dim
        self.project.build((None, 2 * dim))

    def call(self, mel, lengths):
        x = mel
        for conv, norm in zip(self.convs, self.norms, strict=True):
            # Zeros on both sides, and behind each recording's own end.
            x *= tf.cast(sequence_mask(lengths, tf.shape(x)[1])[:, :, None], x.dtype)
            x = norm(gelu(conv(tf.pad(x, [[0, 0], [2, 2], [0, 0]]))))
            lengths = (lengths + 1) // 2
        return unit(self.project(_statistics(tf.cast(x, tf.float32), lengths)))

    def get_config(self):
        return {**super().get_config(), **self.settings}


def _statistics(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Mean and deviation over each recording's own moments: [batch, 2 dim]."""
    mask = sequence_mask(lengths, tf.shape(x)[1])[:, :, None]
    count = tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
    mean = tf.reduce_sum(x * mask, axis=1) / count
    variance = tf.reduce_sum(tf.square(x - mean[:, None, :]) * mask, axis=1) / count
    return tf.concat([mean, tf.sqrt(variance + 1e-5)], axis=-1)


def unit(x: tf.Tensor) -> tf.Tensor:
    """Vectors scaled to a mean square of 1."""
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis=-1, keepdims=True) + 1e-8)
