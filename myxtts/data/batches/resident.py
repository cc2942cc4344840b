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

# (what the device holds, the epoch's order, the numbers of the batches) -> batch
Take = Callable[[Held, tf.Tensor, tf.Tensor], TensorBatch]

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
    key: Any
    view: Callable[[Held], Held]
    takes: "Takes"

    def shape(self, number: int) -> tuple[int, ...]:
        """Equal for batches of one shape."""
        first, last = self.bounds[number : number + 2].tolist()
        return last - first, *self.sizes[number].tolist()

    def gather(self, first: int, count: int = 0, is_carried: bool = False) -> TensorBatch | None:
        """A batch, or `count` of them in a row, stacked; None where that is up to the host."""
        held = self.residence.view(self.key, self.view)
        if held is None:
            return None
        last = first + max(1, count)
        rows = self.bounds[first], self.bounds[last], max(1, count)
        with stage(GATHER):
            with tf.device("/CPU:0"):
                numbers = tf.constant([*map(int, rows), *self.sizes[first].tolist()], tf.int64)
            try:
                return self.takes(held, self.order, numbers, count > 0, is_carried)
            except tf.errors.ResourceExhaustedError:
                held = None
        self.residence.drop("gathering a batch ran out of memory")
        return None


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
        _utterance_takes(residence.device, sizes, widths(cache), types, key),
    )


def _utterance_takes(
    device: str,
    sizes: Mapping[str, int],
    widths: Mapping[str, int],
    types: Mapping[str, tf.DType],
    key: Any,
) -> "Takes":
    def gather(held: Held, index: tf.Tensor, numbers: tf.Tensor) -> TensorBatch:
        with tf.device("/CPU:0"):
            frames, tokens = tf.unstack(tf.cast(numbers, tf.int32), 2)
        batch = gather_batch(held, sizes, widths, index, frames, tokens)
        return {name: as_type(x, types.get(name, x.dtype)) for name, x in batch.items()}

    return takes(("utterances", device, key), device, gather)


def as_type(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The bits of a tensor as what they stand for."""
    return x if x.dtype == dtype else tf.bitcast(x, dtype)


def carried(batch: Mapping[str, tf.Tensor]) -> TensorBatch:
    """The batch with its int32 as the float32 of the same bits, which a GPU can hold."""
    return {
        name: tf.bitcast(x, tf.float32) if x.dtype == tf.int32 else x for name, x in batch.items()
    }


class Takes:
    """The functions that gather one batch, and several that are stacked; each is traced once.

    They hold nothing of the device's memory: what they gather from is given to them. `gather` has
    rows of the order [rows, ...] or [batches, rows, ...].
    """

    def __init__(self, device: str, gather: Take):
        self.device, self._gather = device, gather
        self._graphs: dict[tuple[bool, bool], Callable] = {}

    def __call__(
        self, held: Held, order: tf.Tensor, numbers: tf.Tensor, is_many: bool, is_carried: bool
    ) -> TensorBatch:
        """Gather what the numbers say: first row, last row, batches, and what `gather` wants."""
        key = is_many, is_carried
        if key not in self._graphs:
            self._graphs[key] = self.graph(held, order, numbers, *key)
        return self._graphs[key](held, order, numbers)

    def graph(
        self, held: Held, order: Any, numbers: Any, is_many: bool, is_carried: bool
    ) -> Callable[..., TensorBatch]:
        """The function as one graph, also where functions run eagerly."""
        specs = tf.nest.map_structure(
            lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), (held, order)
        )
        numbers = tf.TensorSpec(numbers.shape, numbers.dtype)

        def take(held: Held, order: tf.Tensor, numbers: tf.Tensor) -> TensorBatch:
            # XLA would compile for every place in the order.
            with tf.xla.experimental.jit_scope(compile_ops=False), tf.device(self.device):
                with tf.device("/CPU:0"):
                    first, last, count, rest = numbers[:1], numbers[1:2], numbers[2], numbers[3:]
                    shape = tf.stack([count, (last[0] - first[0]) // count, *order.shape[1:]])
                    each = tf.ones([1], tf.int64)
                rows = tf.strided_slice(order, first, last, each)
                rows = tf.reshape(rows, shape) if is_many else rows
                batch = self._gather(held, rows, rest)
                return carried(batch) if is_carried else batch

        return tf.function(take, autograph=False).get_concrete_function(*specs, numbers)


_takes: dict[Any, Takes] = {}


def takes(key: Any, device: str, gather: Take) -> Takes:
    """The functions that gather in one way: epochs and runs share them."""
    return _takes.setdefault(key, Takes(device, gather))
