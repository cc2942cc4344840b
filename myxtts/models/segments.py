"""Random segments of utterances, for parts of a model that learn from a few frames at a time.

A step takes several segments of each utterance: its text is encoded once for all of them.
"""

import tensorflow as tf

DRAWS, SEGMENT_FRAMES = 2, 96


class Segments:
    """A random segment of each row, `DRAWS` times over the batch, of whole groups of frames."""

    def __init__(self, lengths, chance, reduction: int, room):
        frames = tf.minimum(longest_segment(reduction), room)
        spare = tf.maximum(lengths - frames, 0)
        first = tf.cast(chance * tf.cast(spare + 1, tf.float32), tf.int32) // reduction * reduction
        self.at = first[:, None] + tf.range(frames)[None, :]
        self.lengths = tf.minimum(lengths, frames)

    def of(self, values):
        """The segments [draws x batch, segment, ...] of values [batch, frames, ...]."""
        rows = tf.tile(tf.range(tf.shape(values)[0]), [DRAWS])[:, None]
        return tf.gather_nd(values, tf.stack([tf.zeros_like(self.at) + rows, self.at], axis=-1))


def longest_segment(reduction: int) -> int:
    """The frames of a segment, in whole groups."""
    return SEGMENT_FRAMES // reduction * reduction


def segment_lengths(mel_lengths, reduction: int):
    """The real frames of the segments of utterances of these lengths [draws x batch]."""
    return tf.tile(tf.minimum(mel_lengths, longest_segment(reduction)), [DRAWS])
