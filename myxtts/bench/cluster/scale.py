"""What a large corpus costs every worker: reading it, opening its cache and planning an epoch."""

import math
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from myxtts.bench.cluster.figures import ScaleCost
from myxtts.bench.synthetic_cache import make_index, utterance_frames, utterance_id
from myxtts.data.batches.parts import Share, SharedPlan
from myxtts.data.batches.plan import BatchOptions, plan_epoch
from myxtts.data.corpus.corpus import read_corpus
from myxtts.data.store.packed_cache import PackedCache, open_cache
from myxtts.data.store.store import Store

READ, SIZES = 20_000, (50_000, 200_000)
# The native reader keeps the labels of an utterance, and where its columns start, as int64.
LABELS, LABEL_BYTES = 4, 8


def measure_scale(folder: Path, options: BatchOptions, read: int = READ, sizes=SIZES) -> ScaleCost:
    """Time synthetic corpora, and extrapolate: reading and opening linearly, planning n log n.

    Call it in a new process. Bytes are those that Python and NumPy allocate, at their peak.
    """
    corpus = make_listing(folder / "corpus", read)
    read_seconds, read_bytes, _ = _cost(lambda: read_corpus(corpus, val_fraction=0.0))
    template = folder / "template"
    stores = [make_index(folder / f"{size}", template, size, "float16") for size in sizes]
    timed = [_open_and_plan(one, options) for one in stores]
    slope = (timed[1][0] - timed[0][0]) / (sizes[1] - sizes[0])
    plan = timed[1][1] / (sizes[1] * math.log2(sizes[1]))
    index_bytes, plan_bytes = _bytes(stores[0], options)
    return ScaleCost(
        read_seconds / read,
        max(0.0, slope),
        plan,
        read_bytes / read,
        index_bytes / sizes[0],
        plan_bytes / sizes[0],
    )


def make_listing(folder: Path, count: int) -> Path:
    """A corpus in the layout of LJSpeech whose recordings are empty: nothing reads them."""
    wavs = folder / "wavs"
    wavs.mkdir(parents=True, exist_ok=True)
    frames = utterance_frames(count)
    lines = []
    for number in range(count):
        name = utterance_id(number)
        (wavs / f"{name}.wav").touch()
        text = "lorem ipsum dolor sit amet " * (int(frames[number]) // 150 + 1)
        lines.append(f"{name}|{text}|{text}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _open_and_plan(stores: tuple[Store, Store], options: BatchOptions) -> tuple[float, float]:
    began = time.perf_counter()
    cache = open_cache(*stores)
    opened = time.perf_counter()
    _plan(cache, options)
    return opened - began, time.perf_counter() - opened


def _plan(cache: PackedCache, options: BatchOptions) -> SharedPlan:
    """What each worker does before an epoch: the whole plan, then its own share of it."""
    plan = plan_epoch(cache.text_lengths, cache.mel_lengths, options, 0, cache.speaker)
    return SharedPlan(plan, Share(2, 0, 2), options.per_speaker)


def _bytes(stores: tuple[Store, Store], options: BatchOptions) -> tuple[float, float]:
    """What opening takes at its peak, and what planning adds to what is then held."""
    held: list[PackedCache] = []
    _, opening, index = _cost(lambda: held.append(open_cache(*stores)))
    _, planning, _ = _cost(lambda: _plan(held[0], options))
    # The reader holds all numbers of an utterance, and its place in the plan, once more.
    planning += LABEL_BYTES * (LABELS + len(held[0].columns) + 1) * len(held[0])
    return (opening, 0.0) if opening > index + planning else (index, planning)


def _cost(action: Callable[[], Any]) -> tuple[float, float, float]:
    """The seconds of an action, and the bytes that it takes at its peak and afterwards.

    The seconds are of a first call; tracing every allocation of the second would count in them.
    """
    began = time.perf_counter()
    action()
    seconds = time.perf_counter() - began
    tracemalloc.start()
    try:
        kept = action()
        current, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return seconds, float(peak), float(current)
