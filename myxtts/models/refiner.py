"""A flow-matching refiner: it adds the detail that the decoder's mel, an average, has not.

What it models is the residual: the true mel minus the coarse one, on a scale of about 1. A straight
path leads from noise at time 0 to the residual at time 1, and the refiner learns the velocity along
it (conditional flow matching). Speaking starts at noise around the coarse mel and follows the
learned velocity for a few steps of the midpoint rule. No gradient passes from here to the rest of
the model: without steps, the voice is that of the decoder.
"""

import math

import keras
import tensorflow as tf

from myxtts.models.decoder import MEL_SCALE, scaled_mel
from myxtts.models.layers import ConvBlock, LayerNorm, sequence_mask, serialisable
from myxtts.models.segments import DRAWS, Segments

# About the standard deviation of the residual of a trained decoder, in natural-log units.
RESIDUAL_SCALE = 0.25 * MEL_SCALE
TIME_FEATURES = 32
KERNEL = 5
MOST_STEPS = 64


@serialisable
class Refiner(keras.layers.Layer):
    """Velocities of residuals [batch, frames, mels], given coarse mel, text, voice and time."""

    def __init__(self, dim: int, num_layers: int, reduction: int, n_mels: int, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.num_layers = dim, num_layers
        self.reduction, self.n_mels = reduction, n_mels
        self.fold = keras.layers.Dense(dim, name="fold")
        self.blocks = [
            ConvBlock(dim, KERNEL, 0.0, name=f"block_{number}") for number in range(num_layers)
        ]
        self.norm = LayerNorm(name="norm")
        self.head = keras.layers.Dense(
            reduction * n_mels, kernel_initializer="zeros", dtype="float32", name="head"
        )

    def build(self, frames_shape, voice_shape=None):
        width = self.reduction * (frames_shape[-1] + 2 * self.n_mels)
        shape = (None, None, self.dim)
        self.fold.build((None, None, width))
        for block in self.blocks:
            block.build(shape, (None, None, 1), (None, voice_shape[-1] + TIME_FEATURES))
        self.norm.build(shape)
        self.head.build(shape)

    def call(self, residual, time, coarse, frames, lengths, voice, training=False):
        """The velocity [batch, frames, mels] of a residual at a time [batch] of its path.

        `frames` [batch, frames, width] is what the decoder read, `coarse` the mel that it made of
        it; the number of frames is a multiple of the reduction.
        """
        x = tf.concat(
            [tf.cast(part, self.compute_dtype) for part in (residual, scaled_mel(coarse), frames)],
            axis=-1,
        )
        batch, size = tf.shape(x)[0], tf.shape(x)[1]
        groups = size // self.reduction
        x = self.fold(tf.reshape(x, [batch, groups, self.reduction * x.shape[-1]]))
        mask = sequence_mask(-(-lengths // self.reduction), groups)[:, :, None]
        condition = tf.concat([tf.cast(voice, tf.float32), time_features(time)], axis=-1)
        for block in self.blocks:
            x = block(x, mask, tf.cast(condition, self.compute_dtype), training=training)
        return tf.reshape(self.head(self.norm(x)), [batch, size, self.n_mels])

    def matched(self, mel, coarse, frames, lengths, voice, key, training=False):
        """What the flow-matching loss compares, of random segments at random times.

        Returns flow and flow_target [draws x batch, segment, mels], each segment with its own noise
        and time. `segment_lengths` says how many frames of each are real.
        """
        inputs = mel, coarse, frames, voice
        mel, coarse, frames, voice = (tf.stop_gradient(tf.cast(x, tf.float32)) for x in inputs)
        repeated = tf.tile(lengths, [DRAWS])
        size = tf.shape(repeated)[0]
        chance = tf.random.stateless_uniform([2, size], key)
        # Times are spread evenly over the batch, so that every step sees all of the path.
        time = (tf.range(size, dtype=tf.float32) + chance[0]) / tf.cast(size, tf.float32)
        cut = Segments(repeated, chance[1], self.reduction, tf.shape(coarse)[1])
        mel, coarse, frames = (cut.of(x) for x in (mel, coarse, frames))
        residual = (mel - coarse) / RESIDUAL_SCALE
        noise = tf.random.stateless_normal(tf.shape(residual), key + 1)
        at = time[:, None, None]
        moved = (1.0 - at) * noise + at * residual
        voices = tf.tile(voice, [DRAWS, 1])
        flow = self(moved, time, coarse, frames, cut.lengths, voices, training=training)
        return {"flow": flow, "flow_target": residual - noise}

    def refine(self, coarse, frames, lengths, voice, key, temperature, steps):
        """Coarse mels [batch, frames, mels] with detail, by so many steps of the midpoint rule.

        The noise of a frame depends on the key and on its place alone, so a sentence sounds the
        same whatever else is in its batch.
        """
        noise = tf.random.stateless_normal([tf.shape(coarse)[1], self.n_mels], key)
        residual = tf.tile(temperature * noise[None], [tf.shape(coarse)[0], 1, 1])
        length = 1.0 / tf.cast(tf.maximum(steps, 1), tf.float32)

        def velocity(moved, time):
            times = tf.fill([tf.shape(coarse)[0]], time)
            return self(moved, times, coarse, frames, lengths, voice)

        def step(number, moved):
            time = tf.cast(number, tf.float32) * length
            middle = moved + 0.5 * length * velocity(moved, time)
            return number + 1, moved + length * velocity(middle, time + 0.5 * length)

        _, residual = tf.while_loop(
            lambda number, _: number < steps, step, (0, residual), maximum_iterations=MOST_STEPS
        )
        return tf.where(steps > 0, coarse + RESIDUAL_SCALE * residual, coarse)

    def get_config(self):
        names = ("dim", "num_layers", "reduction", "n_mels")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def time_features(time):
    """Sines and cosines of a time [batch] between 0 and 1: [batch, TIME_FEATURES]."""
    half = TIME_FEATURES // 2
    rates = tf.exp(tf.linspace(0.0, math.log(1000.0), half))
    angles = time[:, None] * rates[None, :]
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
