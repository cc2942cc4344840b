"""Batches as arrays of NumPy, made by background threads: no TensorFlow, no call per frame.

A batch is a dict:
    tokens        int32   [batch, tokens]        padded with 0
    text_lengths  int32   [batch]
    mel           stored  [batch, frames, mels]  padded with 0, in the stored type
    mel_lengths   int32   [batch]
    energy        float32 [batch, frames]
    pitch         float32 [batch, frames]        Hz, 0 where unvoiced
    speaker       int32   [batch]
    language      int32   [batch]
    index         int64   [batch]                positions in the cache, to name the utterances
    embedding     float32 [batch, dim]           of a frozen encoder of voices, where there is one
"""

import logging
import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.data.batches.ahead import worked_ahead
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.store.mmap import aligned_empty
from myxtts.data.store.packed_cache import PackedCache
from myxtts.data.store.shard_writer import BLOCK
from myxtts.data.store.view import NOT_CACHED, ColumnData
from myxtts.monitoring.timers import BATCHING, stage

logger = logging.getLogger(__name__)

BUNDLE = 16
Batch = dict[str, np.ndarray]
Lookup = Callable[[int], dict[str, np.ndarray] | None]
Item = TypeVar("Item")
Result = TypeVar("Result")


def host_batches(cache: PackedCache, plan: BatchPlan) -> Iterator[Batch]:
    """Copy slices of the columns into fresh padded arrays, batch by batch."""
    for number in range(len(plan)):
        yield make_batch(cache, plan[number], int(plan.tokens[number]), int(plan.frames[number]))


def filling_batches(
    cache: PackedCache,
    plan: BatchPlan,
    lookup: Lookup,
    workers: int,
    ahead: int,
    urgent: int | None = None,
) -> Iterator[Batch]:
    """The same where some features are not stored: `lookup` computes them, some batches ahead.

    Only half of the workers go further ahead than `urgent` batches. An utterance for which `lookup`
    has nothing leaves its batch one smaller, down to none.
    """
    cached = cache.is_cached
    jobs = worked_ahead(plan, lookup, lambda i: not cached[i], workers, ahead, urgent)
    for number, found in jobs:
        positions = plan[number]
        keep = np.array([found.get(i, True) is not None for i in positions.tolist()], bool)
        tokens, frames = int(plan.tokens[number]), int(plan.frames[number])
        yield make_batch(cache, positions[keep], tokens, frames, found)


def mapped_ahead(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int
) -> Iterator[Result]:
    """Work on items in threads, one ahead for each of them, and give the results in order."""
    pool = ThreadPoolExecutor(workers)
    pending: deque = deque()
    source = iter(items)
    try:
        for item in source:
            pending.append(pool.submit(work, item))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if hasattr(source, "close"):
            source.close()


def make_batch(
    cache: PackedCache,
    positions: np.ndarray,
    tokens: int,
    frames: int,
    computed: dict[int, dict[str, np.ndarray] | None] | None = None,
) -> Batch:
    """One padded batch; `computed` holds the features of utterances that are not stored."""
    with stage(BATCHING):
        return _make_batch(cache, positions, tokens, frames, computed or {})


def _make_batch(
    cache: PackedCache,
    positions: np.ndarray,
    tokens: int,
    frames: int,
    computed: dict[int, dict[str, np.ndarray] | None],
) -> Batch:
    lengths = cache.mel_lengths[positions].astype(np.int32)
    for row, position in enumerate(positions.tolist()):
        if (features := computed.get(position)) is not None:
            lengths[row] = len(features["mel"])
    batch = labels(cache, positions, lengths)
    for name, data in cache.columns.items():
        width, own = (tokens, batch["text_lengths"]) if name == "tokens" else (frames, lengths)
        starts = cache.starts[name][positions]
        stored = np.where(starts == NOT_CACHED, 0, own)
        batch[name] = _padded_rows(data, starts, stored, width)
        for row, position in enumerate(positions.tolist() if name != "tokens" else ()):
            if (features := computed.get(position)) is not None:
                batch[name][row, : own[row]] = features[name]
    return batch


