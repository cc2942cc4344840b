"""How long, how high and how loud speech is: predicted from the text under a voice.

Lengths and loudness belong to the states of tokens. The pitch belongs to these too, or to frames.
"""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.layers import ConvBlock, LayerNorm, sequence_mask, serialisable

# Mean and scale of natural-log pitch and energy in speech: the model sees them normalised.
PITCH_CENTRE, PITCH_SCALE = 5.0, 0.35
ENERGY_CENTRE, ENERGY_SCALE = 2.0, 2.0
LOG_DURATIONS, PITCH, ENERGY = "log_durations", "pitch", "energy"
# Chance moves the pitch within .28 s, about a word, and the tempo within four tokens of two states.
_KNOTS = 1024
_PITCH_KNOTS, _LENGTH_KNOTS = 1, 2
_FRAMES_PER_KNOT, _STATES_PER_KNOT = 24, 8
# Of the variance of lengths that cannot be predicted; most of it is that of single states, by which
# their alignment jitters. All of it as tempo costs words (benchmarks/readings.py).
_TEMPO_SHARE = 0.25


def scaled_pitch(hertz: tf.Tensor) -> tf.Tensor:
    """Pitch [batch, frames] in Hz as the model sees it; 0 where there is none."""
    scaled = (tf.math.log(tf.maximum(hertz, 1.0)) - PITCH_CENTRE) / PITCH_SCALE
    return tf.where(hertz > 0, scaled, 0.0)


def scaled_energy(energy: tf.Tensor) -> tf.Tensor:
    """Energy [batch, frames] as the model sees it."""
    return (tf.math.log(energy + 0.1) - ENERGY_CENTRE) / ENERGY_SCALE


@serialisable
class ProsodyPredictor(keras.layers.Layer):
    """Encoded text [batch, tokens, dim] -> some quantities by name, each [batch, tokens]."""

    def __init__(self, dim: int, quantities: Sequence[str], **kwargs):
        super().__init__(**kwargs)
        self.dim, self.quantities = dim, tuple(quantities)
        # Without dropout: what it shifts in training, every duration would be off by afterwards.
        self.blocks = [ConvBlock(dim, 3, 0.0, name=f"block_{number}") for number in range(2)]
        self.norm = LayerNorm(name="norm")
        self.out = keras.layers.Dense(len(self.quantities), dtype="float32", name="out")

    def build(self, shape, mask_shape=None, voice_shape=None):
        for block in self.blocks:
            block.build(shape, mask_shape, voice_shape)
        self.norm.build(shape)
        self.out.build(shape)

    def call(self, x, mask, voice, training=False):
        for block in self.blocks:
            x = block(x, mask, voice, training=training)
        found = tf.unstack(self.out(self.norm(x)), axis=-1)
        return dict(zip(self.quantities, found, strict=True))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim, "quantities": list(self.quantities)}


