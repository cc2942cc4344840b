"""The modulation post-filter in the graph: what `audio.postfilter.sharpen` does, in float32.

Windows, gains and windows again are one product with a matrix for each cepstral coefficient.
"""

import numpy as np
import tensorflow as tf

from myxtts.audio.postfilter import HOP, WINDOW, cosines, window_filters


class Sharpening:
    """Log-mels [frames, mels] with their modulation amplified by gains [bins, mels]."""

    def __init__(self, gains: np.ndarray):
        mels = gains.shape[1]
        self._cepstra = cosines(mels).astype(np.float32)
        self._filters = window_filters(gains).astype(np.float32)

    def __call__(self, mel: tf.Tensor) -> tf.Tensor:
        count = tf.shape(mel)[0]
        mean = tf.reduce_mean(mel, axis=0)
        behind = WINDOW + tf.math.floormod(-count, HOP)
        at = tf.clip_by_value(tf.range(-WINDOW, count + behind), 0, count - 1)
        cepstra = tf.matmul(tf.gather(mel - mean, at), self._cepstra)
        chunks = tf.reshape(cepstra, [-1, HOP, cepstra.shape[1]])
        parts = WINDOW // HOP
        windows = tf.shape(chunks)[0] - (parts - 1)
        rows = tf.concat([chunks[part : part + windows] for part in range(parts)], axis=1)
        found = tf.matmul(tf.transpose(rows, [2, 0, 1]), self._filters)
        pieces = tf.split(tf.transpose(found, [1, 2, 0]), parts, axis=1)
        total = tf.add_n(
            [tf.pad(p, [[k, parts - 1 - k], [0, 0], [0, 0]]) for k, p in enumerate(pieces)]
        )
        added = tf.reshape(total, [-1, cepstra.shape[1]])[WINDOW : WINDOW + count]
        return tf.matmul(added, self._cepstra, transpose_b=True) + mean
