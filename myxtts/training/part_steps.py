"""The update from a batch that is computed in parts, by one replica or by several.

A part is computed like a batch of its own, but for the counts that its losses are divided by: those
of the whole batch. So the gradients of all parts add up to one update, whoever computes which. What
is random in a part follows from the seed, the step and the part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from myxtts.checkpoints import seeds_of
from myxtts.cluster.replicas import REPORT, Replicas
from myxtts.cluster.sums import pack, tree_sum, unpack
from myxtts.data.batches.parts import Share
from myxtts.models.convolutions import FULL, convolutions_in
from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.adversary import DISCRIMINATOR, Adversary
from myxtts.training.losses import Counts, XTTSLoss, scaled_weights, weighted_sum
from myxtts.training.references import with_references
from myxtts.training.steps import (
    Batch,
    CompiledStep,
    Metrics,
    compile_step,
    complete,
    flow_inputs,
    prior_weight,
)

# Seeds that a part may draw from a generator: more than any layer does in one pass.
_DRAWS = 16


def make_parts_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss: XTTSLoss,
    signature: dict[str, tf.TensorSpec],
    replicas: Replicas,
    share: Share,
    *,
    seed: int,
    prior_steps: int,
    coarse_steps: int = 0,
    balance: AdaptiveWeights | None = None,
    adversary: Adversary | None = None,
    convolutions: str = FULL,
    graph: bool = True,
    xla: bool = False,
) -> CompiledStep:
    """The step (batch, number) -> metrics that makes one update from the parts of all replicas.

    Adaptive weights follow the steps before this one: its own losses are known only at its end.
    """
    optimizer.build(model.trainable_variables)
    learning = _Learning(
        model, optimizer, loss, seed, prior_steps, coarse_steps, adversary, convolutions
    )
    compute_part = learning.gradients_of
    if graph:
        compute_part = tf.function(compute_part, jit_compile=True if xla else None, autograph=False)

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        batch = complete(batch)
        counts, padded, reports = _counted(batch, loss, replicas)
        began = now_after(counts)  # all are here: who came late is not waited for any more
        factors = balance.known_factors() if balance else {}
        first = number * share.parts + share.first

        def compute(part: tf.Tensor):
            draw = first + tf.cast(part, tf.int64)
            return compute_part(rows_of(batch, part), number, draw, tuple(counts), factors)

        gradients, terms = sum_over_parts(compute, share, batch["part"], learning.zeros())
        _set_seeds(learning.seeds, (number + 1) * share.parts)
        computed = now_after(gradients)
        replicas.note_computed(tf.cast(1e3 * (computed - began), tf.float32))
        *gradients, own_terms = replicas.sum(
            [*gradients, tf.stack(list(terms.values()))], share.is_exact
        )
        added_up = now_after(gradients)
        terms = dict(zip(terms, tf.unstack(own_terms, len(terms)), strict=True))
        if balance:
            balance.factors(terms)
        metrics, weighted = learning.update(gradients, terms, factors)
        metrics["padding"] = 1.0 - counts.frames / tf.maximum(padded, 1.0)
        metrics |= {f"weighted/{name}": value for name, value in weighted.items()}
        metrics |= {f"factor/{name}": value for name, value in factors.items()}
        if replicas.count > 1:
            metrics |= reported(reports, replicas.count)
            metrics["reduce_ms"] = 1e3 * (added_up - computed)
        return metrics

    return compile_step(step, signature, graph, xla, compute_part if graph else None)


@dataclass(frozen=True, eq=False)
class _Learning:
    """What learns and by which losses: the gradients of a part, and the update by their sum."""

    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    loss: XTTSLoss
    seed: int
    prior_steps: int
    coarse_steps: int
    adversary: Adversary | None
    convolutions: str

    @property
    def variables(self) -> list:
        return self.model.trainable_variables

    @property
    def their_variables(self) -> list:
        """The discriminator's."""
        return self.adversary.variables if self.adversary else []

    @property
    def seeds(self) -> list:
        return seeds_of(self.model)

    @property
    def weights(self) -> dict[str, float]:
        return {**self.loss.weights, **(self.adversary.weights if self.adversary else {})}

    def zeros(self) -> tuple[list[tf.Tensor], Metrics]:
        """The gradients and terms of no part at all."""
        names = [*self.weights, *([DISCRIMINATOR] if self.adversary else [])]
        zeros = zeros_like([*self.variables, *self.their_variables])
        return zeros, {name: tf.zeros([]) for name in names}

    def gradients_of(self, part: Batch, number: tf.Tensor, draw: tf.Tensor, counts, factors):
        """A part's gradients by all variables, and its share of each term."""
        adversary = self.adversary
        _set_seeds(self.seeds, draw)
        inputs = with_references(part, self.seed, draw)
        inputs["prior_weight"] = prior_weight(number, self.prior_steps)
        inputs |= flow_inputs(self.seed, draw, number > self.coarse_steps)
        with tf.GradientTape(persistent=adversary is not None) as tape:
            with convolutions_in(self.convolutions):
                outputs = self.model(inputs, training=True)
            counted = Counts(*counts)
            terms = self.loss.terms(inputs, outputs, counted)
            if adversary:
                terms |= adversary.judge(inputs, outputs, counted.utterances, draw, number)
            total, _ = self._weighted(terms, factors)
            scaled = self.optimizer.scale_loss(total)
        gradients = dense(tape.gradient(scaled, self.variables), self.variables)
        if adversary:
            theirs = self.their_variables
            gradients += dense(tape.gradient(terms[DISCRIMINATOR], theirs), theirs)
            del tape
        return gradients, terms

    def update(
        self, gradients: Sequence[tf.Tensor], terms: Metrics, factors: Metrics
    ) -> tuple[Metrics, Metrics]:
        """Change all variables by the sums of all parts; what the loss was, and shares of it."""
        own = len(self.variables)
        gradients, their_gradients = gradients[:own], gradients[own:]
        total, weighted = self._weighted(terms, factors)
        rate = self.optimizer.learning_rate
        norm = tf.linalg.global_norm(gradients) / self.optimizer.scale_loss(tf.constant(1.0))
        self.optimizer.apply(gradients, self.variables)
        if self.adversary:
            self.adversary.learn(their_gradients)
        return {"loss": total, "learning_rate": rate, "gradient_norm": norm, **terms}, weighted

    def _weighted(self, terms: Metrics, factors: Metrics):
        weights = self.weights
        return weighted_sum(
            {name: terms[name] for name in weights}, scaled_weights(weights, factors)
        )