@serialisable
class PitchContour(keras.layers.Layer):
    """The pitch of every frame and whether it has one, from what the frame has to say.

    It reads groups of `reduction` frames, as the decoder does.
    """

    def __init__(self, dim: int, reduction: int, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.reduction = dim, reduction
        self.fold = keras.layers.Dense(dim, name="fold")
        self.blocks = [ConvBlock(dim, 5, 0.1, name=f"block_{number}") for number in range(2)]
        self.norm = LayerNorm(name="norm")
        self.out = keras.layers.Dense(2 * reduction, dtype="float32", name="out")

    def build(self, frames_shape, lengths_shape=None, voice_shape=None):
        shape = (None, None, self.dim)
        self.fold.build((None, None, self.reduction * frames_shape[-1]))
        for block in self.blocks:
            block.build(shape, (None, None, 1), voice_shape)
        self.norm.build(shape)
        self.out.build(shape)

    def call(self, frames, lengths, voice, training=False):
        """Scaled pitch and the logits of being voiced [batch, frames], in whole groups."""
        batch, size = tf.shape(frames)[0], tf.shape(frames)[1]
        groups = size // self.reduction
        x = self.fold(tf.reshape(frames, [batch, groups, self.reduction * frames.shape[-1]]))
        mask = sequence_mask(-(-lengths // self.reduction), groups)[:, :, None]
        for block in self.blocks:
            x = block(x, mask, voice, training=training)
        pitch, voicing = tf.split(self.out(self.norm(x)), 2, axis=-1)
        return tf.reshape(pitch, [batch, size]), tf.reshape(voicing, [batch, size])

    def get_config(self):
        return {**super().get_config(), "dim": self.dim, "reduction": self.reduction}


@serialisable
class Calibration(keras.layers.Layer):
    """Two factors that bring what is predicted for new texts to the scale of recordings.

    A predicted pitch is a median and too near to the mean, and a length that is right in its
    logarithm is too short. Both factors are 1 in training. They are measured on held-out
    utterances when a voice is exported.
    """

    def build(self, shape=None):
        self.pitch_range, self.length = (
            self.add_weight(
                name=name, shape=(), initializer="ones", trainable=False, dtype="float32"
            )
            for name in ("pitch_range", "length")
        )
        self.built = True

    def widened(self, pitch, voiced):
        """Pitch [batch, frames] further from the mean of each row's own frames, as voiced as they
        are, from 0 to 1."""
        mean, _ = _mean_and_spread(pitch, voiced)
        return mean + self.pitch_range * (pitch - mean)

    def varied(self, pitch, voiced, chance: "Chance"):
        """`widened`, in part by chance: what the predicted pitch lacks is what it cannot know.

        The spread stays that of recordings up to a temperature of 1.
        """
        mean, spread = _mean_and_spread(pitch, voiced)
        lost = tf.maximum(tf.square(self.pitch_range) - 1.0, 0.0)
        kept = tf.sqrt(tf.maximum(1.0 + lost * (1.0 - tf.square(chance.temperature)), 1.0))
        noise = chance.noise(_PITCH_KNOTS, tf.shape(pitch)[1], _FRAMES_PER_KNOT)
        return mean + kept * (pitch - mean) + chance.temperature * tf.sqrt(lost) * spread * noise

    def varied_lengths(self, log_durations, chance: "Chance"):
        """Logarithmic lengths [batch, states], `length` included, in part by chance.

        The mean of a log-normal length is above the exponential of its logarithm's mean by half the
        variance of that, which therefore follows from the factor. The mean length stays.
        """
        factor = tf.math.log(self.length)
        lost = 2.0 * tf.maximum(factor, 0.0)
        variance = _TEMPO_SHARE * lost * tf.square(chance.temperature)
        noise = chance.noise(_LENGTH_KNOTS, tf.shape(log_durations)[1], _STATES_PER_KNOT)
        return log_durations + factor - 0.5 * variance + tf.sqrt(variance) * noise


class Chance:
    """How one reading of sentences differs from another, by a seed and a temperature.

    The noise of a sentence depends on these and on its tokens [batch, tokens] alone: it sounds the
    same in any batch, and unlike the sentence before it.
    """

    def __init__(self, tokens, seed, temperature):
        self.temperature, self._seed = temperature, seed
        place = 1 + tf.range(tf.shape(tokens)[1]) % 61  # padding is 0 and adds nothing
        self._start = tf.reduce_sum(tokens * place, axis=1) % _KNOTS

    def noise(self, key: int, size, per_knot: int):
        """Smooth standard normal numbers [batch, size], with a knot every so many places."""
        knots = tf.gather(_normal_numbers(), self._walk(key))
        at = tf.range(size)
        knot = (self._start[:, None] + (at // per_knot)[None, :]) % _KNOTS
        # Two knots are mixed at a constant power.
        share = tf.cast(at % per_knot, tf.float32) * (0.5 * np.pi / per_knot)
        following = tf.gather(knots, (knot + 1) % _KNOTS)
        return tf.cos(share) * tf.gather(knots, knot) + tf.sin(share) * following

    def _walk(self, key: int):
        """All places [knots] of a table in the order of a seed, in steps of one length.

        TensorFlow's own generators take a thousand operations in a graph that is exported.
        """
        half = _KNOTS // 2
        step = 2 * (421 * (self._seed % half) % half) + 1  # odd, and another one for each seed
        begin = 617 * (self._seed // half % _KNOTS) + 331 * key
        return (begin + step * tf.range(_KNOTS)) % _KNOTS


@serialisable
class TokenStates(keras.layers.Layer):
    """Encoded tokens [batch, tokens, dim] cut into states [batch, count x tokens, dim].

    A sound is not the same from its beginning to its end: each state has a mean, a length and a
    loudness of its own, as the states of an HMM do.
    """

    def __init__(self, dim: int, count: int, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.count = dim, count
        self.project = keras.layers.Dense(count * dim, name="project")

    def build(self, shape):
        self.project.build(shape)

    def call(self, x):
        batch, tokens = tf.shape(x)[0], tf.shape(x)[1]
        states = tf.reshape(self.project(x), [batch, tokens * self.count, self.dim])
        return tf.repeat(x, self.count, axis=1) + states

    def get_config(self):
        return {**super().get_config(), "dim": self.dim, "count": self.count}


@serialisable
class ProsodyEmbedding(keras.layers.Layer):
    """Quantities of tokens [batch, tokens, quantities] as something to add to their vectors."""

    def __init__(self, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.project = keras.layers.Dense(dim, name="project")

    def build(self, shape):
        self.project.build(shape)

    def call(self, quantities):
        return self.project(quantities)

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}


def _normal_numbers() -> np.ndarray:
    """A table [knots] of mean 0 and variance 1."""
    drawn = np.random.default_rng(0).standard_normal(_KNOTS)
    return ((drawn - drawn.mean()) / drawn.std()).astype(np.float32)


def _mean_and_spread(values, weights):
    """The mean and the standard deviation [batch, 1] of weighted rows."""
    weights = tf.cast(weights, tf.float32)
    count = tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)
    mean = tf.reduce_sum(values * weights, axis=1, keepdims=True) / count
    squares = tf.reduce_sum(tf.square(values - mean) * weights, axis=1, keepdims=True)
    return mean, tf.sqrt(squares / count)
