"""The speaker encoder of Coqui TTS: a ResNet with attentive pooling (H/ASP, Heo et al., 2020).

It is built to the published definition, tensor names included, but was not run on the public
weights, because they could not be had.
"""

from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.layers import sequence_mask, serialisable
from myxtts.models.torch_names import Shapes, keras_name, keras_value, layer_shapes, norm_shapes

BANDS, DIM = 64, 512
_CHANNELS, _BLOCKS = (32, 64, 128, 256), (3, 4, 6, 3)
_REDUCTION, _ATTENTION = 8, 128
_POOLED = _CHANNELS[-1] * BANDS // 8  # three of the four stages halve the bands
_MIN_VARIANCE = 1e-5

# Counters of the training, the features' constants and the classifier of the training loss.
IGNORED = ("*.num_batches_tracked", "torch_spec.*", "criterion.*")


@serialisable
class CoquiEncoder(keras.layers.Layer):
    """Features [batch, frames, 64] -> embedding [batch, 512] of unit length.

    With `lengths` [batch] each clip of a padded batch gives what it gives alone.
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.conv1 = _conv(_CHANNELS[0], "conv1", use_bias=True)
        self.bn1 = _norm("bn1")
        self.blocks = [
            ResidualBlock(channels, strided, name=name)
            for name, _, channels, strided in _block_table()
        ]
        self.pooling = [_dense(_ATTENTION, "attention_0"), _norm("attention_2")]
        self.pooling.append(_dense(_POOLED, "attention_3"))
        self.fc = _dense(DIM, "fc")

    def build(self, features_shape, lengths_shape=None):
        self.conv1.build((None, None, BANDS, 1))
        self.bn1.build((None, None, None, _CHANNELS[0]))
        for block, (_, inputs, _, _) in zip(self.blocks, _block_table(), strict=True):
            block.build((None, None, None, inputs))
        for layer, width in zip(self.pooling, (_POOLED, _ATTENTION, _ATTENTION), strict=True):
            layer.build((None, None, width))
        self.fc.build((None, 2 * _POOLED))

    def call(self, features, lengths=None):
        x = tf.nn.relu(self.conv1(_silenced(features[..., None], lengths)))
        x = self.bn1(x, training=False)
        for block in self.blocks:
            x = block(x, lengths)
            lengths = block.lengths_after(lengths)
        # Channels first, then bands, as the weights of the pooling expect.
        x = tf.transpose(x, [0, 1, 3, 2])
        x = tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], _POOLED])
        pooled = attentive_statistics(x, self._scores(x), lengths)
        return tf.math.l2_normalize(self.fc(pooled), axis=-1, epsilon=1e-24)

    def _scores(self, x):
        squeeze, norm, expand = self.pooling
        return expand(norm(tf.nn.relu(squeeze(x)), training=False))


@serialisable
class ResidualBlock(keras.layers.Layer):
    """Two convolutions over [batch, frames, bands, channels], squeeze and excitation, residual.

    The first ReLU comes before its batch norm. The norms always go by their running statistics.
    """

    def __init__(self, channels: int, strided: bool, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.settings = {"channels": channels, "strided": strided}
        self.conv1, self.bn1 = _conv(channels, "conv1", strides=1 + strided), _norm("bn1")
        self.conv2, self.bn2 = _conv(channels, "conv2"), _norm("bn2")
        self.se = SqueezeExcitation(channels, name="se")
        if strided:
            self.shortcut = _dense(channels, "downsample_0", use_bias=False)
            self.shortcut_norm = _norm("downsample_1")

    def build(self, x_shape, lengths_shape=None):
        inside = (*x_shape[:-1], self.settings["channels"])
        self.conv1.build(x_shape)
        for layer in (self.bn1, self.conv2, self.bn2, self.se):
            layer.build(inside)
        if self.settings["strided"]:
            self.shortcut.build(x_shape)
            self.shortcut_norm.build(inside)

    def call(self, x, lengths=None):
        after = self.lengths_after(lengths)
        h = _silenced(x, lengths)
        if self.settings["strided"]:  # one zero at each end, where "same" would put both behind
            h = tf.pad(h, [[0, 0], [1, 1], [1, 1], [0, 0]])
        h = self.bn1(tf.nn.relu(self.conv1(h)), training=False)
        h = self.bn2(self.conv2(_silenced(h, after)), training=False)
        return tf.nn.relu(self.se(h, after) + self._residual(x))

    def _residual(self, x):
        if not self.settings["strided"]:
            return x
        return self.shortcut_norm(self.shortcut(x[:, ::2, ::2, :]), training=False)

    def lengths_after(self, lengths):
        """How many frames are left of each clip."""
        return (lengths + 1) // 2 if self.settings["strided"] and lengths is not None else lengths

    def get_config(self):
        return {**super().get_config(), **self.settings}


@serialisable
class SqueezeExcitation(keras.layers.Layer):
    """Scale each channel by what the means of all channels say."""

    def __init__(self, channels: int, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.channels = channels
        self.squeeze, self.excite = (
            _dense(channels // _REDUCTION, "fc_0"),
            _dense(channels, "fc_2"),
        )

    def build(self, x_shape, lengths_shape=None):
        self.squeeze.build((None, self.channels))
        self.excite.build((None, self.channels // _REDUCTION))

    def call(self, x, lengths=None):
        mean = tf.reduce_mean(x, axis=2)
        mean = _weighted_mean(mean, _mask(mean, lengths))
        scale = tf.sigmoid(self.excite(tf.nn.relu(self.squeeze(mean))))
        return x * scale[:, None, None, :]

    def get_config(self):
        return {**super().get_config(), "channels": self.channels}


def attentive_statistics(x: tf.Tensor, scores: tf.Tensor, lengths=None) -> tf.Tensor:
    """Means and deviations over time, weighed by the scores' softmax: [batch, 2 channels]."""
    mask = _mask(x, lengths)
    if mask is not None:
        scores = tf.where(mask > 0.0, scores, scores.dtype.min)
    powers = tf.exp(scores - tf.stop_gradient(tf.reduce_max(scores, axis=1, keepdims=True)))
    mean = _weighted_mean(x, powers)
    variance = _weighted_mean(tf.square(x), powers) - tf.square(mean)
    return tf.concat([mean, tf.sqrt(tf.maximum(variance, _MIN_VARIANCE))], axis=-1)


