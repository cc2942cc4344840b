"""Tokens to vectors: convolutions and self-attention, under a language and a voice."""

import keras
import tensorflow as tf

from myxtts.models.layers import AttentionBlock, ConvBlock, LayerNorm, positions, serialisable


@serialisable
class TextEncoder(keras.layers.Layer):
    """Token ids [batch, tokens] -> [batch, tokens, dim]."""

    def __init__(
        self,
        vocab_size: int,
        num_languages: int,
        dim: int,
        conv_layers: int,
        attention_layers: int,
        heads: int,
        dropout: float,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
            "vocab_size": vocab_size,
            "num_languages": num_languages,
            "dim": dim,
            "conv_layers": conv_layers,
            "attention_layers": attention_layers,
            "heads": heads,
            "dropout": dropout,
        }
        self.dim = dim
        self.tokens = keras.layers.Embedding(vocab_size, dim, name="tokens")
        self.language = keras.layers.Embedding(num_languages, dim, name="language")
        self.blocks = [
            ConvBlock(dim, 5, dropout, name=f"conv_{number}") for number in range(conv_layers)
        ] + [
            block
            for number in range(attention_layers)
            for block in (
                AttentionBlock(dim, heads, dropout, name=f"attention_{number}"),
                ConvBlock(dim, 3, dropout, name=f"mix_{number}"),
            )
        ]
        self.norm = LayerNorm(name="norm")

    def build(self, tokens_shape, mask_shape=None, language_shape=None, voice_shape=None):
        shape = (None, None, self.dim)
        self.tokens.build(tokens_shape)
        self.language.build(language_shape)
        for block in self.blocks:
            block.build(shape, (None, None, 1), voice_shape)
        self.norm.build(shape)

    def call(self, tokens, mask, language, voice, training=False):
        x = self.tokens(tokens) + self.language(language)[:, None, :]
        # Embeddings start small: positions on the same scale do not drown them.
        x += tf.cast(0.05 * positions(tf.shape(tokens)[1], self.dim), x.dtype)
        for block in self.blocks:
            x = block(x, mask, voice, training=training)
        return self.norm(x)

    def get_config(self):
        return {**super().get_config(), **self.settings}
