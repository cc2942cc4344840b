"""Convolutions that training may compute in half precision, on CPUs that multiply that faster.

Keras's mixed policies are for GPUs: on a CPU everything but the products is slower in half
precision. Here only the products are in it; weights, activations and gradients stay float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras
import tensorflow as tf

FULL = "float32"
_products: ContextVar[str] = ContextVar("products", default=FULL)


@contextmanager
def convolutions_in(dtype: str) -> Iterator[None]:
    """Multiply in this type whatever is called, or traced, meanwhile."""
    before = _products.set(dtype)
    try:
        yield
    finally:
        _products.reset(before)


@keras.saving.register_keras_serializable(package="myxtts")
class Convolution(keras.layers.Conv1D):
    """`keras.layers.Conv1D`, without dilation or activation, in the type of `convolutions_in`."""

    def call(self, x):
        dtype = _products.get()
        if dtype == FULL or self.compute_dtype != FULL:
            return super().call(x)
        padding = self.padding
        if padding == "causal":
            x, padding = tf.pad(x, self._compute_causal_padding()), "valid"
        y = keras.ops.conv(
            tf.cast(x, dtype), tf.cast(self.kernel, dtype), list(self.strides), padding
        )
        # The sum with the bias is not rounded, nor is what flows back to the bias.
        return tf.cast(y, FULL) + tf.convert_to_tensor(self.bias)
