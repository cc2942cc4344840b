"""Adversarial training of the decoder: a discriminator that learns next to it, late in a run.

An L1 loss asks for the median of all that could be said, which is too smooth. The discriminator
learns to tell segments of predicted mels from recorded ones, and the decoder learns to deceive it,
and to match the activations of its layers. (Least squares and feature matching, as HiFi-GAN has
them; GANSpeech, Yang et al., 2021, for acoustic models.)
"""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from myxtts.config.config import XTTSConfig
from myxtts.models.decoder import scaled_mel
from myxtts.models.layers import sequence_mask
from myxtts.models.mel_discriminator import build_mel_discriminator
from myxtts.models.segments import DRAWS, Segments
from myxtts.training.fused_adam import FusedAdam
from myxtts.training.optimizer import learning_rates

ADVERSARIAL, FEATURES, DISCRIMINATOR = (
    "adversarial_loss",
    "feature_matching_loss",
    "discriminator_loss",
)
# A discriminator that remembers little follows a decoder that changes (Adam, first moment).
_BETA_1, _BETA_2 = 0.5, 0.99
_RATE_SHARE = 0.5  # of the model's learning rate


class Adversary:
    """A discriminator with its optimizer, which judges mels from a step on."""

    def __init__(
        self,
        n_mels: int,
        reduction: int,
        weights: Mapping[str, float],
        learning_rate,
        start: int,
        seed: int,
    ):
        self.reduction, self.start, self.seed = reduction, start, seed
        self.weights = dict(weights)
        self.network = build_mel_discriminator(n_mels)
        self.variables: Sequence[keras.Variable] = self.network.trainable_variables
        self.optimizer = FusedAdam(
            learning_rate, beta_1=_BETA_1, beta_2=_BETA_2, global_clipnorm=1.0
        )
        self.optimizer.build(self.variables)

    @classmethod
    def from_config(cls, config: XTTSConfig, total_steps: int) -> "Adversary | None":
        """The adversary of a configuration, or None where its weight is 0."""
        training = config.training
        if not training.adversarial_loss_weight:
            return None
        weights = {
            ADVERSARIAL: training.adversarial_loss_weight,
            FEATURES: training.feature_matching_loss_weight,
        }
        return cls(
            config.data.n_mels,
            config.model.decoder_reduction,
            weights,
            learning_rates(training, total_steps, _RATE_SHARE),
            round(training.adversarial_start * total_steps),
            training.seed,
        )

    def judge(self, batch, outputs, utterances, draw, number) -> dict[str, tf.Tensor]:
        """What the decoder loses by being found out, and what the discriminator loses itself.

        `utterances` is how many the whole batch has, `draw` what the choice of segments derives
        from. All terms are 0 until the step after `start`.
        """
        mel, lengths = tf.cast(batch["mel"], tf.float32), batch["mel_lengths"]
        predicted = tf.cast(outputs["mel"], tf.float32)
        count = DRAWS * tf.maximum(utterances, 1.0)

        def judged():
            return self._terms(mel, predicted, lengths, count, draw)

        def nothing():
            return dict.fromkeys((ADVERSARIAL, FEATURES, DISCRIMINATOR), tf.constant(0.0))

        return tf.cond(number > self.start, judged, nothing)

    def learn(self, gradients: Sequence[tf.Tensor]) -> None:
        """Make the discriminator's own update; zeros change nothing as long as it never learned."""
        self.optimizer.apply(gradients, self.variables)

    def _terms(self, mel, predicted, lengths, count, draw):
        key = tf.stack([tf.constant((self.seed + 2) % 2**31, tf.int64), tf.cast(draw, tf.int64)])
        repeated = tf.tile(lengths, [DRAWS])
        chance = tf.random.stateless_uniform([tf.shape(repeated)[0]], key)
        cut = Segments(repeated, chance, self.reduction, tf.shape(mel)[1])
        mask = sequence_mask(cut.lengths, tf.shape(cut.at)[1])[:, :, None]
        # One pass of each: its gradients by the weights are the discriminator's, those by the
        # predicted mels the decoder's, to which the recorded ones add nothing.
        (real, *wanted), (fake, *found) = (
            self.network(scaled_mel(cut.of(one)) * mask, training=True) for one in (mel, predicted)
        )
        off = tf.add_n([_distance(*pair) for pair in zip(wanted, found, strict=True)])
        return {
            ADVERSARIAL: _total(tf.square(1.0 - fake)) / count,
            FEATURES: off / count,
            DISCRIMINATOR: (_total(tf.square(1.0 - real)) + _total(tf.square(fake))) / count,
        }


def _distance(real: tf.Tensor, fake: tf.Tensor) -> tf.Tensor:
    return _total(tf.abs(tf.stop_gradient(real) - fake))


def _total(values: tf.Tensor) -> tf.Tensor:
    """The sum over segments of the means over all that each has."""
    return tf.reduce_sum(tf.reduce_mean(values, axis=[1, 2, 3]))
