"""The training or the validation part of a corpus, and the batches that are made of it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from myxtts.config.config import DataConfig
from myxtts.data.batches import auto_mode, readers
from myxtts.data.batches.filling import CacheFiller, batches_in_memory
from myxtts.data.batches.grouped_reader import grouped_batches
from myxtts.data.batches.plan import BatchOptions, BatchPlan, Layout, plan_epoch, plan_in_order
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.keys import keys_of, missing_features
from myxtts.data.features.location import CacheLocation
from myxtts.data.features.prepare import shard_size
from myxtts.data.rejections import Rejection
from myxtts.data.store.errors import CacheError
from myxtts.data.store.packed_cache import PackedCache, open_cache
from myxtts.data.store.view import StoreView
from myxtts.data.store.workers import worker_count

if TYPE_CHECKING:
    import tensorflow as tf

    from myxtts.data.batches.graph_reader import Batches, ReaderOptions
    from myxtts.data.batches.residence import Residence

logger = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, slots=True)
class Filling:
    """What one pass over a cache that fills has come to."""

    stored: int
    allowed_bytes: int  # that are left
    bad: set[str]  # the ids of unusable utterances


@dataclass
class Split:
    """Utterances, their cache, and how it is read.

    Reading never changes it: a pass that fills the cache adds to `fillings`, and whoever owns the
    split takes `refreshed(split)` in its place before the next epoch.
    """

    utterances: list[Utterance]
    cache: PackedCache
    location: CacheLocation
    plan_lengths: np.ndarray
    mode: str
    decision: auto_mode.Decision | None = None
    rejections: list[Rejection] = field(default_factory=list)
    known_bad: set[str] = field(default_factory=set)
    opened: str = ""  # what opening it came to, where nothing had to be decided
    fillings: list[Filling] = field(default_factory=list)  # shared with all that come from it
    folded: int = 0  # how many of the fillings its cache contains

    def __len__(self) -> int:
        return len(self.cache)

    @property
    def is_complete(self) -> bool:
        """Whether the features of every utterance that can be used are stored."""
        return bool((self.cache.is_cached | self.is_bad).all())

    @property
    def is_bad(self) -> np.ndarray:
        """Which utterances turned out to be unusable: they stay in the plan, but in no batch."""
        return np.array([u.id in self.known_bad for u in self.utterances], bool)

    def plan(self, options: BatchOptions, epoch: int = 0, shuffle: bool = True) -> BatchPlan:
        """Which utterances share a batch: the same in every run from the same seed and epoch."""
        lengths = (self.cache.text_lengths, self.plan_lengths, options)
        if shuffle:
            return plan_epoch(*lengths, epoch, self.cache.speaker, self.layout)
        return plan_in_order(*lengths)

    @property
    def layout(self) -> Layout | None:
        """Where the utterances lie, if this disk cannot hold all of them."""
        late = self.cache.late
        return None if late is None else Layout(late.shard, late.sizes, late.limit)

    def keep(self, chosen: np.ndarray, rejections: Sequence[Rejection]) -> "Split":
        """The same with some utterances only, and the reasons for the others."""
        positions = np.flatnonzero(chosen)
        utterances = [self.utterances[i] for i in positions.tolist()]
        return replace(
            self,
            utterances=utterances,
            cache=replace(self.cache.select(positions), recordings=utterances),
            plan_lengths=self.plan_lengths[positions],
            rejections=[*self.rejections, *rejections],
        )


def open_stores(location: CacheLocation, data: DataConfig, keys: np.ndarray) -> PackedCache:
    """The stored features and tokens of some utterances, mapped or read as configured."""
    return open_cache(
        location.features,
        location.tokens,
        keys,
        mapped=data.enable_memory_mapping,
        in_memory=data.memory_cache,
    )


def split_batches(
    split: Split,
    plan: BatchPlan,
    data: DataConfig,
    after: Callable[[], BatchPlan] | None = None,
    residence: "Residence | None" = None,
) -> "Batches":
    """Batches by the reader that fits the mode and what is stored; `after` is the next epoch.

    With a residence the batches of a complete cache are gathered on its device, once it is there.
    """
    from myxtts.data.batches import graph_reader, resident, runtime_reader

    options = graph_reader.reader_options(data)
    if split.mode == "runtime":
        return runtime_reader.runtime_batches(split.cache, plan, split.location.settings, options)
    if split.cache.late is not None:
        plan = plan.without(split.is_bad)
        make = partial(grouped_batches, split.cache, plan, data, after)
        return graph_reader.Batches(lambda: graph_reader.hand_over(make, options), plan, "grouped")
    if split.is_complete:
        plan = plan.without(split.is_bad)

        def by_host(plan: BatchPlan) -> "Batches":
            return _loaded(split, options, partial(graph_reader.cached_batches, split.cache, plan))

        if residence is None:
            return by_host(plan)
        make_epoch = partial(resident.utterance_epoch, split.cache, options)
        return resident.resident_batches(residence, plan, by_host, make_epoch)
    make = partial(_filling_batches, split, plan, data)
    return graph_reader.Batches(lambda: graph_reader.hand_over(make, options), plan, "filling")


def split_dataset(
    split: Split, plan: BatchPlan, data: DataConfig, parallel_calls: int | None = None
) -> "tf.data.Dataset":
    """The same batches as one epoch of a tf.data.Dataset."""
    from myxtts.data.batches import graph_reader, runtime_reader

    options = graph_reader.reader_options(data)
    if split.mode == "runtime":
        settings = split.location.settings
        dataset = runtime_reader.runtime_dataset(split.cache, plan, settings, options)
    elif split.cache.late is not None:
        make = partial(grouped_batches, split.cache, plan.without(split.is_bad), data)
        dataset = graph_reader.host_dataset(make, split.cache, options)
    elif split.is_complete:
        plan = plan.without(split.is_bad)
        load = partial(
            graph_reader.cached_dataset, split.cache, plan, parallel_calls=parallel_calls
        )
        dataset = _loaded(split, options, load)
    else:
        make = partial(_filling_batches, split, plan, data)
        dataset = graph_reader.host_dataset(make, split.cache, options)
    if split.mode == "precompute":
        return dataset
    return dataset.filter(lambda batch: len(batch["index"]) > 0)


def loaded(split: Split) -> Split:
    """The split with its features in memory, where only some shards at a time are on the disk."""
    late = split.cache.late
    return split if late is None else replace(split, cache=late.load(split.cache))


def _loaded(split: Split, options: "ReaderOptions", load: Callable[..., Loaded]) -> Loaded:
    """What is stored by the configured reader, or by the other one where native loading fails."""
    try:
        return load(options)
    except (CacheError, OSError, ValueError, RuntimeError) as error:
        if split.mode == "precompute" or not options.native:
            raise
        logger.warning(
            "native loading of %s failed (%s): using the host reader; "
            "verify_and_fix_cache(fix=True) or `myxtts cache fix` repairs a damaged cache",
            split.location.features.folder,
            error,
        )
        return load(replace(options, native=False))


def _filling_batches(split: Split, plan: BatchPlan, data: DataConfig) -> Iterator[readers.Batch]:
    """Batches of an incomplete cache, which stores what it lacks as far as `auto` decided."""
    split = refreshed(split, data)  # these batches may have been read, and stored, before
    decision = split.decision or auto_mode.Decision(auto_mode.STORE_NONE, 0, "")
    stores = decision.action in (auto_mode.STORE_ALL, auto_mode.STORE_SOME)
    filler = CacheFiller(
        split.utterances,
        split.location.settings,
        split.location.features if stores else None,
        decision.allowed_bytes,
        shard_size(len(split.utterances)),
        split.known_bad,
        expected=int((~split.cache.is_cached[plan.planned]).sum()),
    )
    lacking = int((~split.cache.is_cached & ~split.is_bad).sum())
    # All cores see to it that a batch is ready; what is further ahead is left to half of them.
    urgent = 2 * data.prefetch_buffer_size if data.optimize_cpu_gpu_overlap else 0
    ahead = max(urgent, batches_in_memory(plan, split.location.settings)) if urgent else 0
    workers = worker_count(data)
    try:
        yield from readers.filling_batches(split.cache, plan, filler, workers, ahead, urgent)
    finally:
        filler.close()
        if filler.stored:
            logger.info("stored the features of %d of %d utterances", filler.stored, lacking)
        if filler.stored or filler.bad != split.known_bad:
            split.fillings.append(Filling(filler.stored, filler.allowed_bytes, filler.bad))


def refreshed(split: Split, data: DataConfig) -> Split:
    """The split with all that its batches have stored, or found unusable, until now."""
    new = split.fillings[split.folded :]
    if not new:
        return split
    bad = split.known_bad.union(*(filling.bad for filling in new))
    split = replace(split, known_bad=bad, folded=split.folded + len(new))
    if split.decision and any(filling.stored for filling in new):
        allowed = min(filling.allowed_bytes for filling in new)
        split.decision = replace(split.decision, allowed_bytes=allowed)
        split.cache = with_stored_features(split, data)
    return split


def with_stored_features(split: Split, data: DataConfig) -> PackedCache:
    """The split's cache opened anew, with what has been stored since."""
    fresh = open_stores(split.location, data, keys_of(split.utterances))
    fresh = fresh.numbered(split.cache.speakers, split.cache.languages)
    # A recording that has changed since may still have its old features there.
    stale = missing_features(split.utterances, StoreView(split.location.features))
    fresh = fresh.without_features(stale)
    lengths = np.where(fresh.is_cached, fresh.mel_lengths, split.plan_lengths).astype(np.int32)
    return replace(
        fresh,
        mel_lengths=lengths,
        recordings=split.cache.recordings,
        embeddings=split.cache.embeddings,
    )
