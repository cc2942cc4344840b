"""Aligned text to mel: two decoders behind one interface.

A decoder is called with `frames` [batch, frames, dim] (what each frame has to say, a multiple of
`reduction` frames), `lengths` [batch], `voice` [batch, voice_dim], and in training with the true
`mel`; it returns `mel` [batch, frames, mels] and `stop` [batch, frames // reduction], the logits of
speech having ended by then. `generate` does the same without a true mel.
"""

import keras
import tensorflow as tf

from myxtts.models.layers import ConvBlock, LayerNorm, sequence_mask, serialisable

# The mean and scale of log-mels: the decoders' outputs start there.
MEL_CENTRE, MEL_SCALE = -5.5, 2.5
KERNEL = 5


def scaled_mel(mel: tf.Tensor) -> tf.Tensor:
    """Log-mels centred and of about unit scale, as the model's layers see them."""
    return (mel - MEL_CENTRE) / MEL_SCALE


def natural_mel(scaled: tf.Tensor) -> tf.Tensor:
    """The log-mels behind scaled ones."""
    return scaled * MEL_SCALE + MEL_CENTRE


def build_decoder(strategy: str, **settings) -> keras.layers.Layer:
    """The decoder of a name."""
    return DECODERS[strategy](name="decoder", **settings)


class Decoder(keras.layers.Layer):
    """What both decoders have: blocks over groups of frames, and heads for mel and stop."""

    causal = False

    def __init__(
        self, dim: int, num_layers: int, reduction: int, n_mels: int, dropout: float, **kwargs
    ):
        super().__init__(**kwargs)
        self.dim, self.num_layers, self.reduction = dim, num_layers, reduction
        self.n_mels, self.dropout = n_mels, dropout
        self.fold = keras.layers.Dense(dim, name="fold")
        self.blocks = [
            ConvBlock(dim, KERNEL, dropout, self.causal, name=f"block_{number}")
            for number in range(num_layers)
        ]
        self.norm = LayerNorm(name="norm")
        self.mel_head = keras.layers.Dense(reduction * n_mels, dtype="float32", name="mel")
        self.stop_head = keras.layers.Dense(1, dtype="float32", name="stop")

    def build(self, frames_shape, lengths_shape=None, voice_shape=None, mel_shape=None):
        shape = (None, None, self.dim)
        self.fold.build((None, None, self.fold_width(frames_shape[-1])))
        for block in self.blocks:
            block.build(shape, (None, None, 1), voice_shape)
        for layer in (self.norm, self.mel_head, self.stop_head):
            layer.build(shape)

    def fold_width(self, frame_width: int) -> int:
        """How many numbers a group is read from."""
        return self.reduction * frame_width

    def fold_frames(self, frames):
        """Neighbouring frames side by side: [batch, groups, reduction x width]."""
        batch, size = tf.shape(frames)[0], tf.shape(frames)[1]
        return tf.reshape(
            frames, [batch, size // self.reduction, self.reduction * frames.shape[-1]]
        )

    def group_mask(self, lengths, groups):
        ends = -(-lengths // self.reduction)
        return sequence_mask(ends, groups)[:, :, None]

    def say(self, x, lengths, voice, training):
        """All groups [batch, groups, dim] at once through the blocks and the heads."""
        mask = self.group_mask(lengths, tf.shape(x)[1])
        for block in self.blocks:
            x = block(x, mask, voice, training=training)
        mel, stop = self.heads(x)
        return {"mel": self.unfold(mel), "stop": stop}

    def heads(self, x):
        """Scaled mel [batch, groups, reduction x mels] and stop logits [batch, groups]."""
        x = self.norm(x)
        return self.mel_head(x), self.stop_head(x)[:, :, 0]

    def unfold(self, mel):
        """Groups of scaled mel as frames of natural mel."""
        batch, groups = tf.shape(mel)[0], tf.shape(mel)[1]
        return natural_mel(tf.reshape(mel, [batch, groups * self.reduction, self.n_mels]))

    def get_config(self):
        names = ("dim", "num_layers", "reduction", "n_mels", "dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@serialisable
class ParallelDecoder(Decoder):
    """All frames at once."""

    def call(self, frames, lengths, voice, mel=None, training=False):
        return self.say(self.fold(self.fold_frames(frames)), lengths, voice, training)

    def generate(self, frames, lengths, voice):
        return self(frames, lengths, voice)


@serialisable
class AutoregressiveDecoder(Decoder):
    """A group of frames at a time, each from the text aligned with it and the group before."""

    causal = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.prenet = [
            keras.layers.Dense(self.dim // 2, activation="relu", name=f"prenet_{number}")
            for number in range(2)
        ]
        # Half of its previous output is hidden, so that it learns to read and not to copy.
        self.forget = keras.layers.Dropout(0.5, name="forget")

    def build(self, frames_shape, lengths_shape=None, voice_shape=None, mel_shape=None):
        super().build(frames_shape, lengths_shape, voice_shape, mel_shape)
        width = self.reduction * self.n_mels
        for layer in self.prenet:
            layer.build((None, None, width))
            width = self.dim // 2

    def fold_width(self, frame_width: int) -> int:
        return super().fold_width(frame_width) + self.dim // 2

    def call(self, frames, lengths, voice, mel=None, training=False):
        """Teacher-forced where the true `mel` is given; on its own output otherwise."""
        if mel is None:
            return self.generate(frames, lengths, voice)
        groups = self.fold_frames(tf.cast(scaled_mel(mel), self.compute_dtype))
        before = tf.pad(groups[:, :-1], [[0, 0], [1, 0], [0, 0]])
        x = self._read(self.fold_frames(frames), before, training)
        return self.say(x, lengths, voice, training)

    def generate(self, frames, lengths, voice):
        text = tf.cast(self.fold_frames(frames), self.compute_dtype)
        batch, groups = tf.shape(text)[0], tf.shape(text)[1]
        width = self.reduction * self.n_mels
        dtype = self.compute_dtype
        caches = [tf.zeros([batch, KERNEL - 1, self.dim], dtype) for _ in self.blocks]
        said = tf.TensorArray(tf.float32, groups, element_shape=[None, width])
        stops = tf.TensorArray(tf.float32, groups, element_shape=[None])
        moment = tf.zeros([batch, 1, width], dtype)

        def say(at, moment, caches, said, stops):
            x = self._read(text[:, at : at + 1], moment, False)
            fresh = []
            for block, cache in zip(self.blocks, caches, strict=True):
                x, cache = block.step(x, cache, voice)
                fresh.append(cache)
            mel, stop = self.heads(x)
            said, stops = said.write(at, mel[:, 0]), stops.write(at, stop[:, 0])
            return at + 1, tf.cast(mel, dtype), fresh, said, stops

        state = (0, moment, caches, said, stops)
        *_, said, stops = tf.while_loop(
            lambda at, *_: at < groups, say, state, maximum_iterations=groups
        )
        mel = self.unfold(tf.transpose(said.stack(), [1, 0, 2]))
        return {"mel": mel, "stop": tf.transpose(stops.stack())}

    def _read(self, text, before, training):
        for layer in self.prenet:
            before = self.forget(layer(before), training=training)
        return self.fold(tf.concat([text, before], axis=-1))


DECODERS = {"parallel": ParallelDecoder, "autoregressive": AutoregressiveDecoder}
