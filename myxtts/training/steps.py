"""The update itself: a pure function of a batch, compiled once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from myxtts.data.batches.resident import ResidentBatch, as_type, carried, stacked
from myxtts.models.convolutions import FULL, convolutions_in
from myxtts.runtime import gpus
from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.adversary import DISCRIMINATOR, Adversary
from myxtts.training.losses import XTTSLoss, scaled_weights, weighted_sum
from myxtts.training.references import own_references, with_references

Batch = dict[str, tf.Tensor]
Metrics = dict[str, tf.Tensor]


@dataclass
class CompiledStep:
    """A step (batch, number) -> metrics as one vector, and how TensorFlow really runs it.

    `device` is the GPU that it runs on, if there is one; `is_new` says whether the last call had
    to trace or compile first. Where `takes_many`, the function takes several batches of one shape,
    stacked, and the number of the first, and returns a row of metrics for each. Where it `carries`,
    it is given int32 as float32 of the same bits: TensorFlow keeps int32 that go from one function
    to the next in the host's memory, and would wait for the GPU to fetch them.
    """

    function: Callable[[Batch, tf.Tensor], tf.Tensor]
    is_eager: bool
    device: str = ""
    names: list[str] = field(default_factory=list)
    inner: Callable[..., Any] | None = None  # what XLA compiles, where that is not all of it
    takes_many: bool = False
    carries: bool = False
    is_new: bool = field(default=False, init=False)
    _traces: list[None] = field(default_factory=list)
    _shapes: set = field(default_factory=set)

    def place(self, batch: Batch) -> Batch:
        """Move what is not yet on the device there; what lies there is gathered.

        Several batches are gathered together, by the call that takes them.
        """
        if isinstance(batch, ResidentBatch):
            return batch if self.takes_many else batch.tensors(self.carries)
        batch = carried(batch) if self.carries else batch
        if not self.device or all(x.device.endswith(self.device) for x in batch.values()):
            return batch
        with tf.device(self.device):
            return {name: tf.identity(x) for name, x in batch.items()}

    def __call__(self, batch: Batch, step: int) -> tf.Tensor:
        return self.take_all([batch], step)[0] if self.takes_many else self._take(batch, step)

    def take_all(self, batches: Sequence[Batch], first: int) -> tf.Tensor:
        """Take one step after the other in one call; their metrics are the rows."""
        if not self.takes_many:
            return tf.stack([self(batch, first + at) for at, batch in enumerate(batches)])
        return self._take(stacked(batches, self.carries), first)

    def _take(self, given: Batch, step: int) -> tf.Tensor:
        """Call the function with a batch, or with several that are stacked."""
        known, traced = len(self._shapes), self.traces
        self._shapes.add(tuple(tuple(given[x].shape)[self.takes_many :] for x in sorted(given)))
        given = carried(given) if self.carries else given
        metrics = self.function(given, tf.constant(step, tf.int64))
        is_new_shape = len(self._shapes) > known
        self.is_new = self.traces > traced or (is_new_shape and self.is_xla)
        return metrics

    @property
    def is_async(self) -> bool:
        """Whether a call returns before the device has computed."""
        return bool(self.device)

    def read(self, metrics: tf.Tensor) -> dict[str, float]:
        """Fetch metrics by name: one copy from the device."""
        return dict(zip(self.names, metrics.numpy().tolist(), strict=True))

    def read_all(self, metrics: tf.Tensor) -> list[dict[str, float]]:
        """Fetch the metrics of several steps: still one copy."""
        return [dict(zip(self.names, row, strict=True)) for row in metrics.numpy().tolist()]

    @property
    def is_xla(self) -> bool:
        """Whether TensorFlow itself marks the function to be compiled."""
        if self.is_eager:
            return False
        function = self.inner or self.function
        (concrete,) = function._list_all_concrete_functions()
        return bool(concrete.function_def.attr["_XlaMustCompile"].b)

    @property
    def traces(self) -> int:
        """How often Python was turned into a graph."""
        return 0 if self.is_eager else len(self._traces)

    @property
    def shapes(self) -> int:
        """How many sets of shapes it was given: XLA compiles once for each."""
        return len(self._shapes)


def make_train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss: XTTSLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    seed: int,
    prior_steps: int,
    coarse_steps: int = 0,
    balance: AdaptiveWeights | None = None,
    adversary: Adversary | None = None,
    convolutions: str = FULL,
    graph: bool = True,
    xla: bool = False,
    takes_many: bool = False,
) -> CompiledStep:
    """The step (batch, number) -> metrics that makes one update.

    A refiner learns after `coarse_steps`, when there is a mel to refine. An adversary makes an
    update of its own, from the same pass as the model.
    """
    optimizer.build(model.trainable_variables)
    weights = {**loss.weights, **(adversary.weights if adversary else {})}

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        inputs = with_references(complete(batch), seed, number)
        inputs["prior_weight"] = prior_weight(number, prior_steps)
        inputs |= flow_inputs(seed, number, number > coarse_steps)
        own = {}
        with tf.GradientTape(persistent=adversary is not None) as tape:
            with convolutions_in(convolutions):
                outputs = model(inputs, training=True)
            terms = loss.terms(inputs, outputs)
            factors = balance.factors(terms) if balance else {}
            if adversary:
                utterances = loss.counts(inputs).utterances
                judged = adversary.judge(inputs, outputs, utterances, number, number)
                own = {DISCRIMINATOR: judged.pop(DISCRIMINATOR)}
                terms |= judged
            total, weighted = weighted_sum(terms, scaled_weights(weights, factors))
            scaled = optimizer.scale_loss(total)
        gradients = tape.gradient(scaled, model.trainable_variables)
        if adversary:
            adversary.learn(tape.gradient(own[DISCRIMINATOR], adversary.variables))
            del tape
        rate = optimizer.learning_rate
        norm = tf.linalg.global_norm(gradients) * (total / scaled)
        optimizer.apply(gradients, model.trainable_variables)
        metrics = {"loss": total, "learning_rate": rate, "gradient_norm": norm, **terms, **own}
        metrics["padding"] = padding(inputs)
        metrics |= {f"weighted/{name}": value for name, value in weighted.items()}
        return metrics | {f"factor/{name}": value for name, value in factors.items()}

    return compile_step(step, signature, graph, xla, takes_many=takes_many)


def make_eval_step(
    model: keras.Model,
    loss: XTTSLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    graph: bool = True,
    xla: bool = False,
) -> CompiledStep:
    """The step that scores a batch with its real inputs and changes nothing."""

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        inputs = own_references(complete(batch))
        inputs["prior_weight"] = tf.constant(0.0)
        inputs |= flow_inputs(0, tf.constant(0, tf.int64), tf.constant(True))
        outputs = model(inputs, training=False)
        total, terms, _ = loss(inputs, outputs)
        return {"loss": total, **terms}

    return compile_step(step, signature, graph, xla)


def compile_step(
    step: Callable[[Batch, tf.Tensor], Metrics],
    signature: dict[str, tf.TensorSpec],
    graph: bool,
    xla: bool,
    inner: Callable[..., Any] | None = None,
    takes_many: bool = False,
    carries: bool | None = None,
) -> CompiledStep:
    """One trace for all shapes; with XLA one compilation for each set of shapes.

    With `takes_many` that holds for any number of batches: TensorFlow calls the step in a loop.
    `carries` is for GPUs, unless it is said.
    """
    names: list[str] = []
    traces: list[None] = []
    types = {name: one.dtype for name, one in signature.items()}

    def packed(batch: Batch, number: tf.Tensor) -> tf.Tensor:
        batch = {name: as_type(x, types.get(name, x.dtype)) for name, x in batch.items()}
        metrics = step(batch, number)
        names[:] = metrics
        traces.append(None)
        # One vector: what is fetched from a device one by one is waited for one by one.
        return tf.stack([tf.cast(value, tf.float32) for value in metrics.values()])

    device = next(iter(gpus()), "")
    if not graph:
        return CompiledStep(packed, True, device, names, _traces=traces)
    carries = bool(device) if carries is None else carries
    if carries:
        signature = {
            name: tf.TensorSpec(one.shape, tf.float32) if one.dtype == tf.int32 else one
            for name, one in signature.items()
        }
    function = tf.function(
        packed,
        input_signature=[signature, tf.TensorSpec([], tf.int64)],
        jit_compile=True if xla and inner is None else None,
        autograph=False,
    )
    if takes_many:
        return CompiledStep(
            _looped(function, signature),
            False,
            device,
            names,
            function,
            True,
            carries,
            _traces=traces,
        )
    return CompiledStep(function, False, device, names, inner, False, carries, _traces=traces)


def _looped(
    step: Callable[[Batch, tf.Tensor], tf.Tensor], signature: dict[str, tf.TensorSpec]
) -> Callable[[Batch, tf.Tensor], tf.Tensor]:
    """The function of stacked batches that calls a step for one after the other."""
    stacked = {
        name: tf.TensorSpec([None, *one.shape], one.dtype) for name, one in signature.items()
    }

    def loop(batches: Batch, first: tf.Tensor) -> tf.Tensor:
        count = tf.shape(batches["index"])[0]

        def take(at: tf.Tensor, metrics: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            batch = {name: x[at] for name, x in batches.items()}
            found = step(batch, first + tf.cast(at, tf.int64))
            return at + 1, metrics.write(at, found)

        rows = tf.TensorArray(tf.float32, count)
        _, rows = tf.while_loop(
            lambda at, _: at < count, take, (tf.constant(0), rows), parallel_iterations=1
        )
        return rows.stack()

    first = tf.TensorSpec([], tf.int64)
    return tf.function(loop, input_signature=[stacked, first], autograph=False)


def batch_signature(batch: Batch, n_mels: int) -> dict[str, tf.TensorSpec]:
    """The shapes and types that all batches like this one have."""
    shapes = {
        name: [None] * (len(x.shape) - 1) + [n_mels if len(x.shape) == 3 else None]
        for name, x in batch.items()
    }
    return {name: tf.TensorSpec(shapes[name], batch[name].dtype) for name in batch}


def complete(batch: Batch) -> Batch:
    """The batch in the types of the model, with silence for a pitch that was never computed."""
    batch = {**batch, "mel": tf.cast(batch["mel"], tf.float32)}
    batch.setdefault("pitch", tf.zeros(tf.shape(batch["mel"])[:2]))
    return batch


def padding(batch: Batch) -> tf.Tensor:
    """The share of a batch's frames that no recording has."""
    frames = tf.cast(tf.size(batch["mel"][..., 0]), tf.float32)
    return 1.0 - tf.cast(tf.reduce_sum(batch["mel_lengths"]), tf.float32) / frames


def flow_inputs(seed: int, draw: tf.Tensor, refines: tf.Tensor) -> Batch:
    """What a refiner draws its segments, times and noise from, and whether it learns yet."""
    key = tf.stack([tf.constant((seed + 1) % 2**31, tf.int64), draw])
    return {"flow_key": key, "refines": refines}


def prior_weight(step: tf.Tensor, steps: int) -> tf.Tensor:
    """How much the diagonal still helps the alignment: 1 at first, 0 after `steps`."""
    return tf.maximum(0.0, 1.0 - tf.cast(step, tf.float32) / float(max(steps, 1)))
