"""TensorFlow's stateless normal numbers by operations that ONNX has: the same seed, the same noise.

The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
2011), and the numbers are those of Box and Muller. Words of 32 bits are kept in int64.
"""

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import tensorflow as tf

_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85  # that the key grows by in each round
_SEED_KEY = 0x3EC8F720, 0x02461E29  # with which TensorFlow mixes a seed
_WORD, _HALF = 1 << 32, 1 << 16
_MANTISSA = 1 << 23
_LEAST_UNIFORM = 1e-7  # as in TensorFlow: its logarithm is taken

Words = tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]


def stateless_normal(shape, seed) -> tf.Tensor:
    """Standard normal numbers, as `tf.random.stateless_normal` has them on a CPU."""
    seed = tf.cast(seed, tf.int64)
    # A seed of 32 bits fills two words of the counter with its own, extended by its sign.
    halves = [part for number in (seed[0], seed[1]) for part in _split(number)]
    mixed = _philox(tuple(halves), tuple(tf.constant(key, tf.int64) for key in _SEED_KEY))
    shape = tf.cast(shape, tf.int64)
    count = tf.reduce_prod(shape)
    groups = tf.range((count + 3) // 4)
    zero = tf.zeros_like(groups)
    words = _philox((groups, zero, zero + mixed[2], zero + mixed[3]), mixed[:2])
    pairs = [_box_muller(words[0], words[1]), _box_muller(words[2], words[3])]
    flat = tf.reshape(tf.stack([*pairs[0], *pairs[1]], axis=1), [-1])
    return tf.reshape(flat[:count], tf.cast(shape, tf.int32))


@contextlib.contextmanager
def in_tracing() -> Iterator[None]:
    """Let functions that are traced meanwhile draw their noise by these operations."""
    with patch.object(tf.random, "stateless_normal", stateless_normal):
        yield


def _split(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The low and the high word of an integer of 64 bits."""
    low = tf.math.floormod(number, _WORD)
    return low, tf.math.floormod((number - low) // _WORD, _WORD)


def _philox(counter: Words, key: tuple[tf.Tensor, ...]) -> Words:
    first, second = key[0], key[1]
    for _ in range(_ROUNDS):
        high = [_high_low(counter[0], _MULTIPLIERS[0]), _high_low(counter[2], _MULTIPLIERS[1])]
        counter = (
            _xor(_xor(high[1][0], counter[1]), first),
            high[1][1],
            _xor(_xor(high[0][0], counter[3]), second),
            high[0][1],
        )
        first = tf.math.floormod(first + _STEPS[0], _WORD)
        second = tf.math.floormod(second + _STEPS[1], _WORD)
    return counter


def _high_low(word: tf.Tensor, multiplier: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The two words of a product, by halves: it would not fit into int64."""
    below = multiplier * tf.math.floormod(word, _HALF)
    above = multiplier * (word // _HALF) + below // _HALF
    low = tf.math.floormod(above, _HALF) * _HALF + tf.math.floormod(below, _HALF)
    return above // _HALF, low


def _xor(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(first, second)


def _box_muller(first: tf.Tensor, second: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    radius = tf.sqrt(-2.0 * tf.math.log(tf.maximum(_uniform(first), _LEAST_UNIFORM)))
    angle = np.float32(2.0 * np.pi) * _uniform(second)
    return tf.sin(angle) * radius, tf.cos(angle) * radius


def _uniform(word: tf.Tensor) -> tf.Tensor:
    """A number from 0 to 1 of the lowest bits of a word."""
    return tf.cast(tf.math.floormod(word, _MANTISSA), tf.float32) / _MANTISSA
