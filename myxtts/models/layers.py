"""Building blocks that the encoders, the predictors and the decoders share."""

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.convolutions import Convolution

NORM_EPSILON = 1e-5

serialisable = keras.saving.register_keras_serializable(package="myxtts")


def sequence_mask(lengths: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Ones [batch, size] up to each length, zeros behind it."""
    return tf.cast(tf.range(size)[None, :] < lengths[:, None], tf.float32)


def positions(size: tf.Tensor, dim: int) -> tf.Tensor:
    """Sinusoidal positions [size, dim]."""
    rates = np.exp(-np.log(10_000.0) * np.arange(0, dim, 2) / dim).astype(np.float32)
    angles = tf.cast(tf.range(size), tf.float32)[:, None] * rates
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)[:, :dim]


@serialisable
class Modulation(keras.layers.Layer):
    """Layer normalisation whose scale and shift follow a voice; at first it ignores the voice."""

    def __init__(self, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.norm = LayerNorm(name="norm")
        self.voice = keras.layers.Dense(2 * dim, kernel_initializer="zeros", name="voice")

    def build(self, shape, voice_shape):
        self.norm.build(shape)
        self.voice.build(voice_shape)

    def call(self, x, voice):
        scale, shift = tf.split(self.voice(voice)[:, None, :], 2, axis=-1)
        # The layer's own scale and shift are joined with the voice's before they meet all of x.
        gamma, beta = (tf.cast(w, scale.dtype) for w in (self.norm.gamma, self.norm.beta))
        scale, shift = gamma * (1.0 + scale), beta * (1.0 + scale) + shift
        return normalised(x) * scale + shift

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}


@serialisable
class LayerNorm(keras.layers.LayerNormalization):
    """Layer normalisation over the last axis, in fewer passes over the data than Keras's."""

    def __init__(self, epsilon: float = NORM_EPSILON, **kwargs):
        super().__init__(epsilon=epsilon, **kwargs)

    def call(self, x):
        return normalised(x) * tf.cast(self.gamma, x.dtype) + tf.cast(self.beta, x.dtype)


def normalised(x: tf.Tensor) -> tf.Tensor:
    """Rows [..., dim] brought to mean 0 and variance 1, computed in float32."""
    return tf.cast(_normalised(tf.cast(x, tf.float32)), x.dtype)


@tf.custom_gradient
def gelu(x: tf.Tensor):
    """x times the share of a normal distribution below it, and its gradient in few passes."""
    share = 0.5 * tf.math.erfc(-(0.5**0.5) * x)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        density = (2.0 * np.pi) ** -0.5 * tf.exp(-0.5 * tf.square(x))
        return upstream * (share + x * density)

    return x * share, gradient


@tf.custom_gradient
def _normalised(x: tf.Tensor):
    """`normalised` in float32, and its gradient in as few passes as it takes."""
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(variance + NORM_EPSILON)
    y = centred * inverse

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        mean = tf.reduce_mean(upstream, axis=-1, keepdims=True)
        along = tf.reduce_mean(upstream * y, axis=-1, keepdims=True)
        return (upstream - (mean + y * along)) * inverse

    return y, gradient


@serialisable
class ConvBlock(keras.layers.Layer):
    """A residual convolution under a voice: [batch, time, dim] -> the same."""

    def __init__(
        self, dim: int, kernel: int = 5, dropout: float = 0.1, causal: bool = False, **kwargs
    ):
        super().__init__(**kwargs)
        self.dim, self.kernel, self.dropout, self.causal = dim, kernel, dropout, causal
        self.modulation = Modulation(dim, name="modulation")
        padding = "causal" if causal else "same"
        self.conv = Convolution(dim, kernel, padding=padding, name="conv")
        self.drop = keras.layers.Dropout(dropout, name="drop")

    def build(self, shape, mask_shape=None, voice_shape=None):
        self.modulation.build(shape, voice_shape)
        self.conv.build(shape)

    def call(self, x, mask, voice, training=False):
        """The block over whole sequences; `mask` [batch, time, 1] silences the padding."""
        h = gelu(self.modulation(x, voice)) * tf.cast(mask, x.dtype)
        return x + self.drop(self.conv(h), training=training)

    def step(self, x, cache, voice):
        """One more moment [batch, 1, dim] of a causal block, given the `kernel - 1` before it."""
        h = tf.concat([cache, gelu(self.modulation(x, voice))], axis=1)
        window = tf.reshape(h, [tf.shape(x)[0], self.kernel * self.dim])
        kernel, bias = (tf.cast(w, x.dtype) for w in (self.conv.kernel, self.conv.bias))
        said = tf.matmul(window, tf.reshape(kernel, [self.kernel * self.dim, self.dim])) + bias
        return x + said[:, None, :], h[:, 1:]

    def get_config(self):
        own = {name: getattr(self, name) for name in ("dim", "kernel", "dropout", "causal")}
        return {**super().get_config(), **own}


@serialisable
class AttentionBlock(keras.layers.Layer):
    """Residual self-attention under a voice: [batch, time, dim] -> the same."""

    def __init__(self, dim: int, heads: int, dropout: float = 0.1, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.heads, self.dropout = dim, heads, dropout
        self.modulation = Modulation(dim, name="modulation")
        self.attention = keras.layers.MultiHeadAttention(
            heads,
            dim // heads,
            dropout=dropout,
            use_bias=False,  # a bias of the keys shifts all scores alike: it could never learn
            flash_attention=False,
            name="attention",
        )
        self.drop = keras.layers.Dropout(dropout, name="drop")

    def build(self, shape, mask_shape=None, voice_shape=None):
        self.modulation.build(shape, voice_shape)
        self.attention.build(shape, shape)

    def call(self, x, mask, voice, training=False):
        h = self.modulation(x, voice)
        # True where a key may be looked at: the texts' own tokens, never the padding.
        allowed = tf.cast(mask[:, :, 0], tf.bool)[:, None, :]
        return x + self.drop(
            self.attention(h, h, attention_mask=allowed, training=training), training=training
        )

    def get_config(self):
        own = {name: getattr(self, name) for name in ("dim", "heads", "dropout")}
        return {**super().get_config(), **own}
