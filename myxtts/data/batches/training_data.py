"""A corpus opened for training, as one configuration says, with its batches epoch by epoch."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.data.batches.filling import batches_in_memory
from myxtts.data.batches.limits import check_unusable
from myxtts.data.batches.modes import ModeOpener
from myxtts.data.batches.parts import Share, SharedPlan
from myxtts.data.batches.plan import BatchOptions, BatchPlan, describe_layout
from myxtts.data.batches.profiler import usable_profiler
from myxtts.data.batches.readers import in_background
from myxtts.data.batches.split import Split, loaded, refreshed, split_batches
from myxtts.data.batches.tenancy import Tenancy
from myxtts.data.corpus.language_check import check_languages
from myxtts.data.corpus.utterance import CorpusError, with_speed_perturbation
from myxtts.data.features.corpora import build_tokenizer, languages_of, read_corpora
from myxtts.data.features.embeddings import VoiceEncoder, compute_embeddings, store_embeddings
from myxtts.data.rejections import Rejection
from myxtts.data.store.errors import CacheError
from myxtts.data.store.packed_cache import Embeddings
from myxtts.monitoring.progress import Progress
from myxtts.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

    from myxtts.data.batches.graph_reader import Batches

logger = logging.getLogger(__name__)

# Of features that are computed, at most so many batches are ready, and so many bytes of them.
MOST_READY, READY_BYTES = 32, 128 << 20

READERS = {
    "native": "batches are gathered in the graph from the cache",
    "host": "a thread copies batches from the cache",
    "filling": "features that are not stored are computed while the epoch runs",
    "grouped": "a thread copies batches of some shards while the next ones are fetched",
    "resident": "batches are gathered on the device, which holds the cache",
    "runtime": "features are computed from the recordings in every epoch",
}


@dataclass(frozen=True)
class KnownTables:
    """What an earlier model was trained with: new names are numbered after its own."""

    tokenizer: Tokenizer
    speakers: tuple[str, ...]
    languages: tuple[str, ...]


class TrainingData:
    """Opens a corpus as the configuration says, and makes its batches epoch by epoch."""

    def __init__(
        self,
        config: XTTSConfig,
        progress: Progress | None = None,
        encoder: VoiceEncoder | None = None,
        known: KnownTables | None = None,
    ):
        self.config = config
        self.share: Share | None = None  # of every batch, where it is computed in parts
        # The reader of each part as it was logged last; None where nobody wants to know.
        self.readers: dict[str, str] | None = {}
        self.tenancy = Tenancy()
        self.profiler = usable_profiler(config.data.profiler)
        corpus, held_out = read_corpora(config.data)
        self.corpus = corpus
        corpora = [corpus, held_out] if held_out else [corpus]
        train = with_speed_perturbation(corpus.train, config.data.voice_augmentation)
        self.tokenizer = (
            known.tokenizer.with_languages(languages_of(corpora), config.data.espeak_alone)
            if known
            else build_tokenizer(corpora, config.data)
        )
        check_languages(corpora, self.tokenizer)
        # Who speaks in validation alone has no number, for nothing is learnt of them.
        speakers = {one.speaker for one in train}
        opener = ModeOpener(config, self.tokenizer, corpora, progress, self.profiler, speakers)
        if known:
            opener.number_after(known.speakers, known.languages)
        self.train = opener.open(train, corpus.root, "training")
        if self.train.layout:
            logger.info("training: %s", describe_layout(self.train.layout))
        validation = held_out or corpus
        utterances = held_out.utterances if held_out else corpus.val
        self.val = opener.open(utterances, validation.root, "validation") if utterances else None
        if encoder:
            self.train = with_embeddings(self.train, encoder, config.data, progress)
            self.val = self.val and with_embeddings(self.val, encoder, config.data, progress)

    def refresh(self) -> None:
        """Take up what the epochs until now have stored, or found unusable."""
        self.train = refreshed(self.train, self.config.data)
        self.val = self.val and refreshed(self.val, self.config.data)

    def train_batches(self, epoch: int = 0, start: int = 0) -> "Batches":
        """The batches of an epoch, from any of them on."""
        return self._own_batches(self._train_plan(epoch, start), epoch)

    def _train_plan(self, epoch: int, start: int) -> BatchPlan:
        self.refresh()
        return self.train.plan(self.batch_options, epoch).skip(start)

    def release(self) -> bool:
        """Free what the device holds of the cache; say whether that was anything."""
        return self.tenancy.release()

    def _own_batches(self, plan: BatchPlan, epoch: int, on_device: bool = False) -> "Batches":
        after = partial(self.train.plan, self.batch_options, epoch + 1)
        data = self.config.data
        residence = self.tenancy.of_split(self.train, data) if on_device else None
        batches = split_batches(self.train, plan, data, after, residence)
        self._log_reader("training", batches.reader)
        return batches

    def stream(self, epoch: int = 0, start: int = 0) -> Iterator[tuple[int, int, dict]]:
        """Endless (epoch, number, batch), from any on: the next epoch opens before it is due."""
        batches = self._epochs(epoch, start)
        if not self.config.data.optimize_cpu_gpu_overlap:
            return batches
        return in_background(batches, self._ahead(epoch), is_resident)

    def _ahead(self, epoch: int) -> int:
        """How many batches are made ready: more where they are computed, which takes long at times.

        So the step waits neither where the computing pauses, nor until all that was computed in the
        first epoch is opened as a cache.
        """
        asked, split = self.config.data.prefetch_buffer_size, self.train
        if split.is_complete or split.cache.late is not None:
            return asked
        plan = split.plan(self.batch_options, epoch)
        room = batches_in_memory(plan, split.location.settings, READY_BYTES)
        return max(asked, min(MOST_READY, room))

    def _epochs(self, epoch: int, start: int) -> Iterator[tuple[int, int, dict]]:
        while True:
            number = None
            for number, batch in self._epoch(epoch, start):
                yield epoch, start + number, batch
            if number is None and start == 0:
                raise CorpusError(f"{self.corpus.root}: none of its recordings can be used")
            epoch, start = epoch + 1, 0

    def _epoch(self, epoch: int, start: int) -> Iterator[tuple[int, dict]]:
        """The numbered batches of an epoch; where they are shared, with the part of each row."""
        plan = self._train_plan(epoch, start)
        if self.share is None:
            yield from self._own_batches(plan, epoch, on_device=True).numbered()
            return
        shared = SharedPlan(plan, self.share, self.batch_options.per_speaker)
        own = self._own_batches(shared.plan, epoch, on_device=True)
        for number, batch in own.numbered(with_empty=True):
            parts = shared.parts_of(number, np.asarray(batch["index"]))
            yield number, batch | {"part": as_tensor(parts)}

    def val_batches(self) -> "Batches":
        """All validation utterances, always in the same batches."""
        if self.val is None:
            raise CorpusError("this corpus has no validation part: raise val_fraction")
        self.refresh()
        self.val = loaded(self.val)
        batches = self._in_order(self.val)
        self._log_reader("validation", batches.reader)
        return batches

    def speaker_batches(self, each: int = 4) -> "Batches":
        """Batches of the first few utterances of each speaker."""
        self.refresh()
        speaker = self.train.cache.speaker
        order = np.argsort(speaker, kind="stable")
        starts = np.searchsorted(speaker[order], speaker[order])
        chosen = np.zeros(len(speaker), bool)
        chosen[order] = np.arange(len(order)) - starts < each
        return self._in_order(self.train.keep(chosen, ()))

    def _log_reader(self, part: str, reader: str) -> None:
        """Log how batches are made, whenever that changes."""
        if self.readers is not None and self.readers.get(part) != reader:
            self.readers[part] = reader
            logger.info("%s: reader: %s: %s", part, reader, READERS[reader])

    @property
    def batch_options(self) -> BatchOptions:
        return batch_options(self.config)

    def _in_order(self, split: Split) -> "Batches":
        plan = split.plan(self.batch_options, shuffle=False)
        return split_batches(split, plan, self.config.data)


def is_resident(item: tuple[int, int, Mapping]) -> bool:
    """Whether a batch of a stream is gathered on the device when its step begins."""
    from myxtts.data.batches.resident import ResidentBatch

    return isinstance(item[2], ResidentBatch)


def as_tensor(array: np.ndarray) -> "tf.Tensor":
    import tensorflow as tf

    with tf.device("/CPU:0"):
        return tf.constant(array)


def with_embeddings(
    split: Split, encoder: VoiceEncoder, data: DataConfig, progress: Progress | None = None
) -> Split:
    """The split with the speaker embedding of every utterance; who has none is dropped."""
    embeddings, rejections = _embeddings(split, encoder, data, progress)
    check_unusable(rejections, split, data)
    split = replace(split, cache=replace(split.cache, embeddings=embeddings))
    return split.keep(embeddings.rows >= 0, rejections)


def _embeddings(
    split: Split, encoder: VoiceEncoder, data: DataConfig, progress: Progress | None
) -> tuple[Embeddings, list[Rejection]]:
    if split.mode == "runtime":
        return compute_embeddings(split.utterances, encoder, progress)
    try:
        folder, verify = split.location.folder, data.cache_verification
        return store_embeddings(split.utterances, folder, encoder, verify=verify, progress=progress)
    except (CacheError, OSError) as error:
        if split.mode == "precompute":
            raise
        logger.warning("speaker embeddings are computed in memory: %s", error)
        return compute_embeddings(split.utterances, encoder, progress)


def batch_options(config: XTTSConfig) -> BatchOptions:
    data = config.data
    return BatchOptions(
        batch_size=data.batch_size,
        max_frames=data.max_frames_per_batch,
        pool_batches=5 * data.shuffle_buffer_multiplier,
        multiple=data.pad_to_multiple,
        balance_speakers=data.balance_speakers,
        per_speaker=data.utterances_per_speaker,
        seed=config.training.seed,
        alike=config.training.steps_per_call,
    )
