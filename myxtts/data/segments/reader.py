"""Batches of segments: gathered in the graph where they are stored, else cut by threads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from myxtts.data.batches.graph_reader import (
    Gather,
    ReaderOptions,
    TensorBatch,
    finish,
    hand_over,
    shared_tensor,
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
    source: SegmentSource, plan: SegmentPlan, options: ReaderOptions
) -> SegmentBatches:
    """Segments of recordings for a vocoder, gathered in the graph where they are stored."""
    if source.is_stored and options.native:
        return SegmentBatches(lambda: native_segments(source, plan, options), plan)
    ahead = options.prefetch if options.overlap else 0
    make = lambda: source.batches(plan, options.workers, ahead)  # noqa: E731
    return SegmentBatches(lambda: hand_over(make, options), plan)


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
    names = list(source.columns)
    hop = source.settings.spec.hop_length
    with tf.device("/CPU:0"):
        columns = {name: shared_tensor(column) for name, column in source.columns.items()}
        numbers = [source.lengths, *(source.starts[name] for name in names)]
        table = tf.constant(np.stack(numbers, axis=1), tf.int64)
    silence = {"mel": source.silence}

    def cut(positions: tf.Tensor, first: tf.Tensor) -> TensorBatch:
        found = tf.gather(table, positions)
        at = first[:, None] + tf.range(frames, dtype=tf.int64)
        is_inside = at < found[:, :1]
        at = tf.minimum(at, found[:, :1] - 1)
        batch = {}
        for number, name in enumerate(names, 1):
            rows = tf.gather(columns[name], found[:, number : number + 1] + at)
            mask = is_inside[..., None] if rows.shape.rank == 3 else is_inside
            batch[name] = tf.where(mask, rows, tf.cast(silence.get(name, 0), rows.dtype))
        waveform = tf.reshape(batch.pop("wave"), [-1, frames * hop])
        noise = tf.cast(first[0], tf.int32)
        return {**batch, "waveform": waveform, "first_frame": noise, "index": positions}

    return tf.function(cut, input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
