"""ECAPA-TDNN (Desplanques et al., 2020) as SpeechBrain built it, so that its weights fit."""

from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.layers import sequence_mask, serialisable
from myxtts.models.torch_names import Shapes, keras_name, keras_value, layer_shapes, norm_shapes

BANDS, DIM = 80, 192
_CHANNELS, _POOLED = 1024, 3072
_GROUPS, _SQUEEZED, _ATTENTION = 8, 128, 128
_DILATIONS = (2, 3, 4)
_MIN_VARIANCE = 1e-12

# Counters of the training, at every batch norm.
IGNORED = ("*.num_batches_tracked",)


@serialisable
class EcapaTdnn(keras.layers.Layer):
    """Features [batch, frames, 80] -> embedding [batch, 192], not normalised; 5 frames or more.

    With `lengths` [batch] each clip of a padded batch gives what it gives alone. (SpeechBrain
    masks its statistics as here, but lets the convolutions look into the padding.)
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.first = Tdnn(_CHANNELS, kernel=5, name="blocks_0")
        self.blocks = [
            SqueezedRes2Net(dilation, name=f"blocks_{number}")
            for number, dilation in enumerate(_DILATIONS, start=1)
        ]
        self.mfa = Tdnn(_POOLED, name="mfa")
        self.asp = AttentivePooling(name="asp")
        self.asp_bn = _norm("asp_bn")
        self.fc = _dense(DIM, "fc")

    def build(self, features_shape, lengths_shape=None):
        self.first.build((None, None, BANDS))
        for block in self.blocks:
            block.build((None, None, _CHANNELS))
        self.mfa.build((None, None, len(self.blocks) * _CHANNELS))
        self.asp.build((None, None, _POOLED))
        self.asp_bn.build((None, 2 * _POOLED))
        self.fc.build((None, 2 * _POOLED))

    def call(self, features, lengths=None):
        x = self.first(features, lengths)
        outputs = []
        for block in self.blocks:
            x = block(x, lengths)
            outputs.append(x)
        pooled = self.asp(self.mfa(tf.concat(outputs, axis=-1)), lengths)
        return self.fc(self.asp_bn(pooled, training=False))


@serialisable
class Tdnn(keras.layers.Layer):
    """A convolution in time that reflects at the ends, then ReLU, then batch norm, in this order.

    The norm always goes by its running statistics, also when the network is fine-tuned.
    """

    def __init__(self, channels: int, kernel: int = 1, dilation: int = 1, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.settings = {"channels": channels, "kernel": kernel, "dilation": dilation}
        self.padding = dilation * (kernel - 1) // 2
        # A kernel of 1 is a product, which is faster as one.
        self.conv = (
            _dense(channels, "conv")
            if kernel == 1
            else keras.layers.Conv1D(
                channels, kernel, dilation_rate=dilation, dtype="float32", name="conv"
            )
        )
        self.norm = _norm("norm")

    def build(self, x_shape, lengths_shape=None):
        self.conv.build(x_shape)
        self.norm.build((*x_shape[:-1], self.settings["channels"]))

    def call(self, x, lengths=None):
        if self.padding:
            x = _reflect(x, lengths, self.padding)
        return self.norm(tf.nn.relu(self.conv(x)), training=False)

    def get_config(self):
        return {**super().get_config(), **self.settings}


@serialisable
class SqueezedRes2Net(keras.layers.Layer):
    """TDNN, Res2Net (receptive fields that grow by group), TDNN, squeeze-excitation; residual."""

    def __init__(self, dilation: int, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.dilation = dilation
        self.tdnn1 = Tdnn(_CHANNELS, name="tdnn1")
        self.res2net = Res2Net(dilation, name="res2net_block")
        self.tdnn2 = Tdnn(_CHANNELS, name="tdnn2")
        self.se = SqueezeExcitation(name="se_block")

    def build(self, x_shape, lengths_shape=None):
        for layer in (self.tdnn1, self.res2net, self.tdnn2, self.se):
            layer.build(x_shape)

    def call(self, x, lengths=None):
        return x + self.se(self.tdnn2(self.res2net(self.tdnn1(x), lengths)), lengths)

    def get_config(self):
        return {**super().get_config(), "dilation": self.dilation}


@serialisable
class Res2Net(keras.layers.Layer):
    """The first group passes; each other goes through its TDNN, from the third on with its
    predecessor's output added."""

    def __init__(self, dilation: int, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.dilation = dilation
        self.blocks = [
            Tdnn(_CHANNELS // _GROUPS, kernel=3, dilation=dilation, name=f"blocks_{number}")
            for number in range(_GROUPS - 1)
        ]

    def build(self, x_shape, lengths_shape=None):
        for block in self.blocks:
            block.build((*x_shape[:-1], _CHANNELS // _GROUPS))

    def call(self, x, lengths=None):
        groups = tf.split(x, _GROUPS, axis=-1)
        outputs = [groups[0], self.blocks[0](groups[1], lengths)]
        for group, block in zip(groups[2:], self.blocks[1:], strict=True):
            outputs.append(block(group + outputs[-1], lengths))
        return tf.concat(outputs, axis=-1)

    def get_config(self):
        return {**super().get_config(), "dilation": self.dilation}


@serialisable
class SqueezeExcitation(keras.layers.Layer):
    """Scale each channel by what the means of all channels say."""

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.conv1 = _dense(_SQUEEZED, "conv1")
        self.conv2 = _dense(_CHANNELS, "conv2")

    def build(self, x_shape, lengths_shape=None):
        self.conv1.build((None, _CHANNELS))
        self.conv2.build((None, _SQUEEZED))

    def call(self, x, lengths=None):
        mean = _mean(x, _mask(x, lengths))
        return x * tf.sigmoid(self.conv2(tf.nn.relu(self.conv1(mean))))[:, None, :]


@serialisable
class AttentivePooling(keras.layers.Layer):
    """Means and deviations over time, each channel weighing the frames by itself: [batch, 6144].

    The weights of a frame follow from it and from the whole clip's mean and deviation.
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.tdnn = Tdnn(_ATTENTION, name="tdnn")
        self.conv = _dense(_POOLED, "conv")

    def build(self, x_shape, lengths_shape=None):
        self.tdnn.build((None, None, 3 * _POOLED))
        self.conv.build((None, None, _ATTENTION))

    def call(self, x, lengths=None):
        mask = _mask(x, lengths)
        scores = self.conv(tf.tanh(self._attention(x, mask)))
        if mask is not None:
            scores = tf.where(mask > 0.0, scores, scores.dtype.min)
        # The softmax's divisor is applied to the sums: [batch, 1, 3072] and not every frame.
        powers = tf.exp(scores - tf.stop_gradient(tf.reduce_max(scores, axis=1, keepdims=True)))
        return tf.concat(_statistics(x, powers), axis=-1)

    def _attention(self, x, mask):
        """The TDNN on [x, mean, deviation], where what the clip says is multiplied only once."""
        kernel, bias = self.tdnn.conv.kernel, self.tdnn.conv.bias
        mean, deviation = _statistics(x, mask)
        clip = tf.matmul(tf.concat([mean, deviation], axis=-1), kernel[_POOLED:]) + bias
        return self.tdnn.norm(
            tf.nn.relu(tf.matmul(x, kernel[:_POOLED]) + clip[:, None, :]), training=False
        )


def weights_from_torch(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values of all variables, by path within the network, from SpeechBrain's."""
    names = {_unwrapped(name): name for name in published_shapes()}
    return {keras_name(short, names): keras_value(arrays[name]) for short, name in names.items()}


def published_shapes() -> Shapes:
    """Name all tensors that the network needs, as SpeechBrain does."""
    shapes = _tdnn_shapes("blocks.0", BANDS, _CHANNELS, 5)
    for number in range(1, 1 + len(_DILATIONS)):
        shapes |= _block_shapes(f"blocks.{number}")
    shapes |= _tdnn_shapes("mfa", len(_DILATIONS) * _CHANNELS, _POOLED)
    shapes |= _tdnn_shapes("asp.tdnn", 3 * _POOLED, _ATTENTION)
    shapes |= layer_shapes("asp.conv.conv", _POOLED, _ATTENTION, 1)
    shapes |= norm_shapes("asp_bn.norm", 2 * _POOLED)
    return shapes | layer_shapes("fc.conv", DIM, 2 * _POOLED, 1)


def _block_shapes(name: str) -> Shapes:
    shapes = _tdnn_shapes(f"{name}.tdnn1", _CHANNELS, _CHANNELS)
    for number in range(_GROUPS - 1):
        width = _CHANNELS // _GROUPS
        shapes |= _tdnn_shapes(f"{name}.res2net_block.blocks.{number}", width, width, 3)
    shapes |= _tdnn_shapes(f"{name}.tdnn2", _CHANNELS, _CHANNELS)
    shapes |= layer_shapes(f"{name}.se_block.conv1.conv", _SQUEEZED, _CHANNELS, 1)
    return shapes | layer_shapes(f"{name}.se_block.conv2.conv", _CHANNELS, _SQUEEZED, 1)


def _tdnn_shapes(name: str, inputs: int, outputs: int, kernel: int = 1) -> Shapes:
    conv = layer_shapes(f"{name}.conv.conv", outputs, inputs, kernel)
    return conv | norm_shapes(f"{name}.norm.norm", outputs)


def _unwrapped(name: str) -> str:
    """Drop SpeechBrain's wrapper: each layer is a module named `conv` or `norm` in another one."""
    parent, _, leaf = name.rpartition(".")
    return f"{parent.rpartition('.')[0]}.{leaf}"


def _reflect(x: tf.Tensor, lengths: tf.Tensor | None, padding: int) -> tf.Tensor:
    """Reflect [batch, frames, channels] at both ends: each clip at its own."""
    if lengths is None:
        return tf.pad(x, [[0, 0], [padding, padding], [0, 0]], "REFLECT")
    frames = tf.shape(x)[1]
    last = tf.cast(lengths, tf.int32)[:, None] - 1
    positions = tf.abs(tf.range(-padding, frames + padding))[None, :]
    mirrored = tf.where(positions > last, 2 * last - positions, positions)
    return tf.gather(x, tf.clip_by_value(mirrored, 0, frames - 1), batch_dims=1)


def _mask(x: tf.Tensor, lengths: tf.Tensor | None) -> tf.Tensor | None:
    """Ones [batch, frames, 1] up to each length, or nothing where clips fill the batch."""
    if lengths is None:
        return None
    return sequence_mask(tf.cast(lengths, tf.int32), tf.shape(x)[1])[:, :, None]


def _statistics(x: tf.Tensor, weights: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Weighted mean and deviation over time, [batch, channels] each."""
    mean = _mean(x, weights)
    variance = _mean(tf.math.squared_difference(x, mean[:, None, :]), weights)
    return mean, tf.sqrt(tf.maximum(variance, _MIN_VARIANCE))


def _mean(x: tf.Tensor, weights: tf.Tensor | None) -> tf.Tensor:
    if weights is None:
        return tf.reduce_mean(x, axis=1)
    return tf.reduce_sum(x * weights, axis=1) / tf.reduce_sum(weights, axis=1)


def _dense(units: int, name: str) -> keras.layers.Dense:
    return keras.layers.Dense(units, dtype="float32", name=name)


def _norm(name: str) -> keras.layers.BatchNormalization:
    return keras.layers.BatchNormalization(epsilon=1e-5, dtype="float32", name=name)
