"""Adam by one operation for each variable.

Keras writes the update of a variable as about twenty operations, and its EMA as five. Of a small
model these are two thirds of all operations of a step: they are traced, optimised and launched, and
each passes over the weights. The arithmetic, the variables and their names are Keras's.
"""

import keras
import tensorflow as tf

from myxtts.models.layers import serialisable


class _FusedUpdate:
    """What Adam and AdamW have in common; the weight decay is Keras's."""

    def apply(self, grads, trainable_variables=None):
        # Once for all variables.
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        self._powers = tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)
        super().apply(grads, trainable_variables)
        self._powers = None

    def update_step(self, gradient, variable, learning_rate):
        at = self._get_variable_index(variable)
        first, second = self._powers
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[at].value.handle,
            v=self._velocities[at].value.handle,
            beta1_power=first,
            beta2_power=second,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.convert_to_tensor(gradient),
        )

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.use_ema:
            return
        is_first = tf.equal(tf.convert_to_tensor(self.iterations), 0)
        share = tf.where(is_first, 1.0, 1.0 - self.ema_momentum)
        averages = self._model_variables_moving_average
        for variable, average in zip(trainable_variables, averages, strict=True):
            own = average.value
            tf.raw_ops.ResourceApplyGradientDescent(
                var=own.handle, alpha=tf.cast(share, own.dtype), delta=own - variable.value
            )


@serialisable
class FusedAdam(_FusedUpdate, keras.optimizers.Adam):
    """`keras.optimizers.Adam`."""


@serialisable
class FusedAdamW(_FusedUpdate, keras.optimizers.AdamW):
    """`keras.optimizers.AdamW`."""
