"""What a frozen encoder of voices says of each recording: computed once, and stored."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.audio.io import AudioError, check_audible, read_audio
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import at_pace
from myxtts.data.features.keys import (
    content_of,
    keys_of,
    missing_features,
    rejections_of,
    source_signature,
)
from myxtts.data.features.prepare import PrepareReport, Progress, check_space, fill
from myxtts.data.features.status import VOICES
from myxtts.data.rejections import NO_VOICE, Rejection
from myxtts.data.store.disk import unwritable_message
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mmap import aligned_empty
from myxtts.data.store.packed_cache import Embeddings
from myxtts.data.store.shard_writer import BLOCK, Column, Row
from myxtts.data.store.store import Store, fingerprint
from myxtts.data.store.view import ColumnData, StoreView
from myxtts.data.store.workers import Workers

# Raised whenever the same encoder and weights give other numbers.
EMBEDDINGS_VERSION = 1
_AT_A_TIME = 32


@dataclass(frozen=True)
class VoiceEncoder:
    """An encoder as the data know it: which one, with which weights, and how it is asked."""

    kind: str
    weights: str  # a hash of them
    dim: int
    sample_rate: int
    # recordings and their rate -> the embedding [dim] of each, or what is wrong with it
    embed: Callable[[Sequence[np.ndarray], int], "list[np.ndarray | AudioError]"]

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        """What is stored of some recordings, or why there is nothing to store."""
        with ThreadPoolExecutor(2) as pool:
            loaded = list(pool.map(self.load, utterances))
        usable = [samples for samples in loaded if not isinstance(samples, AudioError)]
        embedded = iter(self.embed(usable, self.sample_rate) if usable else ())
        for utterance, samples in zip(utterances, loaded, strict=True):
            found = samples if isinstance(samples, AudioError) else next(embedded)
            yield self._row(utterance, found)

    def _row(self, utterance: Utterance, found: "np.ndarray | AudioError") -> Row:
        content = content_of(utterance.audio) or 0
        source = (utterance.id, source_signature(utterance.audio), content)
        if isinstance(found, AudioError):
            return Row(*source, reason=f"{found.reason}: {found.detail}")
        if not np.isfinite(found).all() or not found.any():
            return Row(*source, reason=f"{NO_VOICE}: the encoder {self.kind} hears none in it")
        # As many rows as a block has, so that nothing is padded.
        return Row(*source, {"embedding": found.astype(np.float32).reshape(BLOCK, -1)})

    def load(self, utterance: Utterance) -> "np.ndarray | AudioError":
        """The samples of a recording at the encoder's rate, or what is wrong with them."""
        try:
            samples = read_audio(utterance.audio, self.sample_rate)
            samples = at_pace(samples, self.sample_rate, utterance.pace)
            check_audible(samples, utterance.audio)
        except AudioError as error:
            return error
        return samples


def embedding_store(folder: Path, encoder: VoiceEncoder) -> Store:
    """Where an encoder's answers belong in the cache of a corpus."""
    column = Column("embedding", "float32", encoder.dim // BLOCK)
    settings = {
        "kind": "embeddings",
        "version": EMBEDDINGS_VERSION,
        "encoder": encoder.kind,
        "weights": encoder.weights,
    }
    return Store(folder / f"{VOICES}{fingerprint((column,), settings)}", (column,), settings)


def store_embeddings(
    utterances: Sequence[Utterance],
    folder: Path,
    encoder: VoiceEncoder,
    *,
    verify: bool = True,
    progress: Progress | None = None,
    report: PrepareReport | None = None,
) -> tuple[Embeddings, list[Rejection]]:
    """Describe what is not described yet, shard by shard, and map all of it.

    An utterance without a voice has the row -1 and is among the rejections.
    """
    store = embedding_store(folder, encoder)
    make_ready(store)
    # In this process: an encoder computes on all cores, or on a GPU, by itself.
    work, report = _EmbeddingWork(store, encoder), report or PrepareReport()
    fill(work, utterances, Workers(1), report, verify=verify, progress=progress)
    view = StoreView(store)
    rows = view.find(keys_of(utterances))
    (column,) = store.columns
    array = ColumnData(view, column).array.reshape(-1, encoder.dim)
    places = np.where(view.lengths[rows] > 0, view.starts(column)[rows] // BLOCK, -1)
    return Embeddings(array, places), rejections_of(utterances, view)


def compute_embeddings(
    utterances: Sequence[Utterance], encoder: VoiceEncoder, progress: Progress | None = None
) -> tuple[Embeddings, list[Rejection]]:
    """The same in memory, for a run that stores nothing."""
    array = aligned_empty((max(1, len(utterances)), encoder.dim), np.float32)
    array[:] = 0
    places = np.full(len(utterances), -1)
    rejections = []
    for number, row in enumerate(_described(utterances, encoder)):
        if row.reason:
            reason, _, detail = row.reason.partition(": ")
            rejections.append(Rejection(row.id, reason, detail))
        else:
            array[number], places[number] = row.arrays["embedding"].reshape(-1), number
        if progress:
            progress(number + 1, len(utterances), 0.0)
    return Embeddings(array, places), rejections


def make_ready(store: Store) -> None:
    """Make a store that can be written."""
    try:
        store.create()
    except OSError as error:
        raise CacheError(unwritable_message(store.folder.parent, error)) from error


def _described(utterances: Sequence[Utterance], encoder: VoiceEncoder) -> Iterator[Row]:
    for at in range(0, len(utterances), _AT_A_TIME):
        yield from encoder.rows(utterances[at : at + _AT_A_TIME])


class _EmbeddingWork:
    """Recordings into shards of embeddings."""

    # Seconds of work each: what a kill costs, and how often the progress moves.
    largest_shard = 64

    def __init__(self, store: Store, encoder: VoiceEncoder):
        self.store, self.encoder = store, encoder

    def missing(self, utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
        return missing_features(utterances, view)

    def check_space(self, utterances: Sequence[Utterance]) -> None:
        check_space(self.store.folder, 4 * self.encoder.dim * len(utterances))

    def signature(self, utterance: Utterance) -> int:
        return source_signature(utterance.audio)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        return _described(utterances, self.encoder)
