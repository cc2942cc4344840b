"""Segments whose mels are predicted: what a vocoder will really receive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from myxtts.data.batches.split import Split
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import store_derived
from myxtts.data.features.predictions import PredictionWork
from myxtts.data.segments.segments import SegmentSource
from myxtts.monitoring.progress import Progress


@dataclass(frozen=True)
class Predictor:
    """A voice as the data know it, and how it is asked for mels."""

    voice: str  # a hash of its weights
    # a split and positions in it -> the mel [frames, mels] of each, frame for frame
    predict: Callable[[Split, np.ndarray], Sequence[np.ndarray]]


def with_predictions(
    source: SegmentSource,
    split: Split,
    predictor: Predictor,
    verify: bool = True,
    progress: Progress | None = None,
) -> SegmentSource:
    """The source with predicted mels; what is missing is predicted, shard by shard."""
    at = {name: position for position, name in enumerate(split.cache.ids)}

    def predict(utterances: Sequence[Utterance]) -> Sequence[np.ndarray]:
        return predictor.predict(split, np.array([at[one.id] for one in utterances]))

    frames = int(split.cache.mel_lengths.sum(dtype=np.int64))
    work = PredictionWork(split.location, predictor.voice, frames, predict)
    utterances = [split.utterances[at[name]] for name in source.ids]
    found = store_derived(work, utterances, verify=verify, progress=progress)
    return replace(
        source,
        columns={**source.columns, "mel": found.array},
        starts={**source.starts, "mel": found.starts},
    )
