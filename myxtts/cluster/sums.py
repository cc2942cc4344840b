"""Sums in one order, whoever computes which part of them: their rounding is the same everywhere.

Values are added up as a binary tree: neighbours first, then neighbouring sums, and so on. The parts
of one replica form a subtree, so replicas that add up their own parts like this, and then their
sums, get the bits that one replica gets.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def tree_sum(rows: tf.Tensor, count: int) -> tf.Tensor:
    """The sum [size] of rows [count, size], where the count is a power of two.

    Each level is one addition of slices: TensorFlow would rewrite a tree of additions as one sum
    in another order.
    """
    while count > 1:
        rows, count = rows[0::2] + rows[1::2], count // 2
    return rows[0]


def pack(structure: Any) -> tf.Tensor:
    """All numbers of a structure of float32 tensors, one after the other [size]."""
    return tf.concat([tf.reshape(x, [-1]) for x in tf.nest.flatten(structure)], axis=0)


def unpack(flat: tf.Tensor, like: Any) -> Any:
    """The structure behind `pack`; `like` has its shapes, which are known."""
    shapes = [x.shape for x in tf.nest.flatten(like)]
    parts = tf.split(flat, [shape.num_elements() for shape in shapes])
    whole: Sequence[tf.Tensor] = [tf.reshape(x, s) for x, s in zip(parts, shapes, strict=True)]
    return tf.nest.pack_sequence_as(like, whole)
