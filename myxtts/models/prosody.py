"""How long, how high and how loud each token is: predicted from the text under a voice."""

import keras
import tensorflow as tf

from myxtts.models.layers import ConvBlock, serialisable

# Mean and scale of natural-log pitch and energy in speech: the model sees them normalised.
PITCH_CENTRE, PITCH_SCALE = 5.0, 0.35
ENERGY_CENTRE, ENERGY_SCALE = 2.0, 2.0
QUANTITIES = ("log_durations", "pitch", "energy")


def scaled_pitch(hertz: tf.Tensor) -> tf.Tensor:
    """Pitch [batch, frames] in Hz as the model sees it; 0 where there is none."""
    scaled = (tf.math.log(tf.maximum(hertz, 1.0)) - PITCH_CENTRE) / PITCH_SCALE
    return tf.where(hertz > 0, scaled, 0.0)


def scaled_energy(energy: tf.Tensor) -> tf.Tensor:
    """Energy [batch, frames] as the model sees it."""
    return (tf.math.log(energy + 0.1) - ENERGY_CENTRE) / ENERGY_SCALE


@serialisable
class ProsodyPredictor(keras.layers.Layer):
    """Encoded text [batch, tokens, dim] -> log-duration, pitch and energy, each [batch, tokens]."""

    def __init__(self, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        # Without dropout: what it shifts in training, every duration would be off by afterwards.
        self.blocks = [ConvBlock(dim, 3, 0.0, name=f"block_{number}") for number in range(2)]
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, name="norm")
        self.out = keras.layers.Dense(len(QUANTITIES), dtype="float32", name="out")

    def build(self, shape, mask_shape=None, voice_shape=None):
        for block in self.blocks:
            block.build(shape, mask_shape, voice_shape)
        self.norm.build(shape)
        self.out.build(shape)

    def call(self, x, mask, voice, training=False):
        for block in self.blocks:
            x = block(x, mask, voice, training=training)
        return dict(zip(QUANTITIES, tf.unstack(self.out(self.norm(x)), axis=-1), strict=True))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}


@serialisable
class ProsodyEmbedding(keras.layers.Layer):
    """Pitch and energy of tokens as something to add to their vectors."""

    def __init__(self, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.project = keras.layers.Dense(dim, name="project")

    def build(self, pitch_shape, energy_shape=None):
        self.project.build((None, None, 2))

    def call(self, pitch, energy):
        return self.project(tf.stack([pitch, energy], axis=-1))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}
