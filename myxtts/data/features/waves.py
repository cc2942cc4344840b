"""Waveforms in the cache, hop by hop, beside the mels that they belong to."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.audio.mel import num_frames
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.embeddings import make_ready
from myxtts.data.features.features import FeatureSettings, load_samples
from myxtts.data.features.keys import (
    content_of,
    keys_of,
    missing_features,
    rejections_of,
    source_signature,
)
from myxtts.data.features.prepare import (
    LARGEST_SHARD,
    PrepareReport,
    Progress,
    check_space,
    estimate_bytes,
    fill,
)
from myxtts.data.features.status import WAVES
from myxtts.data.rejections import Rejection
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.store import Store, fingerprint
from myxtts.data.store.view import ColumnData, StoreView
from myxtts.data.store.workers import Workers

# Raised whenever the same settings give other numbers.
WAVES_VERSION = 1


def as_hops(samples: np.ndarray, settings: FeatureSettings) -> np.ndarray:
    """Samples as int16 [frames, hop]: row for row what the frames of the mel are centred on."""
    hop = settings.spec.hop_length
    frames = num_frames(len(samples), settings.spec)
    loud = np.clip(samples[: frames * hop] * 32768.0, -32768.0, 32767.0)
    return np.round(loud).astype(np.int16).reshape(frames, hop)


def wave_store(folder: Path, settings: FeatureSettings) -> Store:
    """Where the waveforms of a corpus belong in its cache, by what determines them."""
    column = Column("wave", "int16", settings.spec.hop_length)
    said = {
        "kind": "waves",
        "version": WAVES_VERSION,
        "sample_rate": settings.spec.sample_rate,
        "n_fft": settings.spec.n_fft,
        "trim_top_db": settings.trim_top_db,
        "loudness_lufs": settings.loudness_lufs,
        "min_seconds": settings.min_seconds,
    }
    return Store(folder / f"{WAVES}{fingerprint((column,), said)}", (column,), said)


def store_waves(
    utterances: Sequence[Utterance],
    folder: Path,
    settings: FeatureSettings,
    *,
    workers: int = 0,
    verify: bool = True,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray, list[Rejection]]:
    """Store what is missing and map all of it: rows [rows, hop], and where each utterance begins.

    An utterance that could not be stored begins at -1 and is among the rejections.
    """
    store = wave_store(folder, settings)
    make_ready(store)
    work, report = _WaveWork(store, settings), PrepareReport()
    with Workers(workers) as pool:
        fill(work, utterances, pool, report, verify=verify, progress=progress)
    view = StoreView(store)
    rows = view.find(keys_of(utterances))
    (column,) = store.columns
    starts = np.where(view.lengths[rows] > 0, view.starts(column)[rows], -1)
    return ColumnData(view, column).array, starts, rejections_of(utterances, view)


class _WaveWork:
    """Recordings into shards of waveforms."""

    largest_shard = LARGEST_SHARD

    def __init__(self, store: Store, settings: FeatureSettings):
        self.store, self.settings = store, settings

    def missing(self, utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
        return missing_features(utterances, view)

    def check_space(self, utterances: Sequence[Utterance]) -> None:
        features = sum(column.row_bytes for column in self.settings.columns)
        (column,) = self.store.columns
        needed = estimate_bytes(utterances, self.settings) * column.row_bytes // features
        check_space(self.store.folder, needed)

    def signature(self, utterance: Utterance) -> int:
        return source_signature(utterance.audio)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        for one in utterances:
            source = (one.id, source_signature(one.audio), content_of(one.audio) or 0)
            try:
                samples = load_samples(one.audio, self.settings, one.pace)
            except AudioError as error:
                yield Row(*source, reason=f"{error.reason}: {error.detail}")
            else:
                yield Row(*source, {"wave": as_hops(samples, self.settings)})
