"""Convolutions with normalised weights, by length (Salimans and Kingma, 2016) or by spectrum."""

import math

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.layers import serialisable

_LEAST_SQUARE = 1e-24  # so that a filter of zeros stays one, and has a gradient
# Up to so many pairs of channels one dense convolution is faster than one for each group.
_MOST_DENSE = 64 * 64


class _WeightNorm(keras.layers.Layer):
    """A convolution with `g * v / ||v||`, or with a plain kernel without `weight_norm`.

    Kernels end with the axis that torch's begin with, [..., in, out] or transposed [..., out, in];
    each index of it has its own `g` and norm. New weights are normal with a standard deviation, or
    uniform as torch's.
    """

    def __init__(self, settings: dict, weight_norm: bool, stddev: float | None, **kwargs):
        super().__init__(**kwargs)
        self.settings = {**settings, "weight_norm": weight_norm, "stddev": stddev}
        self.channels, self.kernel_size = settings["channels"], settings["kernel"]
        self.stride, self.weight_norm, self.stddev = settings["stride"], weight_norm, stddev

    def build(self, x_shape):
        shape = self._kernel_shape(x_shape[-1])
        bound = 1.0 / math.sqrt(math.prod(shape[:-1]))
        uniform = keras.initializers.RandomUniform(-bound, bound)
        normal = self.stddev and keras.initializers.RandomNormal(stddev=self.stddev)
        if self.weight_norm:
            self.v = self._add_float32("v", shape, normal or uniform)
            self.g = self._add_float32("g", shape[-1:], lambda *_, **__: norms(self.v))
        else:
            self.kernel = self._add_float32("kernel", shape, normal or uniform)
        self.bias = self.add_weight(name="bias", shape=(self.channels,), initializer=uniform)

    def call(self, x):
        kernel = tf.cast(self.effective_kernel(), self.compute_dtype)
        return tf.nn.bias_add(self._convolve(x, kernel), self.bias)

    def effective_kernel(self) -> tf.Tensor:
        """Return the kernel that the input is convolved with, in float32."""
        if not self.weight_norm:
            return tf.convert_to_tensor(self.kernel)
        return self.v * (self.g / norms(self.v))

    def get_config(self):
        return {**super().get_config(), **self.settings}

    def _add_float32(self, name: str, shape, initializer, **kwargs) -> keras.Variable:
        """Add what is read as float32 under every policy: float16 has no room for squares."""
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, autocast=False, **kwargs
        )


@serialisable
class WeightNormConv1D(_WeightNorm):
    """[batch, time, in] -> [batch, time / stride, channels], zeros beyond the ends as in torch."""

    def __init__(
        self,
        channels: int,
        kernel: int,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        weight_norm: bool = True,
        stddev: float | None = None,
        **kwargs,
    ):
        settings = {"channels": channels, "kernel": kernel, "stride": stride}
        settings |= {"dilation": dilation, "groups": groups}
        super().__init__(settings, weight_norm, stddev, **kwargs)
        self.dilation, self.groups = dilation, groups

    def _kernel_shape(self, inputs: int) -> tuple[int, ...]:
        return self.kernel_size, inputs // self.groups, self.channels

    def _convolve(self, x, kernel):
        x, padding = _padded(x, (self.kernel_size,), (self.stride,))
        kernels, parts = [kernel], [x]
        # On a CPU neither grouped convolutions nor those of `conv1d` with dilation have a gradient.
        if self.groups > 1 and x.shape[-1] * self.channels <= _MOST_DENSE:
            kernels = [block_diagonal(kernel, self.groups)]
        elif self.groups > 1:
            kernels, parts = tf.split(kernel, self.groups, -1), tf.split(x, self.groups, -1)
        outputs = [
            tf.nn.convolution(part, own, self.stride, padding, dilations=self.dilation)
            for part, own in zip(parts, kernels, strict=True)
        ]
        return tf.concat(outputs, axis=-1)


