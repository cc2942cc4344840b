"""Tokens expanded to frames: the token of each, the place in it, and what it takes of it."""

import tensorflow as tf


def tokens_of_frames(durations: tf.Tensor, room: tf.Tensor) -> tf.Tensor:
    """The token of each frame [batch, room]; behind the text, the number of tokens."""
    ends = tf.cumsum(durations, axis=1)
    has_ended = tf.range(room)[None, :, None] >= ends[:, None, :]
    return tf.reduce_sum(tf.cast(has_ended, tf.int32), axis=-1)


def places_in_tokens(durations: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """The place of each frame in its token [batch, room, 4].

    It is how far the frame is from the token's start and from its end, as shares of it, the token's
    log-duration, and whether the text has ended: such frames belong to no token.
    """
    lengths = tf.cast(durations, tf.float32)
    starts = tf.cumsum(lengths, axis=1) - lengths
    of_token = tf.stack([starts, tf.maximum(lengths, 1.0)], axis=-1)
    start, length = tf.unstack(gather_tokens(of_token, tokens), axis=-1)
    at = tf.cast(tf.range(tf.shape(tokens)[1]), tf.float32)[None, :]
    done = (at + 0.5 - start) / tf.maximum(length, 1.0)
    place = tf.stack([done, 1.0 - done, 0.5 * tf.math.log(tf.maximum(length, 1.0))], axis=-1)
    is_said = tf.cast(tokens < tf.shape(durations)[1], tf.float32)[:, :, None]
    return tf.concat([place * is_said, 1.0 - is_said], axis=-1)


def gather_tokens(values: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """What frames have of their tokens' values; zeros behind the text.

    This is for synthesis, where any number of tokens meets any number of frames: oneDNN would
    compile a product for each pair, and keep it for each thread.
    """
    last = tf.shape(values)[1] - 1
    is_said = tf.cast(tokens <= last, values.dtype)[:, :, None]
    return tf.gather(values, tf.minimum(tokens, last), batch_dims=1) * is_said


def spread_tokens(values: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """The same as a product with one-hot rows, for training: its gradient is a product too."""
    return tf.matmul(tf.one_hot(tokens, tf.shape(values)[1], dtype=values.dtype), values)