def _padded_rows(
    data: ColumnData, starts: np.ndarray, lengths: np.ndarray, width: int
) -> np.ndarray:
    """Copy utterances out of a column into one array that is padded with zeros."""
    shape = (len(starts), width) + ((data.column.width,) if data.column.width > 1 else ())
    out = aligned_empty(shape, data.column.dtype)
    array = data.array
    if array is not None and len(array):  # nothing is stored yet where it is empty
        rows = math.gcd(BLOCK, width)
        blocks = data.column.blocks(array, rows)
        steps = np.arange(width // rows)
        taken = starts[:, None] // rows + steps
        taken[steps >= -(-lengths // rows)[:, None]] = len(blocks) - 1
        # Any mode but "raise" writes straight into `out`.
        np.take(blocks, taken, axis=0, out=out.reshape(*taken.shape, blocks.shape[1]), mode="clip")
        return out
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        data.copy(start, length, out[row])
        out[row, length:] = 0
    return out


def log_once(logged: set[str], error: AudioError) -> None:
    """Log that a recording is dropped from its batch, once and not in every epoch."""
    # Added before it is logged: another thread may come across the same recording.
    if str(error) not in logged:
        logged.add(str(error))
        logger.warning("dropped from its batches: %s", error)


def labels(cache: PackedCache, positions: np.ndarray, mel_lengths: np.ndarray) -> Batch:
    """The parts of a batch that say one thing of each utterance."""
    found = {
        "text_lengths": cache.text_lengths[positions].astype(np.int32),
        "mel_lengths": mel_lengths,
        "speaker": cache.speaker[positions],
        "language": cache.language[positions],
        "index": positions.astype(np.int64),
    }
    if cache.embeddings is not None:
        found["embedding"] = cache.embeddings[positions]
    return found


def in_background(
    items: Iterable[Item], ahead: int, is_light: Callable[[Item], bool] = lambda item: False
) -> Iterator[Item]:
    """Run an iterator in a thread of its own, one item or more ahead; its errors are raised here.

    Items that are light, and so cost less than a change of threads, count as one in bundles of up
    to BUNDLE, which are not waited for where nothing else is ready.
    Taking an item that is ready is what a step waits for: two queues of C, and no lock of Python.
    The thread lets go of an item last, when two behind it were taken, so that freeing it is its
    work too, and next to the step.
    """
    ready: queue.SimpleQueue = queue.SimpleQueue()
    slots: queue.SimpleQueue = queue.SimpleQueue()
    for _ in range(ahead):
        slots.put(None)
    stopped = threading.Event()
    end = object()

    def produce() -> None:
        source = iter(items)
        alive: deque = deque()
        try:
            for bundle in _bundled(source, is_light, ready.empty):
                slots.get()
                if stopped.is_set():
                    break
                ready.put(bundle)
                alive.append(bundle)
                # Those that wait, the one in use, and the one before it.
                while len(alive) > ahead - slots.qsize() + 2:
                    alive.popleft()
            ready.put(end)
        except BaseException as error:
            ready.put(error)
        finally:
            if hasattr(source, "close"):
                source.close()

    thread = threading.Thread(target=produce, name="batches", daemon=True)
    thread.start()
    try:
        while (bundle := ready.get()) is not end:
            if isinstance(bundle, BaseException):
                raise bundle
            slots.put(None)
            yield from bundle
    finally:
        stopped.set()
        slots.put(None)
        thread.join()


def _bundled(
    items: Iterable[Item], is_light: Callable[[Item], bool], is_awaited: Callable[[], bool]
) -> Iterator[list[Item]]:
    """Light items that follow each other in bundles, and any other item on its own."""
    bundle: list[Item] = []
    for item in items:
        light = is_light(item)
        if bundle and not light:
            yield bundle
            bundle = []
        bundle.append(item)
        if not light or len(bundle) == BUNDLE or is_awaited():
            yield bundle
            bundle = []
    if bundle:
        yield bundle


def reading_ahead(
    cache: PackedCache, plan: BatchPlan, batches: int
) -> Callable[[int], None] | None:
    """A function that is logged the batch just taken, and has the kernel read those to come.

    None where the cache is in memory already: asking costs more than it saves there.
    """
    if cache.columns["mel"].resident_fraction() > 0.95 or not cache.is_cached.all():
        return None
    for number in range(min(batches, len(plan))):
        cache.read_ahead(plan[number])

    def advance(taken: int) -> None:
        if taken + batches < len(plan):
            cache.read_ahead(plan[taken + batches])

    return advance
