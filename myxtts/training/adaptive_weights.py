"""Loss weights that follow the losses: bounded, logged, and saved with the run."""

import keras
import tensorflow as tf

from myxtts.training.losses import Terms

BOUND = 4.0
MEMORY = 0.99


class AdaptiveWeights(keras.layers.Layer):
    """Factors on the configured weights that bring all weighted terms towards their mean.

    Each factor is the ratio of the mean of all weighted terms to this one, both averaged over
    some hundred steps, and lies between a quarter and four.
    """

    def __init__(self, weights: dict[str, float], **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.active = tuple(name for name, weight in weights.items() if weight > 0)
        self.configured = dict(weights)
        self.means = self.add_weight(
            (len(self.active),), initializer="zeros", trainable=False, name="means"
        )
        self.built = True

    def factors(self, terms: Terms) -> Terms:
        """Take note of this step's terms, and return the factor of each active one."""
        seen = tf.stack([self.configured[name] * terms[name] for name in self.active])
        fresh = tf.stop_gradient(tf.cast(seen, tf.float32))
        means = tf.where(self.means > 0, MEMORY * self.means + (1 - MEMORY) * fresh, fresh)
        self.means.assign(means)
        return self._ratios(means)

    def known_factors(self) -> Terms:
        """The factors by the steps until now."""
        return self._ratios(self.means.value)

    def _ratios(self, means: tf.Tensor) -> Terms:
        # A term that is always 0 (a single speaker's) neither counts nor is scaled.
        is_alive = means > 1e-8
        count = tf.maximum(tf.reduce_sum(tf.cast(is_alive, tf.float32)), 1.0)
        target = tf.reduce_sum(means) / count
        ratio = tf.clip_by_value(tf.math.divide_no_nan(target, means), 1 / BOUND, BOUND)
        values = tf.unstack(tf.where(is_alive, ratio, 1.0), len(self.active))
        return dict(zip(self.active, values, strict=True))
