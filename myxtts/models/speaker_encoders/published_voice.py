"""The embedding of a published speaker encoder, projected to the model's own width."""

import keras
import tensorflow as tf

from myxtts.config.audio_spec import AudioSpec
from myxtts.models.audio_encoder import unit
from myxtts.models.layers import serialisable
from myxtts.models.speaker_encoders.encoder_features import EncoderFeatures
from myxtts.models.speaker_encoders.registry import build_speaker_encoder

# How much an encoder embeds in a step, in its own frames of 10 ms: Resemblyzer's window.
WINDOW_FRAMES = 160
# How far voices are from a given one at first, of how far they are without one.
BEGINNING = 0.25


@serialisable
class PublishedVoice(keras.layers.Layer):
    """Embedding [batch, dim] of any length -> voice [batch, voice_dim], of unit mean square.

    Embeddings are scaled to unit length and centred by the mean of those trained on (`adapt`):
    speakers differ by little from what all of them have in common.
    """

    def __init__(self, kind: str, voice_dim: int, spec: AudioSpec, frozen: bool, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.kind, self.voice_dim, self.frozen = kind, voice_dim, frozen
        self.speaker_encoder = build_speaker_encoder(kind)
        self.encoder, self.dim = self.speaker_encoder.network, self.speaker_encoder.dim
        self.encoder.trainable = not frozen
        self.project = keras.layers.Dense(voice_dim, dtype="float32", name="project")
        self._features = EncoderFeatures(kind, spec)

    def build(self, embedding_shape=None):
        self.centre = self.add_weight(
            name="centre", shape=(self.dim,), initializer="zeros", trainable=False
        )
        self.project.build((None, self.dim))
        self.built = True

    def call(self, embedding):
        centred = _of_length_one(tf.ensure_shape(embedding, [None, self.dim])) - self.centre
        # Differences of unit vectors, brought to about unit scale.
        return unit(self.project(centred * self.dim**0.5))

    def embed(self, mel, lengths):
        """The embedding [batch, dim] of the middle of log-mels [batch, frames, mels]."""
        features, counts = self._features(mel, lengths)
        first = tf.maximum(counts - WINDOW_FRAMES, 0) // 2
        at = first[:, None] + tf.range(WINDOW_FRAMES)[None, :]
        window = tf.gather(features, tf.minimum(at, tf.shape(features)[1] - 1), batch_dims=1)
        counts = tf.minimum(counts, WINDOW_FRAMES)
        # What is behind a short one's end is silence, as in a window that the encoder fills up.
        is_real = (tf.range(WINDOW_FRAMES)[None, :] < counts[:, None])[:, :, None]
        return self.encoder(tf.where(is_real, window, 0.0))

    def begin_from(self, voice) -> None:
        """Make all voices nearly one [voice_dim], before the projection has learnt anything."""
        self.project.bias.assign(unit(tf.constant(voice, tf.float32)[None])[0])
        self.project.kernel.assign(BEGINNING * self.project.kernel)

    def adapt(self, embeddings) -> None:
        """Take the mean of embeddings [utterances, dim] as what speakers have in common."""
        self.centre.assign(tf.reduce_mean(_of_length_one(tf.cast(embeddings, tf.float32)), axis=0))


def _of_length_one(embedding):
    return tf.math.l2_normalize(embedding, axis=-1)