def weights_from_torch(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of all variables, by path within the network, from Coqui's."""
    names = published_shapes()
    return {keras_name(name, names): keras_value(arrays[name]) for name in names}


def published_shapes() -> Shapes:
    """Name all tensors that the network needs, as Coqui TTS does."""
    shapes = layer_shapes("conv1", _CHANNELS[0], 1, 3, 3) | norm_shapes("bn1", _CHANNELS[0])
    for name, inputs, outputs, strided in _block_table():
        shapes |= _block_shapes(name.replace("_", "."), inputs, outputs, strided)
    shapes |= layer_shapes("attention.0", _ATTENTION, _POOLED, 1)
    shapes |= norm_shapes("attention.2", _ATTENTION)
    shapes |= layer_shapes("attention.3", _POOLED, _ATTENTION, 1)
    return shapes | layer_shapes("fc", DIM, 2 * _POOLED)


def _block_shapes(name: str, inputs: int, outputs: int, strided: bool) -> Shapes:
    squeezed = outputs // _REDUCTION
    shapes = layer_shapes(f"{name}.conv1", outputs, inputs, 3, 3, bias=False)
    shapes |= norm_shapes(f"{name}.bn1", outputs)
    shapes |= layer_shapes(f"{name}.conv2", outputs, outputs, 3, 3, bias=False)
    shapes |= norm_shapes(f"{name}.bn2", outputs)
    shapes |= layer_shapes(f"{name}.se.fc.0", squeezed, outputs)
    shapes |= layer_shapes(f"{name}.se.fc.2", outputs, squeezed)
    if strided:
        shapes |= layer_shapes(f"{name}.downsample.0", outputs, inputs, 1, 1, bias=False)
        shapes |= norm_shapes(f"{name}.downsample.1", outputs)
    return shapes


def _block_table() -> list[tuple[str, int, int, bool]]:
    """List name, channels in, channels out, and whether frames and bands are halved."""
    table, width = [], _CHANNELS[0]
    for stage, (channels, blocks) in enumerate(zip(_CHANNELS, _BLOCKS, strict=True), start=1):
        for number in range(blocks):
            strided = stage > 1 and number == 0
            table.append((f"layer{stage}_{number}", width, channels, strided))
            width = channels
    return table


def _silenced(x: tf.Tensor, lengths: tf.Tensor | None) -> tf.Tensor:
    """Zeros [batch, frames, bands, channels] behind each clip's end, as there are around it."""
    return x if lengths is None else x * _mask(x, lengths)[..., None]


def _mask(x: tf.Tensor, lengths: tf.Tensor | None) -> tf.Tensor | None:
    """Ones [batch, frames, 1] up to each length, or nothing where clips fill the batch."""
    if lengths is None:
        return None
    return sequence_mask(tf.cast(lengths, tf.int32), tf.shape(x)[1])[:, :, None]


def _weighted_mean(x: tf.Tensor, weights: tf.Tensor | None) -> tf.Tensor:
    if weights is None:
        return tf.reduce_mean(x, axis=1)
    return tf.reduce_sum(x * weights, axis=1) / tf.reduce_sum(weights, axis=1)


def _conv(channels: int, name: str, strides: int = 1, use_bias: bool = False):
    return keras.layers.Conv2D(
        channels,
        3,
        strides=strides,
        padding="same" if strides == 1 else "valid",
        use_bias=use_bias,
        dtype="float32",
        name=name,
    )


def _dense(units: int, name: str, use_bias: bool = True) -> keras.layers.Dense:
    return keras.layers.Dense(units, use_bias=use_bias, dtype="float32", name=name)


def _norm(name: str) -> keras.layers.BatchNormalization:
    return keras.layers.BatchNormalization(epsilon=1e-5, dtype="float32", name=name)
