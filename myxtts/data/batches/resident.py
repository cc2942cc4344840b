"""The cache on the device: copied there once, and gathered there from then on.

The first steps are fed by the host while a thread copies, column by column and in pieces. Then a
batch is no more than its row in the plan: its tensors are gathered when its step begins. Where the
device's memory runs short, the copy is given up, and the same rows are read by the host again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.data.batches import readers
from myxtts.data.batches.graph_reader import (
    EMBEDDING,
    LABELS,
    Batches,
    ReaderOptions,
    TensorBatch,
    block_sizes,
    blocks_of,
    gather_batch,
    tables,
    to_tensors,
    widths,
)
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.batches.residence import Held, Residence
from myxtts.data.store.packed_cache import PackedCache
from myxtts.monitoring.timers import GATHER, stage

# (what the device holds, rows of the epoch's order, the sizes of the batches) -> batch
Gather = Callable[[Held, tf.Tensor, tf.Tensor], TensorBatch]

# Steps that the host feeds first: those show how much memory a step takes.
FIRST_STEPS = 3


@dataclass(frozen=True, eq=False)
class ResidentEpoch:
    """An epoch's plan on the device, and how its batches are gathered, or read by the host."""

    residence: Residence
    order: tf.Tensor  # a row for each utterance, in the order of the plan
    bounds: np.ndarray  # [batches + 1] rows of the order
    sizes: np.ndarray  # [batches, n] numbers of each batch that its shape follows from
    index: Callable[[int], np.ndarray]  # the positions of a batch
    read: Callable[[int], TensorBatch]
    key: Any  # equal for epochs whose batches are gathered by one function
    view: Callable[[Held], Held]
    gather_rows: Gather  # of rows [rows, ...], or of those of several batches [batches, rows, ...]

    def shape(self, number: int) -> tuple[int, ...]:
        """Equal for batches of one shape."""
        first, last = self.bounds[number : number + 2].tolist()
        return last - first, *self.sizes[number].tolist()

    def gather(self, first: int, count: int = 0, is_carried: bool = False) -> TensorBatch | None:
        """A batch, or `count` of them in a row, stacked; None where that is up to the host."""
        many = max(1, count)
        start, end = int(self.bounds[first]), int(self.bounds[first + many])
        rows = start, end, many, (end - start) // many, *self.sizes[first].tolist()
        how = count > 0, is_carried
        with stage(GATHER):
            with tf.device("/CPU:0"):
                numbers = tf.constant(rows, tf.int64)
            try:
                call = self.residence.made((self.key, *how), partial(self._graph, *how))
                return call and call(numbers, self.order)
            except tf.errors.ResourceExhaustedError:
                pass
        self.residence.drop("gathering a batch ran out of memory")
        return None

    def _graph(self, is_many: bool, is_carried: bool, held: Held) -> Callable[..., TensorBatch]:
        """The function (numbers, order) -> batch as one graph, also where functions run eagerly.

        What the device holds belongs to the function: every argument takes time in every call.
        """
        held, order = self.view(held), self.order

        def take(numbers: tf.Tensor, order: tf.Tensor) -> TensorBatch:
            # XLA would compile for every place in the order.
            device = tf.device(self.residence.device)
            with tf.xla.experimental.jit_scope(compile_ops=False), device:
                with tf.device("/CPU:0"):
                    first, last, shape, sizes = tf.split(numbers, [1, 1, 2, len(self.sizes[0])])
                    shape = tf.concat([shape, order.shape[1:]], axis=0)
                    each = tf.ones([1], tf.int64)
                rows = tf.strided_slice(order, first, last, each)
                batch = self.gather_rows(held, tf.reshape(rows, shape) if is_many else rows, sizes)
                return carried(batch) if is_carried else batch

        numbers = tf.TensorSpec([4 + len(self.sizes[0])], tf.int64)
        rows = tf.TensorSpec([None, *order.shape[1:]], order.dtype)
        return tf.function(take, autograph=False).get_concrete_function(numbers, rows)


@dataclass(frozen=True, eq=False)
class ResidentBatch(Mapping):
    """A batch that is gathered on the device when it is asked for, but for its index."""

    epoch: ResidentEpoch
    number: int
    extra: TensorBatch = field(default_factory=dict)

    def __or__(self, more: TensorBatch) -> "ResidentBatch":
        return ResidentBatch(self.epoch, self.number, {**self.extra, **more})

    def __getitem__(self, name: str) -> Any:
        return self.index if name == "index" else self.tensors()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors())

    def __len__(self) -> int:
        return len(self.tensors())

    @property
    def index(self) -> np.ndarray:
        """The positions of its utterances, which the plan knows."""
        return self.epoch.index(self.number)

    @property
    def shape(self) -> tuple[int, ...]:
        """Equal for batches of one shape."""
        return self.epoch.shape(self.number)

    def tensors(self, is_carried: bool = False) -> TensorBatch:
        """The batch, from the device or, where that holds the cache no more, from the host."""
        found = self.epoch.gather(self.number, is_carried=is_carried)
        if found is None:
            found = self.epoch.read(self.number)
            found = carried(found) if is_carried else found
        return found | (carried(self.extra) if is_carried else self.extra)


