"""Batches for TensorFlow: gathered in the graph, copied by a thread, or computed on the fly."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache as cached_once
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from myxtts.config.config import DataConfig
from myxtts.data.batches import readers
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mmap import keep_freed_memory
from myxtts.data.store.packed_cache import PackedCache
from myxtts.data.store.shard_writer import BLOCK
from myxtts.data.store.view import ColumnData
from myxtts.data.store.workers import worker_count
from myxtts.monitoring.timers import HAND_OVER, stage
from myxtts.runtime import gpus

logger = logging.getLogger(__name__)

TensorBatch = dict[str, tf.Tensor]
Gather = Callable[..., TensorBatch]
LABELS = ("text_lengths", "mel_lengths", "speaker", "language")
# What a gather needs besides the columns: a row of numbers for each utterance, and its embedding.
TABLE, SPEAKER_ROWS, EMBEDDING = "table", "speaker rows", "embedding"


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """How batches are brought to the step."""

    native: bool = True
    prefetch: int = 4
    overlap: bool = True
    device: str = ""
    workers: int = 2


def reader_options(data: DataConfig) -> ReaderOptions:
    """What a configuration says, as far as this machine can do it; the log says where it cannot."""
    device = _gpu() if data.prefetch_to_gpu and data.optimize_cpu_gpu_overlap else ""
    native = data.use_tf_native_loading
    if native and not (data.enable_memory_mapping or data.memory_cache):
        logger.warning(
            "native loading needs the cache mapped or in memory, and enable_memory_mapping and "
            "memory_cache are off: using the host reader"
        )
        native = False
    return ReaderOptions(
        native=native,
        prefetch=data.prefetch_buffer_size,
        overlap=data.optimize_cpu_gpu_overlap,
        device=device,
        workers=worker_count(data),
    )


@cached_once
def _gpu() -> str:
    """The device that batches go to ahead of their step, or none."""
    if gpus():
        return "/GPU:0"
    logger.info("prefetch_to_gpu: inactive: no GPU")
    return ""


class Batches:
    """One epoch of batches; remembers how long each one was awaited."""

    def __init__(self, make: Callable[[], Iterable[TensorBatch]], plan: BatchPlan, reader: str):
        self._make = make
        self.plan = plan
        self.reader = reader
        self.data_ms: list[float] = []

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[TensorBatch]:
        for _, batch in self.numbered():
            yield batch

    def all_rows(self) -> Iterable[TensorBatch]:
        """A batch for every row of the plan, also where nothing is left of it."""
        return self._make()

    def numbered(self, with_empty: bool = False) -> Iterator[tuple[int, TensorBatch]]:
        """The batches with their rows in the plan; a row of which nothing is left is skipped.

        With empty ones, every row has its batch: replicas must take the same steps.
        """
        self.data_ms = []
        source = enumerate(self._make())
        began = time.perf_counter()
        for number, batch in source:
            if with_empty or batch["index"].shape[0]:
                self.data_ms.append(1e3 * (time.perf_counter() - began))
                yield number, batch
                began = time.perf_counter()


def cached_batches(cache: PackedCache, plan: BatchPlan, options: ReaderOptions) -> Batches:
    """Batches of a complete cache, by the native or the host reader: the same bits by either."""
    keep_freed_memory()
    if options.native:
        dataset = native_dataset(cache, plan, options)

        def make() -> Iterable[TensorBatch]:
            # Taking a batch from tf.data wakes its threads: a thread of ours does that ahead.
            ready = readers.in_background(dataset, 2) if options.overlap else dataset
            return _with_read_ahead(ready, cache, plan, options)

        return Batches(make, plan, "native")
    make = lambda: readers.host_batches(cache, plan)  # noqa: E731
    return Batches(
        lambda: _with_read_ahead(hand_over(make, options), cache, plan, options), plan, "host"
    )


def cached_dataset(
    cache: PackedCache, plan: BatchPlan, options: ReaderOptions, parallel_calls: int | None = None
) -> tf.data.Dataset:
    """The same as one epoch of a dataset."""
    if options.native:
        return native_dataset(cache, plan, options, parallel_calls)
    return host_dataset(partial(readers.host_batches, cache, plan), cache, options)


def native_dataset(
    cache: PackedCache, plan: BatchPlan, options: ReaderOptions, parallel_calls: int | None = None
) -> tf.data.Dataset:
    """One gather per column and batch, in the graph, on the mapped arrays themselves."""
    gather = _native_gather(cache, plan)
    with tf.device("/CPU:0"):
        order = tf.constant(plan.order, tf.int64)
        rows = (plan.bounds[:-1], plan.bounds[1:], plan.frames, plan.tokens)
        dataset = tf.data.Dataset.from_tensor_slices(tuple(tf.constant(row) for row in rows))
    row = lambda first, last, frames, tokens: gather(order[first:last], frames, tokens)  # noqa: E731
    # It has no Python to convert, and looking for it takes .06 CPU-seconds an epoch.
    row = tf.autograph.experimental.do_not_convert(row)
    dataset = dataset.map(row, num_parallel_calls=parallel_calls)
    # Nothing runs next to the gather, and a second thread would spend its time spinning.
    return finish(dataset, options, threads=parallel_calls or 1)


def host_dataset(
    make: Callable[[], Iterable[readers.Batch]], cache: PackedCache, options: ReaderOptions
) -> tf.data.Dataset:
    """Batches of NumPy arrays as a tf.data pipeline: one call of Python per batch."""
    dataset = tf.data.Dataset.from_generator(make, output_signature=batch_signature(cache))
    return finish(dataset, options)


def hand_over(
    make: Callable[[], Iterable[readers.Batch]], options: ReaderOptions
) -> Iterator[TensorBatch]:
    """Turn arrays into tensors without a copy, ahead of the step and onto its device if asked."""
    tensors = (to_tensors(batch, options.device) for batch in make())
    return readers.in_background(tensors, options.prefetch) if options.overlap else tensors


def shared_tensor(array: np.ndarray) -> tf.Tensor:
    """The array's own memory as a tensor; the array lives as long as the tensor."""
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _native_gather(cache: PackedCache, plan: BatchPlan) -> Gather:
    """The function (index, frames, tokens) -> batch over a cache's tensors, traced only once."""
    blocks = blocks_of(plan)
    gathers = _gathers.setdefault(cache, {})
    if blocks not in gathers:
        gathers[blocks] = _build_gather(cache, *blocks)
    return gathers[blocks]


