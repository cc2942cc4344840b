"""What a frozen encoder of voices says of each recording: computed once, and stored."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.audio.io import AudioError, check_audible, read_audio
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import VOICES, DerivedWork, store_derived
from myxtts.data.features.features import at_speed
from myxtts.data.features.prepare import recording_row
from myxtts.data.rejections import NO_VOICE, Rejection
from myxtts.data.store.mmap import aligned_empty
from myxtts.data.store.packed_cache import Embeddings
from myxtts.data.store.shard_writer import BLOCK, Column, Row
from myxtts.monitoring.progress import Progress

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
        for at in range(0, len(utterances), _AT_A_TIME):
            yield from self._rows(utterances[at : at + _AT_A_TIME])

    def _rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        with ThreadPoolExecutor(2) as pool:
            loaded = list(pool.map(self.load, utterances))
        usable = [samples for samples in loaded if not isinstance(samples, AudioError)]
        embedded = iter(self.embed(usable, self.sample_rate) if usable else ())
        for utterance, samples in zip(utterances, loaded, strict=True):
            found = samples if isinstance(samples, AudioError) else next(embedded)
            yield recording_row(utterance, partial(self._stored, utterance, found))

    def _stored(
        self, utterance: Utterance, found: "np.ndarray | AudioError"
    ) -> dict[str, np.ndarray]:
        if isinstance(found, AudioError):
            raise found
        if not np.isfinite(found).all() or not found.any():
            detail = f"the encoder {self.kind} hears none in it"
            raise AudioError(utterance.audio, NO_VOICE, detail)
        # As many rows as a block has, so that nothing is padded.
        return {"embedding": found.astype(np.float32).reshape(BLOCK, -1)}

    def load(self, utterance: Utterance) -> "np.ndarray | AudioError":
        """The samples of a recording at the encoder's rate, or what is wrong with them."""
        try:
            samples = read_audio(utterance.audio, self.sample_rate)
            samples = at_speed(samples, self.sample_rate, utterance.speed)
            check_audible(samples, utterance.audio)
        except AudioError as error:
            return error
        return samples


class EmbeddingWork(DerivedWork):
    """Recordings into shards of speaker embeddings."""

    # Seconds of work each: what a kill costs, and how often the progress moves.
    largest_shard = 64

    def __init__(self, folder: Path, encoder: VoiceEncoder):
        self.encoder = encoder
        column = Column("embedding", "float32", encoder.dim // BLOCK)
        determining = {
            "kind": "embeddings",
            "version": EMBEDDINGS_VERSION,
            "encoder": encoder.kind,
            "weights": encoder.weights,
        }
        super().__init__(folder, VOICES, column, determining)

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        return 4 * self.encoder.dim * len(utterances)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        return self.encoder.rows(utterances)


def store_embeddings(
    utterances: Sequence[Utterance], folder: Path, encoder: VoiceEncoder, **options: Any
) -> tuple[Embeddings, list[Rejection]]:
    """Embed what is not stored yet, and map all of it; `options` are those of `store_derived`.

    An utterance without a speaker embedding has the row -1 and is among the rejections.
    """
    # In this process: an encoder computes on all cores, or on a GPU, by itself.
    found = store_derived(EmbeddingWork(folder, encoder), utterances, **options)
    array, rows = found.array.reshape(-1, encoder.dim), found.starts // BLOCK
    return Embeddings(array, rows), found.rejections


def compute_embeddings(
    utterances: Sequence[Utterance], encoder: VoiceEncoder, progress: Progress | None = None
) -> tuple[Embeddings, list[Rejection]]:
    """The same in memory, for a run that stores nothing."""
    array = aligned_empty((max(1, len(utterances)), encoder.dim), np.float32)
    array[:] = 0
    places = np.full(len(utterances), -1)
    rejections = []
    for number, row in enumerate(encoder.rows(utterances)):
        if row.reason:
            rejections.append(Rejection.parse(row.id, row.reason))
        else:
            array[number], places[number] = row.arrays["embedding"].reshape(-1), number
        if progress:
            progress(number + 1, len(utterances), 0.0)
    return Embeddings(array, places), rejections