def _counted(
    batch: Batch, loss: XTTSLoss, replicas: Replicas
) -> tuple[Counts, tf.Tensor, tf.Tensor]:
    """The counts of all replicas together, their padded frames, and what each says of itself."""
    padded = tf.cast(tf.size(batch["pitch"]), tf.float32)
    totals, reports = replicas.exchange(tf.stack([*loss.counts(batch), padded]))
    *counts, padded = tf.unstack(totals, len(Counts._fields) + 1)
    return Counts(*counts), padded, reports


def rows_of(batch: Batch, part: tf.Tensor) -> Batch:
    """The rows of one part, which lie next to each other; a number of the whole batch stays."""
    first, last = tf.unstack(tf.searchsorted(batch["part"], tf.stack([part, part + 1])))
    return {
        name: values[first:last] if values.shape.rank else values
        for name, values in batch.items()
        if name != "part"
    }


def sum_over_parts(compute: Callable[[tf.Tensor], Any], share: Share, part: tf.Tensor, zeros: Any):
    """Add up what is computed of each part that has rows, one part after the other.

    `zeros` has the structure of what `compute` returns.
    """
    if share.is_exact:
        return _exact_sum_over_parts(compute, share.own, part, zeros)

    def add(number: tf.Tensor, total: Any) -> Any:
        found = compute(number)
        return tf.nest.map_structure(tf.add, total, found)

    def next_part(number: tf.Tensor, total: Any) -> tuple[tf.Tensor, Any]:
        has_rows = tf.reduce_any(part == number)
        return number + 1, tf.cond(has_rows, lambda: add(number, total), lambda: total)

    _, total = tf.while_loop(
        lambda number, _: number < share.own,
        next_part,
        (tf.constant(0), zeros),
        parallel_iterations=1,
    )
    return total


def _exact_sum_over_parts(compute: Callable, own: int, part: tf.Tensor, zeros: Any):
    """The same sum in the order of `tree_sum`, which keeps what is computed of every part."""

    def next_part(number: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        has_rows = tf.reduce_any(part == number)
        found = tf.cond(has_rows, lambda: pack(compute(number)), lambda: pack(zeros))
        return number + 1, rows.write(number, found)

    rows = tf.TensorArray(tf.float32, own, element_shape=pack(zeros).shape)
    _, rows = tf.while_loop(
        lambda number, _: number < own, next_part, (tf.constant(0), rows), parallel_iterations=1
    )
    return unpack(tree_sum(rows.stack(), own), zeros)


def zeros_like(variables: Sequence) -> list[tf.Tensor]:
    return [tf.zeros(variable.shape, variable.dtype) for variable in variables]


def dense(gradients: Sequence, variables: Sequence) -> list[tf.Tensor]:
    """Gradients as tensors: zeros where a variable has no part in the loss."""
    return [
        zero if one is None else tf.convert_to_tensor(one)
        for one, zero in zip(gradients, zeros_like(variables), strict=True)
    ]


def _set_seeds(seeds: Sequence, draw: tf.Tensor) -> None:
    """Have every layer draw what belongs to a part of a step, whoever computes it."""
    for variable in seeds:
        place = tf.cast(draw * _DRAWS % 2**31, variable.dtype)
        variable.assign(tf.stack([variable.value[0], place]))


def now_after(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """The time at which all of them are there, in seconds; on a GPU, launched."""
    with tf.control_dependencies(tensors):
        return tf.timestamp()


def reported(reports: tf.Tensor, count: int) -> Metrics:
    """What the workers said of the step before, by their ranks."""
    asked, *figures = tf.unstack(reports, len(REPORT), axis=1)
    found = {"asked_to_end": tf.reduce_sum(asked)}
    for name, values in zip(REPORT[1:], figures, strict=True):
        found |= {f"worker/{rank}/{name}": values[rank] for rank in range(count)}
    return found