def stacked(batches: Sequence[Any], is_carried: bool = False) -> TensorBatch:
    """Batches of one shape as one: by a single gather where they are on the device in a row."""
    first = batches[0]
    if isinstance(first, ResidentBatch) and _are_a_row(batches):
        found = first.epoch.gather(first.number, len(batches), is_carried)
        if found is not None:
            return found
    whole = [
        one.tensors(is_carried)
        if isinstance(one, ResidentBatch)
        else (carried(one) if is_carried else one)
        for one in batches
    ]
    return {name: tf.stack([one[name] for one in whole]) for name in whole[0]}


def _are_a_row(batches: Sequence[Any]) -> bool:
    first = batches[0]
    return not first.extra and all(
        isinstance(one, ResidentBatch)
        and one.epoch is first.epoch
        and one.number == first.number + at
        for at, one in enumerate(batches)
    )


def resident_batches(
    residence: Residence,
    plan: BatchPlan,
    by_host: Callable[[BatchPlan], Batches],
    make_epoch: Callable[[Residence, BatchPlan], ResidentEpoch],
) -> Batches:
    """A plan's batches from wherever they are: from the device as soon as it holds the cache."""
    reader = "resident" if residence.is_ready else by_host(plan).reader
    make = partial(switching, residence, plan, lambda rest: by_host(rest).all_rows(), make_epoch)
    return Batches(make, plan, reader)


def switching(
    residence: Residence,
    plan: Any,
    by_host: Callable[[Any], Iterable[TensorBatch]],
    make_epoch: Callable[[Residence, Any], ResidentEpoch],
) -> Iterator[Any]:
    """A batch for each row of a plan; before each one it is seen who makes it."""
    row, epoch = 0, None
    while row < len(plan):
        if residence.is_ready:
            epoch = epoch or make_epoch(residence, plan)
            yield ResidentBatch(epoch, row)
            row += 1
            continue
        before = row
        with closing(_closable(by_host(plan.skip(row)))) as batches:
            for batch in batches:
                yield batch
                row += 1
                residence.count()
                if residence.is_ready:
                    break
        if row == before:
            return  # it has no more, whatever was planned


def _closable(batches: Iterable[TensorBatch]) -> Generator[TensorBatch, None, None]:
    yield from batches


# Whole utterances


def arrays_of(cache: PackedCache) -> dict[str, np.ndarray]:
    """The columns of a cache, and what is known of its utterances."""
    arrays = {name: data.array for name, data in cache.columns.items() if data.array is not None}
    if cache.embeddings is not None:
        arrays[EMBEDDING] = cache.embeddings.array
    return {**arrays, **tables(cache)}


def utterance_epoch(
    cache: PackedCache, options: ReaderOptions, residence: Residence, plan: BatchPlan
) -> ResidentEpoch:
    """An epoch of whole utterances on the device that holds their cache."""
    blocks = blocks_of(plan)
    sizes = block_sizes(cache, *blocks)
    first = plan.bounds[0]
    with tf.device(residence.device):
        order = tf.identity(tf.constant(plan.order[first : plan.bounds[-1]], tf.int64))

    def view(held: Held) -> Held:
        shapes = {name: [-1, sizes[name] * width] for name, width in widths(cache).items()}
        shapes["table"] = [-1, len(LABELS) + len(sizes)]
        if cache.embeddings is not None:
            shapes[EMBEDDING] = [-1, cache.embeddings.dim]
        with tf.device(residence.device):
            return {
                name: tf.reshape(x, shapes[name]) if name in shapes else x
                for name, x in held.items()
            }

    def read(number: int) -> TensorBatch:
        tokens, frames = int(plan.tokens[number]), int(plan.frames[number])
        return to_tensors(readers.make_batch(cache, plan[number], tokens, frames), options.device)

    types = {name: tf.as_dtype(data.column.dtype) for name, data in cache.columns.items()}
    dim = cache.embeddings.dim if cache.embeddings is not None else 0
    key = (*blocks, tuple(widths(cache).items()), tuple(types.items()), dim)
    return ResidentEpoch(
        residence,
        order,
        plan.bounds - first,
        np.stack([plan.frames, plan.tokens], axis=1),
        lambda number: plan[number].astype(np.int64),
        read,
        key,
        view,
        _gather_utterances(sizes, widths(cache), types),
    )


def _gather_utterances(
    sizes: Mapping[str, int], widths: Mapping[str, int], types: Mapping[str, tf.DType]
) -> Gather:
    def gather(held: Held, index: tf.Tensor, numbers: tf.Tensor) -> TensorBatch:
        with tf.device("/CPU:0"):
            frames, tokens = tf.unstack(tf.cast(numbers, tf.int32), 2)
        batch = gather_batch(held, sizes, widths, index, frames, tokens)
        return {name: as_type(x, types.get(name, x.dtype)) for name, x in batch.items()}

    return gather


def as_type(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The bits of a tensor as what they stand for."""
    return x if x.dtype == dtype else tf.bitcast(x, dtype)


def carried(batch: Mapping[str, tf.Tensor]) -> TensorBatch:
    """The batch with its int32 as the float32 of the same bits, which a GPU can hold."""
    return {
        name: tf.bitcast(x, tf.float32) if x.dtype == tf.int32 else x for name, x in batch.items()
    }