_gathers: WeakKeyDictionary = WeakKeyDictionary()


def blocks_of(plan: BatchPlan) -> tuple[int, int]:
    """The rows of mels and of tokens that can be gathered together for all batches of a plan."""
    return math.gcd(BLOCK, *plan.frames.tolist()), math.gcd(BLOCK, *plan.tokens.tolist())


def _build_gather(cache: PackedCache, frame_block: int, token_block: int) -> Gather:
    """The gather over the mapped arrays themselves."""
    sizes = block_sizes(cache, frame_block, token_block)
    with tf.device("/CPU:0"):
        held = {
            name: shared_tensor(_blocks(data, sizes[name])) for name, data in cache.columns.items()
        }
        held |= {name: tf.constant(array) for name, array in tables(cache).items()}
        if cache.embeddings is not None:
            held[EMBEDDING] = shared_tensor(cache.embeddings.array)
    gather = partial(gather_batch, held, sizes, widths(cache))
    scalar = tf.TensorSpec([], tf.int32)
    signature = [tf.TensorSpec([None], tf.int64), scalar, scalar]
    return tf.function(gather, input_signature=signature, autograph=False)


def block_sizes(cache: PackedCache, frame_block: int, token_block: int) -> dict[str, int]:
    """The rows of a block of each column: blocks are what is gathered."""
    return {name: token_block if name == "tokens" else frame_block for name in cache.columns}


def widths(cache: PackedCache) -> dict[str, int]:
    """The values in a row of each column."""
    return {name: data.column.width for name, data in cache.columns.items()}


def tables(cache: PackedCache) -> dict[str, np.ndarray]:
    """What is known of each utterance, in one row: one small gather instead of eight."""
    numbers = [getattr(cache, label) for label in LABELS]
    numbers += [cache.starts[name] for name in cache.columns]
    found = {TABLE: np.stack(numbers, axis=1).astype(np.int64)}
    if cache.embeddings is not None:
        found[SPEAKER_ROWS] = cache.embeddings.rows.astype(np.int64)
    return found


