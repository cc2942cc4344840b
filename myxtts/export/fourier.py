"""Spectra of real frames without complex numbers, which ONNX graphs do not have.

A transform of n samples is two short ones, of n = rows * columns samples, with a rotation between
them (Cooley and Tukey). Both are products with small matrices, and the second contains the
rotation. The spectrum of real numbers is symmetric, so half of the first one's rows do. The bins
stay in the order in which the products leave them; `order` says which bin is where.
"""

import numpy as np
import tensorflow as tf


class RealFourier:
    """Frames [frames, n] to real and imaginary parts, each [frames, size], and back.

    Bin k is at the place `order == k`; where `sign` is -1, its imaginary part is the negative one.
    Some bins are there twice: at the second place `is_bin` is False, and the way back ignores it.
    """

    def __init__(self, n: int):
        self.n, self.rows = n, _near_root(n)
        self.columns = n // self.rows
        first, across = np.arange(self.rows // 2 + 1), np.arange(self.columns)
        self._kept = len(first)
        places = first[:, None] + self.rows * across
        mirrors_itself = (2 * first % self.rows == 0)[:, None]
        self.is_bin = (~mirrors_itself | (2 * places <= n)).reshape(-1)
        places = places.reshape(-1)
        self.order = np.minimum(places, n - places)
        self.sign = np.where(2 * places > n, -1.0, 1.0).astype(np.float32)
        self.size = len(places)
        # A bin between the first and the last stands for its mirror image too.
        is_single = (places == 0) | (2 * places == n)
        weights = np.where(is_single, 1.0, 2.0) * self.is_bin / n
        down = _angles(self.rows, first, np.arange(self.rows))  # [bin, row]
        # For each bin of the first transform: the rotation and the second one, [column, bin].
        turned = _angles(n, first, across)[:, :, None] + _angles(self.columns, across, across)
        cosine, sine = np.cos(turned), np.sin(turned)
        weights = weights.reshape(self._kept, self.columns, 1)
        back_cosine, back_sine = (one.transpose(0, 2, 1) * weights for one in (cosine, sine))
        self._split = _float(_in_pairs(np.cos(down), -np.sin(down)))
        self._join = _float(_in_pairs(np.cos(down), -np.sin(down)).T)
        self._real = _float(np.concatenate([cosine, sine], axis=1))
        self._imaginary = _float(np.concatenate([-sine, cosine], axis=1))
        self._from_real = _float(np.concatenate([back_cosine, back_sine], axis=2))
        self._from_imaginary = _float(np.concatenate([-back_sine, back_cosine], axis=2))

    @property
    def tables(self) -> list[np.ndarray]:
        """The matrices of both ways."""
        found = [self._split, self._join, self._real, self._imaginary]
        return [*found, self._from_real, self._from_imaginary]

    def forward(self, frames: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The spectra of frames."""
        grid = tf.reshape(frames, [-1, self.rows, self.columns])
        # [bin, frame, column]: for each bin of the first transform one product over all frames.
        found = tf.reshape(tf.matmul(self._split, grid), [-1, self._kept, 2 * self.columns])
        found = tf.transpose(found, [1, 0, 2])
        return self._flat(tf.matmul(found, self._real)), self._flat(
            tf.matmul(found, self._imaginary)
        )

    def inverse(self, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
        """The frames that have these spectra."""
        parts = [
            tf.transpose(tf.reshape(part, [-1, self._kept, self.columns]), [1, 0, 2])
            for part in (real, imaginary)
        ]
        found = tf.matmul(parts[0], self._from_real) + tf.matmul(parts[1], self._from_imaginary)
        found = tf.reshape(tf.transpose(found, [1, 0, 2]), [-1, 2 * self._kept, self.columns])
        return tf.reshape(tf.matmul(self._join, found), [-1, self.n])

    def _flat(self, found: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.transpose(found, [1, 0, 2]), [-1, self.size])


def _near_root(n: int) -> int:
    """The divisor of n that is nearest to its root, from below."""
    return next(rows for rows in range(int(n**0.5), 0, -1) if n % rows == 0)


def _angles(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The angles of all products of two numbers [first, second], for a circle of n steps."""
    return 2.0 * np.pi / n * (first.reshape(-1, 1) * second % n)


def _in_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The rows of two matrices by turns."""
    return np.stack([first, second], axis=1).reshape(-1, first.shape[1])


def _float(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32)
