"""Global style tokens: a style as a mixture of a few learnt tokens."""

import keras
import tensorflow as tf

from myxtts.models.layers import serialisable


@serialisable
class StyleTokens(keras.layers.Layer):
    """Attention from a voice [batch, voice_dim] to the tokens (Wang et al., 2018).

    Returns the style [batch, style_dim] and the weights of the tokens [batch, heads, num_tokens].
    It works in float32 whatever the precision policy: it is tiny, and its softmax decides much.
    """

    def __init__(self, num_tokens: int, token_dim: int, style_dim: int, heads: int, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.settings = {
            "num_tokens": num_tokens,
            "token_dim": token_dim,
            "style_dim": style_dim,
            "heads": heads,
        }
        # Without biases: that of the keys would shift all weights alike and never learn.
        self.query, self.key, self.value = (
            keras.layers.Dense(style_dim, use_bias=False, dtype="float32", name=name)
            for name in ("query", "key", "value")
        )

    def build(self, voice_shape):
        shape = (self.settings["num_tokens"], self.settings["token_dim"])
        start = keras.initializers.RandomNormal(stddev=0.5)
        self.tokens = self.add_weight(name="tokens", shape=shape, initializer=start)
        self.query.build(voice_shape)
        self.key.build(shape)
        self.value.build(shape)

    def call(self, voice):
        tokens = tf.tanh(self.tokens)
        queries = self._by_head(self.query(voice))
        keys, values = self._by_head(self.key(tokens)), self._by_head(self.value(tokens))
        scores = tf.einsum("bhd,nhd->bhn", queries, keys) / queries.shape[-1] ** 0.5
        weights = tf.nn.softmax(scores)
        style = tf.einsum("bhn,nhd->bhd", weights, values)
        return tf.reshape(style, [-1, self.settings["style_dim"]]), weights

    def from_weights(self, weights):
        """Return the style [batch, style_dim] mixed by given weights [batch, num_tokens]."""
        return tf.matmul(tf.cast(weights, tf.float32), self.value(tf.tanh(self.tokens)))

    def _by_head(self, x):
        """Cut [rows, style_dim] into [rows, heads, style_dim / heads]."""
        heads, style_dim = self.settings["heads"], self.settings["style_dim"]
        return tf.reshape(x, [-1, heads, style_dim // heads])

    def get_config(self):
        return {**super().get_config(), **self.settings}