@serialisable
class WeightNormConv1DTranspose(_WeightNorm):
    """[batch, time, in] -> [batch, time * stride, channels]."""

    def __init__(
        self,
        channels: int,
        kernel: int,
        stride: int,
        weight_norm: bool = True,
        stddev: float | None = None,
        **kwargs,
    ):
        settings = {"channels": channels, "kernel": kernel, "stride": stride}
        super().__init__(settings, weight_norm, stddev, **kwargs)

    def _kernel_shape(self, inputs: int) -> tuple[int, ...]:
        return self.kernel_size, self.channels, inputs

    def _convolve(self, x, kernel):
        shape = [tf.shape(x)[0], tf.shape(x)[1] * self.stride, self.channels]
        return tf.nn.conv1d_transpose(x, kernel, shape, self.stride, "SAME")


@serialisable
class WeightNormConv2D(_WeightNorm):
    """[batch, height, width, in] -> both divided by the strides, zeros beyond as in torch."""

    def __init__(
        self,
        channels: int,
        kernel: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        weight_norm: bool = True,
        stddev: float | None = None,
        **kwargs,
    ):
        settings = {"channels": channels, "kernel": tuple(kernel), "stride": tuple(stride)}
        super().__init__(settings, weight_norm, stddev, **kwargs)

    def _kernel_shape(self, inputs: int) -> tuple[int, ...]:
        return *self.kernel_size, inputs, self.channels

    def _convolve(self, x, kernel):
        x, padding = _padded(x, self.kernel_size, self.stride)
        return tf.nn.conv2d(x, kernel, self.stride, padding)


@serialisable
class SpectralNormConv1D(WeightNormConv1D):
    """A convolution divided by its largest singular value (Miyato et al., 2018).

    The value is an estimate, which each call in training improves by one power iteration.
    """

    def __init__(self, channels: int, kernel: int, **kwargs):
        super().__init__(channels, kernel, weight_norm=False, **kwargs)
        del self.settings["weight_norm"]

    def build(self, x_shape):
        super().build(x_shape)
        draw = keras.initializers.RandomNormal()
        self.left = self._add_vector("left", self.channels, lambda size: _unit(draw([size])))
        self.right = self._add_vector(
            "right", math.prod(self.kernel.shape[:-1]), lambda size: self._right()
        )

    def call(self, x, training=False):
        if training:
            self._iterate()
        return super().call(x)

    def effective_kernel(self) -> tf.Tensor:
        value = tf.reduce_sum(self.right[:, None] * self._matrix() * self.left[None, :])
        return self.kernel / value

    def _iterate(self) -> None:
        self.right.assign(self._right())
        self.left.assign(_unit(tf.linalg.matvec(self._matrix(), self.right, transpose_a=True)))

    def _right(self) -> tf.Tensor:
        return _unit(tf.linalg.matvec(self._matrix(), self.left))

    def _matrix(self) -> tf.Tensor:
        return tf.reshape(self.kernel, [-1, self.channels])

    def _add_vector(self, name: str, size: int, start) -> keras.Variable:
        return self._add_float32(
            name,
            (size,),
            lambda *_, **__: start(size),
            trainable=False,
            aggregation="only_first_replica",
        )


def block_diagonal(kernel: tf.Tensor, groups: int) -> tf.Tensor:
    """The kernel [size, in, out] of a grouped convolution [size, in / groups, out], with zeros
    between groups."""
    inputs, outputs = groups * kernel.shape[1], kernel.shape[2]
    group_of_input = np.arange(inputs) * groups // inputs
    group_of_output = np.arange(outputs) * groups // outputs
    is_own = group_of_input[:, None] == group_of_output[None, :]
    return tf.tile(kernel, [1, groups, 1]) * tf.constant(is_own, kernel.dtype)


def norms(v: tf.Tensor) -> tf.Tensor:
    """Return the Euclidean norms [last] of a kernel [..., last]."""
    squares = tf.reduce_sum(tf.square(v), axis=list(range(len(v.shape) - 1)))
    return tf.sqrt(tf.maximum(squares, _LEAST_SQUARE))


def _padded(x, kernel: tuple[int, ...], stride: tuple[int, ...]):
    """Pad as torch does with `(kernel - 1) / 2`; also return which padding is left to do."""
    if max(stride) == 1:
        return x, "SAME"
    sides = [[(size - 1) // 2] * 2 for size in kernel]
    return tf.pad(x, [[0, 0], *sides, [0, 0]]), "VALID"


def _unit(vector: tf.Tensor) -> tf.Tensor:
    return tf.math.l2_normalize(vector, epsilon=1e-24)
