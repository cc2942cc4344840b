"""Spectra of real frames without complex numbers, which ONNX graphs do not have.

A transform of n samples is two short ones, of n = rows * columns samples, with a rotation between
them (Cooley and Tukey): each is a product with a small matrix. The bins stay in the order in which
the products leave them, so nothing is transposed; `order` says which bin is where.
"""

import numpy as np
import tensorflow as tf


class RealFourier:
    """Frames [frames, n] to real and imaginary parts, each [frames, size], and back.

    Bin k is at the place `order == k`. Some places hold bins above n / 2: `is_bin` is False there,
    and the way back ignores them.
    """

    def __init__(self, n: int):
        self.n, self.rows = n, _near_root(n)
        self.columns = n // self.rows
        kept = n // 2 // self.rows + 1  # blocks of bins up to n / 2
        first, block = np.arange(self.rows), np.arange(kept)
        bins = (first[:, None] + self.rows * block).reshape(-1)
        self.is_bin = bins <= n // 2
        self.order = np.where(self.is_bin, bins, 0)
        self.size = len(bins)
        self._kept = kept
        # A bin between the first and the last stands for its mirror image too.
        is_single = (bins == 0) | (2 * bins == n)
        self._weights = _float(np.where(is_single, 1.0, 2.0) * self.is_bin / n)
        down = _angles(self.rows, first, first)  # [bin, row]
        across = _angles(self.columns, np.arange(self.columns), block)  # [column, block]
        self._split = _float(np.concatenate([np.cos(down), -np.sin(down)]))
        self._join = _float(np.concatenate([np.cos(down), -np.sin(down)]).T)
        self._turn = _angles(n, first, np.arange(self.columns))[None]  # [1, bin, column]
        self._gather = _rotation(np.cos(across), -np.sin(across))
        self._scatter = _rotation(np.cos(across).T, np.sin(across).T)

    def forward(self, frames: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The spectra of frames."""
        grid = tf.reshape(frames, [-1, self.rows, self.columns])
        real, imaginary = tf.split(tf.matmul(self._split, grid), 2, axis=1)
        both = tf.concat(self._rotated(real, imaginary, -1.0), axis=-1)
        real, imaginary = tf.split(tf.matmul(both, self._gather), 2, axis=-1)
        return tf.reshape(real, [-1, self.size]), tf.reshape(imaginary, [-1, self.size])

    def inverse(self, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
        """The frames that have these spectra."""
        shape = [-1, self.rows, self._kept]
        parts = [tf.reshape(part * self._weights, shape) for part in (real, imaginary)]
        both = tf.matmul(tf.concat(parts, axis=-1), self._scatter)
        turned = self._rotated(*tf.split(both, 2, axis=-1), 1.0)
        return tf.reshape(tf.matmul(self._join, tf.concat(turned, axis=1)), [-1, self.n])

    def _rotated(self, real: tf.Tensor, imaginary: tf.Tensor, sign: float) -> list[tf.Tensor]:
        cosine, sine = _float(np.cos(self._turn)), _float(sign * np.sin(self._turn))
        return [real * cosine - imaginary * sine, real * sine + imaginary * cosine]


def _near_root(n: int) -> int:
    """The divisor of n that is nearest to its root, from below."""
    return next(rows for rows in range(int(n**0.5), 0, -1) if n % rows == 0)


def _angles(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return 2.0 * np.pi / n * (first[:, None] * second % n)


def _rotation(cosine: np.ndarray, sine: np.ndarray) -> np.ndarray:
    """The product with a complex matrix as one with a real matrix of twice the size."""
    return _float(np.block([[cosine, sine], [-sine, cosine]]))


def _float(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32)
