"""What is derived from recordings and stored next to their features, a store for each maker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.keys import keys_of, rejections_of
from myxtts.data.features.prepare import PrepareReport, Work, fill
from myxtts.data.features.share import Share
from myxtts.data.rejections import Rejection
from myxtts.data.store.places import store_in
from myxtts.data.store.shard_writer import Column
from myxtts.data.store.store import fingerprint
from myxtts.data.store.view import StoreView
from myxtts.data.store.workers import Workers
from myxtts.monitoring.progress import Progress

# The names of their folders begin so: speaker embeddings, waveforms, predicted mels.
VOICES, WAVES, PREDICTED = "voices", "waves", "predicted"


class DerivedWork(Work):
    """Recordings into shards of one column; what determines its bytes names the store."""

    def __init__(self, folder: Path, kind: str, column: Column, settings: dict):
        name = f"{kind}-{fingerprint((column,), settings)}"
        self.column, self.store = column, store_in(folder / name, (column,), settings)


@dataclass(frozen=True, eq=False)
class Derived:
    """What a store holds of some utterances."""

    array: np.ndarray  # [rows] or [rows, width], mapped
    starts: np.ndarray  # the first row of each utterance, -1 where it could not be made
    rejections: list[Rejection]


def store_derived(
    work: DerivedWork,
    utterances: Sequence[Utterance],
    *,
    workers: int = 1,
    verify: bool = True,
    progress: Progress | None = None,
    report: PrepareReport | None = None,
) -> Derived:
    """Store what is missing, shard by shard, and map all of it."""
    fill_derived(work, utterances, report or PrepareReport(), workers, verify, progress)
    view = StoreView(work.store)
    rows = view.find(keys_of(utterances))
    starts = np.where(view.lengths[rows] > 0, view.starts(work.column)[rows], -1)
    return Derived(view.mapped(work.column), starts, rejections_of(utterances, view))


def fill_derived(
    work: DerivedWork,
    utterances: Sequence[Utterance],
    report: PrepareReport,
    workers: int = 1,
    verify: bool = True,
    progress: Progress | None = None,
    share: Share | None = None,
) -> None:
    """Store what is missing, shard by shard, or of it the share of one worker."""
    work.store.create()
    with Workers(workers) as pool:
        fill(work, utterances, pool, report, False, verify, progress, share)


def derived_folders(folder: Path) -> list[Path]:
    """The derived stores of a cache: whatever the settings, all are of use."""
    kinds = (VOICES, WAVES, PREDICTED)
    return sorted(path for kind in kinds for path in folder.glob(f"{kind}-*") if path.is_dir())
