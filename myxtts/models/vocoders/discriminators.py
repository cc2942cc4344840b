"""HiFi-GAN's discriminators (Kong et al., 2020): is a waveform real, by periods and by scales.

Each judges [batch, samples] as several would: a list with, of each, scores [batch, n] and the
outputs of all its layers.
"""

import keras
import tensorflow as tf

from myxtts.models.layers import serialisable
from myxtts.models.weight_norm import SpectralNormConv1D, WeightNormConv1D, WeightNormConv2D

Judgement = tuple[tf.Tensor, list[tf.Tensor]]

PERIODS = (2, 3, 5, 7, 11)
_SLOPE = 0.1
# Channels and stride.
_PERIOD_LAYERS = ((32, 3), (128, 3), (512, 3), (1024, 3), (1024, 1))
# Channels, kernel, stride and groups.
_SCALE_LAYERS = (
    (128, 15, 1, 1),
    (128, 41, 2, 4),
    (256, 41, 2, 16),
    (512, 41, 4, 16),
    (1024, 41, 4, 16),
    (1024, 41, 1, 16),
    (1024, 5, 1, 1),
)
_NUM_SCALES = 3


@serialisable
class MultiPeriodDiscriminator(keras.Model):
    """Each part sees every so many-th sample; `width` divides the published numbers of channels."""

    def __init__(self, width: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.parts = [
            PeriodDiscriminator(period, width, name=f"period_{period}") for period in PERIODS
        ]

    def build(self, waveform_shape):
        for part in self.parts:
            part.build(waveform_shape)

    def call(self, waveform) -> list[Judgement]:
        return [part(waveform) for part in self.parts]

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@serialisable
class MultiScaleDiscriminator(keras.Model):
    """Each part sees the samples at half the rate; `width` divides the published channels.

    The first has spectral normalisation, the others have weight normalisation.
    """

    def __init__(self, width: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.parts = [
            ScaleDiscriminator(width, spectral_norm=i == 0, name=f"scale_{i}")
            for i in range(_NUM_SCALES)
        ]

    def build(self, waveform_shape):
        for part in self.parts:
            part.build(waveform_shape)

    def call(self, waveform, training=False) -> list[Judgement]:
        judgements = []
        for part in self.parts:
            if judgements:
                waveform = _halved(waveform)
            judgements.append(part(waveform, training=training))
        return judgements

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@serialisable
class PeriodDiscriminator(keras.layers.Layer):
    """Samples a period apart, side by side: convolutions along time, each phase by itself."""

    def __init__(self, period: int, width: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.period, self.width = period, width
        self.convs = [
            WeightNormConv2D(_narrowed(channels, width), (5, 1), (stride, 1), name=f"convs_{i}")
            for i, (channels, stride) in enumerate(_PERIOD_LAYERS)
        ]
        self.conv_post = WeightNormConv2D(1, (3, 1), dtype="float32", name="conv_post")

    def build(self, waveform_shape):
        _build_in_turn([*self.convs, self.conv_post], (None, None, self.period))

    def call(self, waveform) -> Judgement:
        missing = -tf.shape(waveform)[1] % self.period
        x = tf.pad(waveform, [[0, 0], [0, missing]], "REFLECT")
        x = tf.reshape(x, [tf.shape(x)[0], -1, self.period, 1])
        return _judgement(x, self.convs, self.conv_post)

    def get_config(self):
        return {**super().get_config(), "period": self.period, "width": self.width}


@serialisable
class ScaleDiscriminator(keras.layers.Layer):
    """Long convolutions of many groups along time."""

    def __init__(self, width: int = 1, spectral_norm: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.width, self.spectral_norm = width, spectral_norm
        conv = SpectralNormConv1D if spectral_norm else WeightNormConv1D
        self.convs = []
        inputs = 1
        for i, (channels, kernel, stride, groups) in enumerate(_SCALE_LAYERS):
            channels, groups = _narrowed(channels, width), min(groups, inputs)
            layer = conv(channels, kernel, stride=stride, groups=groups, name=f"convs_{i}")
            self.convs.append(layer)
            inputs = channels
        self.conv_post = conv(1, 3, dtype="float32", name="conv_post")

    def build(self, waveform_shape):
        _build_in_turn([*self.convs, self.conv_post], (None, None))

    def call(self, waveform, training=False) -> Judgement:
        options = {"training": training} if self.spectral_norm else {}
        return _judgement(waveform[:, :, None], self.convs, self.conv_post, **options)

    def get_config(self):
        own = {"width": self.width, "spectral_norm": self.spectral_norm}
        return {**super().get_config(), **own}


def _judgement(x, convs, conv_post, **options) -> Judgement:
    maps = []
    for conv in convs:
        x = tf.nn.leaky_relu(conv(x, **options), _SLOPE)
        maps.append(x)
    maps.append(conv_post(x, **options))
    return tf.reshape(maps[-1], [tf.shape(x)[0], -1]), maps


def _build_in_turn(convs, shape) -> None:
    """Build layers on inputs [*shape, channels], of which the first has one channel."""
    channels = 1
    for conv in convs:
        conv.build((*shape, channels))
        channels = conv.channels


def _halved(waveform):
    """Means of four samples at every second one, zeros beyond the ends."""
    padded = tf.pad(waveform, [[0, 0], [2, 2]])[:, :, None]
    return tf.nn.avg_pool1d(padded, 4, 2, "VALID")[:, :, 0]


def _narrowed(channels: int, width: int) -> int:
    if channels % width:
        raise ValueError(f"a width of {width} does not divide {channels} channels")
    return channels // width
