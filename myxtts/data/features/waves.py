"""Waveforms in the cache, hop by hop, next to the mels that they belong to."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from myxtts.audio.mel import num_frames
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import WAVES, DerivedWork
from myxtts.data.features.features import FeatureSettings, load_samples
from myxtts.data.features.prepare import estimate_bytes, recording_row
from myxtts.data.store.shard_writer import Column, Row

# Raised whenever the same settings give other numbers.
WAVES_VERSION = 1


def as_hops(samples: np.ndarray, settings: FeatureSettings) -> np.ndarray:
    """Samples as int16 [frames, hop]: row for row what the frames of the mel are centred on."""
    hop = settings.spec.hop_length
    frames = num_frames(len(samples), settings.spec)
    loud = np.clip(samples[: frames * hop] * 32768.0, -32768.0, 32767.0)
    return np.round(loud).astype(np.int16).reshape(frames, hop)


class WaveWork(DerivedWork):
    """Recordings into shards of waveforms."""

    def __init__(self, folder: Path, settings: FeatureSettings):
        self.settings, self.spec = settings, settings.spec
        column = Column("wave", "int16", settings.spec.hop_length)
        determining = {
            "kind": "waves",
            "version": WAVES_VERSION,
            "sample_rate": settings.spec.sample_rate,
            "n_fft": settings.spec.n_fft,
            "trim_top_db": settings.trim_top_db,
            "loudness_lufs": settings.loudness_lufs,
            "min_seconds": settings.min_seconds,
        }
        super().__init__(folder, WAVES, column, determining)

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        features = sum(column.row_bytes for column in self.settings.columns)
        return estimate_bytes(utterances, self.settings) * self.column.row_bytes // features

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        return (recording_row(one, partial(self._arrays, one)) for one in utterances)

    def _arrays(self, utterance: Utterance) -> dict[str, np.ndarray]:
        samples = load_samples(utterance.audio, self.settings, utterance.speed)
        return {"wave": as_hops(samples, self.settings)}
