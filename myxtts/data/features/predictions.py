"""Teacher-forced mels: what an acoustic model predicts along the true alignments."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import PREDICTED, DerivedWork
from myxtts.data.features.location import CacheLocation
from myxtts.data.features.prepare import recording_row
from myxtts.data.store.shard_writer import Column, Row
from myxtts.errors import UserError

# Raised whenever the same voice predicts other numbers.
PREDICTIONS_VERSION = 1


class PredictionWork(DerivedWork):
    """Utterances into shards of predicted mels, frame for frame as long as their features."""

    largest_shard = 64

    def __init__(
        self,
        location: CacheLocation,
        voice: str,
        total_frames: int,
        predict: Callable[[Sequence[Utterance]], Sequence[np.ndarray]],
    ):
        self.total_frames, self.predict = total_frames, predict
        settings = location.settings
        column = Column("mel", settings.dtype, settings.spec.n_mels)
        determining = {
            "kind": "predictions",
            "version": PREDICTIONS_VERSION,
            "voice": voice,
            "features": location.features.folder.name,
        }
        super().__init__(location.folder, PREDICTED, column, determining)

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        return self.total_frames * self.column.row_bytes

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        for one, mel in zip(utterances, self.predict(utterances), strict=True):
            stored = mel.astype(self.column.dtype)
            if not np.isfinite(stored).all():
                raise UserError(
                    f"the voice predicts values for {one.id} that are not finite: train the "
                    "vocoder with another voice, or omit --on-predicted-mels"
                )
            yield recording_row(one, partial(dict, mel=stored))
