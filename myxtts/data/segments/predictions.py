"""Mels that a model predicts along the true alignments: what its vocoder will really hear."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from myxtts.data.batches.split import Split
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.embeddings import make_ready
from myxtts.data.features.keys import content_of, keys_of, missing_features, source_signature
from myxtts.data.features.prepare import PrepareReport, Progress, check_space, fill
from myxtts.data.features.status import PREDICTED
from myxtts.data.segments.segments import PieceSource
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.store import Store, fingerprint
from myxtts.data.store.view import ColumnData, StoreView
from myxtts.data.store.workers import Workers
from myxtts.errors import UserError

# Raised whenever the same voice predicts other numbers.
PREDICTIONS_VERSION = 1


@dataclass(frozen=True)
class Predictor:
    """A voice as the data know it, and how it is asked for mels."""

    voice: str  # a hash of its weights
    # a split and positions in it -> the mel [frames, mels] of each, frame for frame
    predict: Callable[[Split, np.ndarray], Sequence[np.ndarray]]


def with_predictions(
    source: PieceSource,
    split: Split,
    predictor: Predictor,
    verify: bool = True,
    progress: Progress | None = None,
) -> PieceSource:
    """The source with predicted mels; what is missing is predicted, shard by shard."""
    settings = split.location.settings
    column = Column("mel", settings.dtype, settings.spec.n_mels)
    said = {
        "kind": "predictions",
        "version": PREDICTIONS_VERSION,
        "voice": predictor.voice,
        "features": split.location.features.folder.name,
    }
    folder = split.location.folder / f"{PREDICTED}{fingerprint((column,), said)}"
    store = Store(folder, (column,), said)
    make_ready(store)
    at = {name: position for position, name in enumerate(split.cache.ids)}
    positions = np.array([at[name] for name in source.ids])
    utterances = [split.utterances[position] for position in positions]
    work = _PredictionWork(store, split, predictor, at)
    fill(work, utterances, Workers(1), PrepareReport(), verify=verify, progress=progress)
    view = StoreView(store)
    starts = view.starts(column)[view.find(keys_of(utterances))]
    return replace(
        source,
        columns={**source.columns, "mel": ColumnData(view, column).array},
        starts={**source.starts, "mel": starts},
    )


class _PredictionWork:
    """Utterances into shards of predicted mels."""

    largest_shard = 64

    def __init__(self, store: Store, split: Split, predictor: Predictor, at: dict[str, int]):
        self.store, self.split, self.predictor, self.at = store, split, predictor, at

    def missing(self, utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
        return missing_features(utterances, view)

    def check_space(self, utterances: Sequence[Utterance]) -> None:
        (column,) = self.store.columns
        frames = int(self.split.cache.mel_lengths.sum(dtype=np.int64))
        check_space(self.store.folder, frames * column.row_bytes)

    def signature(self, utterance: Utterance) -> int:
        return source_signature(utterance.audio)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        positions = np.array([self.at[one.id] for one in utterances])
        (column,) = self.store.columns
        mels = self.predictor.predict(self.split, positions)
        for one, mel in zip(utterances, mels, strict=True):
            source = (one.id, source_signature(one.audio), content_of(one.audio) or 0)
            stored = mel.astype(column.dtype)
            if not np.isfinite(stored).all():
                raise UserError(
                    f"the voice predicts values for {one.id} that are not finite: train the "
                    "vocoder with another voice, or leave --on-predicted-mels out"
                )
            yield Row(*source, {"mel": stored})