def gather_batch(
    held: Mapping[str, tf.Tensor],
    sizes: Mapping[str, int],
    widths: Mapping[str, int],
    index: tf.Tensor,
    frames: tf.Tensor,
    tokens: tf.Tensor,
) -> TensorBatch:
    """Gather blocks of rows: each utterance starts on one, and zeros fill its last.

    `held` has each column as blocks, with a block of zeros at its end, and what `tables` gives.
    The index may be that of several batches of one shape, [batches, utterances].
    """
    numbers = tf.gather(held[TABLE], index)
    # Slices, because on a GPU unstacking goes through the memory of the host.
    found = {name: numbers[..., at] for at, name in enumerate([*LABELS, *sizes])}
    batch = {label: tf.cast(found[label], tf.int32) for label in LABELS}
    for name, rows in sizes.items():
        column, is_text = held[name], name == "tokens"
        width, length = (tokens, "text_lengths") if is_text else (frames, "mel_lengths")
        tail = [widths[name]] if widths[name] > 1 else []
        with tf.device("/CPU:0"):  # shapes belong to the host
            steps = tf.range(tf.cast(width // rows, tf.int64))
            pad = tf.shape(column, tf.int64)[0] - 1
            shape = tf.concat([tf.shape(index), [width, *tail]], axis=0)
        filled = -(-found[length] // rows)
        first = found[name] // rows
        taken = tf.where(steps < filled[..., None], first[..., None] + steps, pad)
        batch[name] = tf.reshape(tf.gather(column, taken), shape)
    if EMBEDDING in held:
        batch[EMBEDDING] = tf.gather(held[EMBEDDING], tf.gather(held[SPEAKER_ROWS], index))
    return batch | {"index": index}


def _blocks(data: ColumnData, rows: int) -> np.ndarray:
    if data.array is None:
        raise CacheError(
            f"native loading needs the column {data.column.name!r} mapped or in memory: set "
            "enable_memory_mapping or memory_cache, or use_tf_native_loading=false"
        )
    return data.column.blocks(data.array, rows)


def finish(dataset: tf.data.Dataset, options: ReaderOptions, threads: int = 2) -> tf.data.Dataset:
    """Prefetch to the host or the device, and keep tf.data from copying mapped tensors."""
    settings = tf.data.Options()
    # The default graph rewrites copy captured tensors into memory: all of the cache.
    settings.experimental_optimization.apply_default_optimizations = False
    settings.autotune.enabled = False
    settings.deterministic = True
    if options.overlap:
        settings.threading.private_threadpool_size = threads
        dataset = dataset.prefetch(options.prefetch)
    dataset = dataset.with_options(settings)
    if options.device:
        to_device = tf.data.experimental.prefetch_to_device(options.device, options.prefetch)
        dataset = dataset.apply(to_device)
    return dataset


def to_tensors(batch: readers.Batch, device: str) -> TensorBatch:
    with stage(HAND_OVER):
        with tf.device("/CPU:0"):
            tensors = {name: tensor_of(array) for name, array in batch.items()}
        return on_device(tensors, device)


def on_device(batch: TensorBatch, device: str) -> TensorBatch:
    if not device:
        return batch
    with tf.device(device):
        return {name: tf.identity(tensor) for name, tensor in batch.items()}


def tensor_of(array: np.ndarray) -> tf.Tensor:
    """Without a copy where the array is aligned as kernels want it; the small ones are copied."""
    aligned = array.ctypes.data % 64 == 0 and array.flags.c_contiguous and array.size > 1024
    return shared_tensor(array) if aligned else tf.constant(array)


def _with_read_ahead(
    batches: Iterable[TensorBatch], cache: PackedCache, plan: BatchPlan, options: ReaderOptions
) -> Iterable[TensorBatch]:
    advance = readers.reading_ahead(cache, plan, 4 * options.prefetch)
    return batches if advance is None else _advancing(batches, advance)


def _advancing(
    batches: Iterable[TensorBatch], advance: Callable[[int], None]
) -> Iterator[TensorBatch]:
    for taken, batch in enumerate(batches):
        advance(taken)
        yield batch


def batch_signature(cache: PackedCache, skip: tuple[str, ...] = ()) -> dict[str, tf.TensorSpec]:
    spec = {name: tf.TensorSpec([None], tf.int32) for name in LABELS}
    spec["index"] = tf.TensorSpec([None], tf.int64)
    for name, data in cache.columns.items():
        if name not in skip:
            shape = [None, None] + ([data.column.width] if data.column.width > 1 else [])
            spec[name] = tf.TensorSpec(shape, data.column.dtype)
    if cache.embeddings is not None:
        spec["embedding"] = tf.TensorSpec([None, cache.embeddings.dim], tf.float32)
    return spec
