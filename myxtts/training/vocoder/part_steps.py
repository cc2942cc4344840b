"""The updates of a vocoder from batches that are computed in parts, by one replica or by several.

A part counts by its share of the segments, so the gradients of all parts add up to one update.
"""

from collections.abc import Sequence

import keras
import tensorflow as tf

from myxtts.cluster.replicas import Replicas
from myxtts.data.batches.parts import Share
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.training.part_steps import (
    dense,
    now_after,
    reported,
    rows_of,
    sum_over_parts,
    zeros_like,
)
from myxtts.training.steps import Batch, CompiledStep, Metrics, compile_step
from myxtts.training.vocoder.losses import SpectralLoss
from myxtts.training.vocoder.steps import (
    ADVERSARIAL_WEIGHTS,
    SPECTRAL_WEIGHTS,
    Adversaries,
    completed,
    generate,
    spectral_terms,
    summed,
    updated,
)


def make_spectral_parts_step(
    model: NeuralVocoder,
    optimizer: keras.optimizers.Optimizer,
    loss: SpectralLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    replicas: Replicas,
    share: Share,
    graph: bool = True,
    xla: bool = False,
) -> CompiledStep:
    """The step of a vocoder that learns from spectra alone."""
    optimizer.build(model.trainable_variables)
    variables = model.trainable_variables

    def compute(part: Batch, weight: tf.Tensor):
        with tf.GradientTape() as tape:
            generated, recorded, terms = generate(model, part)
            terms = _scaled({**spectral_terms(loss, generated, recorded), **terms}, weight)
            total, _ = summed(terms, SPECTRAL_WEIGHTS)
        return dense(tape.gradient(total, variables), variables), terms

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        parts = _Parts(completed(batch), number, replicas, share)
        gradients, terms = parts.sum(compute, variables, _names(model, ("mel_loss", "stft_loss")))
        return parts.metrics(updated(optimizer, variables, gradients, terms, SPECTRAL_WEIGHTS))

    return compile_step(step, signature, graph, xla and replicas.count == 1)


def make_adversarial_parts_step(
    model: NeuralVocoder,
    optimizer: keras.optimizers.Optimizer,
    discriminators: Sequence[keras.Model],
    their_optimizer: keras.optimizers.Optimizer,
    loss: SpectralLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    replicas: Replicas,
    share: Share,
    graph: bool = True,
    xla: bool = False,
) -> CompiledStep:
    """The step in which first the discriminators and then the vocoder make an update.

    The vocoder generates twice: its own update is judged by discriminators that all parts taught.
    """
    judges = Adversaries(discriminators)
    optimizer.build(model.trainable_variables)
    their_optimizer.build(judges.variables)
    variables, theirs = model.trainable_variables, judges.variables

    def compute_theirs(part: Batch, weight: tf.Tensor):
        generated, recorded, _ = generate(model, part)
        with tf.GradientTape() as tape:
            doubted = weight * judges.doubt(recorded, tf.stop_gradient(generated))
        return dense(tape.gradient(doubted, theirs), theirs), {"discriminator_loss": doubted}

    def compute(part: Batch, weight: tf.Tensor):
        with tf.GradientTape() as tape:
            generated, recorded, terms = generate(model, part)
            terms = _scaled({**judges.terms(loss, generated, recorded), **terms}, weight)
            total, _ = summed(terms, ADVERSARIAL_WEIGHTS)
        return dense(tape.gradient(total, variables), variables), terms

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        parts = _Parts(completed(batch), number, replicas, share)
        gradients, doubted = parts.sum(compute_theirs, theirs, ("discriminator_loss",))
        their_optimizer.apply(gradients, theirs)
        names = _names(model, ("mel_loss", "adversarial_loss", "feature_loss"))
        gradients, terms = parts.sum(compute, variables, names)
        metrics = updated(optimizer, variables, gradients, terms, ADVERSARIAL_WEIGHTS)
        return parts.metrics({**metrics, **doubted})

    return compile_step(step, signature, graph, xla and replicas.count == 1)


class _Parts:
    """The parts of one step, in a graph: how much each counts, and sums over all replicas."""

    def __init__(self, batch: Batch, number: tf.Tensor, replicas: Replicas, share: Share):
        self.batch, self.replicas, self.share = batch, replicas, share
        self.first = number * share.parts + share.first
        own = tf.cast(tf.shape(batch["index"])[0], tf.float32)
        totals, self.reports = replicas.exchange(own[None])
        self.count, self.began = totals[0], now_after([totals])
        self.computed = self.began

    def sum(self, compute, variables: Sequence, names: Sequence[str]):
        """The gradients and terms of all parts of all replicas."""

        def of_part(part: tf.Tensor):
            rows = rows_of(self.batch, part)
            # Other noise in every part of every step, whoever computes it.
            rows["first_frame"] = tf.cast((self.first + tf.cast(part, tf.int64)) % 2**20, tf.int32)
            size = tf.cast(tf.shape(rows["index"])[0], tf.float32)
            return compute(rows, size / tf.maximum(self.count, 1.0))

        zeros = zeros_like(variables), {name: tf.zeros([]) for name in names}
        gradients, terms = sum_over_parts(of_part, self.share, self.batch["part"], zeros)
        self.computed = now_after(gradients)
        *gradients, values = self.replicas.sum(
            [*gradients, tf.stack(list(terms.values()))], self.share.is_exact
        )
        return gradients, dict(zip(terms, tf.unstack(values, len(terms)), strict=True))

    def metrics(self, own: Metrics) -> Metrics:
        """The metrics with what the workers say of themselves."""
        count = self.replicas.count
        self.replicas.note_computed(tf.cast(1e3 * (self.computed - self.began), tf.float32))
        return own | reported(self.reports, count) if count > 1 else own


def _names(model: NeuralVocoder, names: Sequence[str]) -> tuple[str, ...]:
    return (*names, "pitch_loss") if model.predicts_pitch else tuple(names)


def _scaled(terms: Metrics, weight: tf.Tensor) -> Metrics:
    return {name: weight * value for name, value in terms.items()}
