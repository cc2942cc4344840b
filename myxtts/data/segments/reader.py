"""Batches of segments: gathered in the graph where they are stored, else cut by threads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from myxtts.data.batches.graph_reader import (
    TABLE,
    Gather,
    ReaderOptions,
    TensorBatch,
    finish,
    hand_over,
    shared_tensor,
    to_tensors,
)
from myxtts.data.batches.residence import Held, Residence
from myxtts.data.batches.resident import (
    ResidentEpoch,
    as_type,
    switching,
)
from myxtts.data.segments.segments import SegmentPlan, SegmentSource


@dataclass(frozen=True)
class SegmentBatches:
    """One epoch of batches of segments."""

    make: Callable[[], Iterable[TensorBatch]]
    plan: SegmentPlan

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[TensorBatch]:
        for _, batch in self.numbered():
            yield batch

    def numbered(self) -> Iterator[tuple[int, TensorBatch]]:
        """The batches with their rows in the plan; a row of which nothing is left is skipped."""
        for number, batch in enumerate(self.make()):
            if batch["index"].shape[0]:
                yield number, batch


def segment_batches(
    source: SegmentSource,
    plan: SegmentPlan,
    options: ReaderOptions,
    residence: Residence | None = None,
) -> SegmentBatches:
    """Segments of recordings for a vocoder, gathered in the graph where they are stored.

    With a residence they are gathered on its device, as soon as it holds the source.
    """
    by_host = partial(_segments_by_host, source, options)
    if residence is None:
        return SegmentBatches(partial(by_host, plan), plan)
    make_epoch = partial(segment_epoch, source, options)
    return SegmentBatches(partial(switching, residence, plan, by_host, make_epoch), plan)


def _segments_by_host(
    source: SegmentSource, options: ReaderOptions, plan: SegmentPlan
) -> Iterable[TensorBatch]:
    if source.is_stored and options.native:
        return native_segments(source, plan, options)
    ahead = options.prefetch if options.overlap else 0
    return hand_over(lambda: source.batches(plan, options.workers, ahead), options)


def native_segments(
    source: SegmentSource, plan: SegmentPlan, options: ReaderOptions
) -> tf.data.Dataset:
    """One gather per column and batch, in the graph, on the mapped arrays themselves."""
    cut = _segment_cuts.setdefault(source, {})
    if plan.frames not in cut:
        cut[plan.frames] = _build_segment_cut(source, plan.frames)
    gather = cut[plan.frames]
    first = plan.skipped * plan.batch_size
    with tf.device("/CPU:0"):
        rows = (plan.order[first:].astype(np.int64), plan.first[first:].astype(np.int64))
        dataset = tf.data.Dataset.from_tensor_slices(tuple(tf.constant(row) for row in rows))
    dataset = dataset.batch(plan.batch_size).map(gather)
    return finish(dataset, options, threads=1)


_segment_cuts: WeakKeyDictionary = WeakKeyDictionary()


def _build_segment_cut(source: SegmentSource, frames: int) -> Gather:
    """The function (positions, first frames) -> batch over a source's arrays."""
    with tf.device("/CPU:0"):
        held = {name: shared_tensor(column) for name, column in source.columns.items()}
        held[TABLE] = tf.constant(table_of(source))
    cut = partial(cut_segments, held, list(source.columns), frames, source.silence)
    signature = [tf.TensorSpec([None], tf.int64)] * 2
    return tf.function(cut, input_signature=signature, autograph=False)


def table_of(source: SegmentSource) -> np.ndarray:
    """The length of each utterance and where it starts in each column."""
    numbers = [source.lengths, *(source.starts[name] for name in source.columns)]
    return np.stack(numbers, axis=1).astype(np.int64)


def cut_segments(
    held: Mapping[str, tf.Tensor],
    names: Sequence[str],
    frames: int,
    silence: float,
    positions: tf.Tensor,
    first: tf.Tensor,
) -> TensorBatch:
    """Cut a segment from each column of each utterance; behind its end there is silence.

    The positions may be those of several batches, [batches, segments].
    """
    found = tf.gather(held[TABLE], positions)
    at = first[..., None] + tf.range(frames, dtype=tf.int64)
    is_inside = at < found[..., :1]
    at = tf.minimum(at, found[..., :1] - 1)
    batch = {}
    for number, name in enumerate(names, 1):
        rows = tf.gather(held[name], found[..., number : number + 1] + at)
        mask = is_inside[..., None] if held[name].shape.rank == 2 else is_inside
        nothing = silence if name == "mel" else 0
        batch[name] = tf.where(mask, rows, tf.cast(nothing, rows.dtype))
    waves = batch.pop("wave")
    with tf.device("/CPU:0"):  # shapes belong to the host
        shape = tf.concat([tf.shape(positions), [frames * waves.shape[-1]]], axis=0)
    return {
        **batch,
        "waveform": tf.reshape(waves, shape),
        "first_frame": tf.cast(first[..., 0], tf.int32),
        "index": positions,
    }


# On the device


def arrays_of(source: SegmentSource) -> dict[str, np.ndarray]:
    """The columns that segments are cut from, and where utterances are in them."""
    return {**source.columns, TABLE: table_of(source)}


def segment_epoch(
    source: SegmentSource, options: ReaderOptions, residence: Residence, plan: SegmentPlan
) -> ResidentEpoch:
    """An epoch of segments on the device that holds their source."""
    first = plan.skipped * plan.batch_size
    rows = np.stack([plan.order[first:], plan.first[first:]], axis=1).astype(np.int64)
    with tf.device(residence.device):
        order = tf.identity(tf.constant(rows))
    shapes = {name: [-1, *column.shape[1:]] for name, column in source.columns.items()}
    shapes[TABLE] = [-1, 1 + len(source.columns)]
    names = list(source.columns)
    types = {name: tf.as_dtype(column.dtype) for name, column in source.columns.items()}
    types["waveform"] = types["wave"]
    key = (plan.frames, source.silence, tuple(types.items()), tuple(map(tuple, shapes.values())))

    def view(held: Held) -> Held:
        with tf.device(residence.device):
            return {name: tf.reshape(x, shapes[name]) for name, x in held.items()}

    def read(number: int) -> TensorBatch:
        (batch,) = source.batches(plan.part(number), 1, 0)
        return to_tensors(batch, options.device)

    frames, silence = plan.frames, source.silence

    def gather(held: Held, rows: tf.Tensor, _: tf.Tensor) -> TensorBatch:
        at = rows[..., 0], rows[..., 1]
        batch = cut_segments(held, names, frames, silence, *at)
        return {name: as_type(x, types.get(name, x.dtype)) for name, x in batch.items()}

    ends = np.minimum(np.arange(len(plan) + 1) * plan.batch_size, len(rows))
    return ResidentEpoch(
        residence,
        order,
        ends,
        np.full([len(plan), 1], plan.frames),
        lambda number: plan[number].astype(np.int64),
        read,
        key,
        view,
        gather,
    )
