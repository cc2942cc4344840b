"""The cache that fills while it is read: what an epoch computes is stored as it goes."""

import contextlib
import logging
import threading
from collections.abc import Iterable

import numpy as np

from myxtts.audio.threads import single_threaded_blas
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import FeatureSettings
from myxtts.data.features.prepare import feature_row
from myxtts.data.store.errors import CacheError
from myxtts.data.store.shard_writer import Row
from myxtts.data.store.store import Store
from myxtts.monitoring.system import MemoryLimit

logger = logging.getLogger(__name__)

# Features that wait for their batches take at most so many bytes, and this share of free memory.
_MOST_WAITING, _SHARE_WAITING = 1 << 30, 1 / 8


class CacheFiller:
    """Computes the features of utterances, and stores them within a number of bytes.

    Calls may come from several threads. Shards are published as soon as they are full, so a kill
    loses one shard at most. After as many calls as are expected it closes by itself: the batches
    that were computed ahead are then still to be read, and the last shard holds nobody up.
    """

    def __init__(
        self,
        utterances: list[Utterance],
        settings: FeatureSettings,
        store: Store | None,
        allowed_bytes: int,
        shard_size: int,
        known_bad: Iterable[str] = (),
        expected: int = 0,
    ):
        self.utterances, self.settings, self.store = utterances, settings, store
        self.allowed_bytes, self.shard_size = allowed_bytes, shard_size
        self.stored, self._expected = 0, expected
        self.bad = set(known_bad)
        self._taken: set[str] = set()
        self._pending: list[Row] = []
        self._guard = threading.Lock()
        self._held = contextlib.ExitStack()
        self._held.enter_context(single_threaded_blas())
        if store is not None and not self._held.enter_context(store.try_lock()):
            # Validation during an epoch that stores is nothing to report; another run is.
            level = logging.DEBUG if store.is_held_here else logging.INFO
            said = "%s is being written already: this pass stores nothing"
            logger.log(level, said, store.folder)
            self.store = None
        # Above all there are: rows of now replace rows of before.
        shards = self.store.shards() if self.store else ()
        self._generation = 1 + max((shard.generation for shard in shards), default=-1)

    def __call__(self, position: int) -> dict[str, np.ndarray] | None:
        """The features of one utterance, or nothing where its recording cannot be used."""
        found = self._computed(self.utterances[position])
        with self._guard:
            self._expected -= 1
            is_last = self._expected == 0
        if is_last:
            self.close()
        return found

    def _computed(self, utterance: Utterance) -> dict[str, np.ndarray] | None:
        if utterance.id in self.bad:
            return None
        row = feature_row(utterance, self.settings)
        if row.reason:
            self.bad.add(utterance.id)
            logger.warning("dropped: %s: %s", utterance.id, row.reason)
        self._store(row)
        return row.arrays or None

    def close(self) -> None:
        """Publish what is pending and let others write."""
        with self._guard:
            full, self._pending = self._pending, []
        try:
            self._publish(full)
        finally:
            self._held.close()

    def _store(self, row: Row) -> None:
        """Keep a row for the next shard, once, while there is room."""
        with self._guard:
            size = sum(array.nbytes for array in row.arrays.values())
            if not self._pending:  # a new shard, with its padding
                size += sum(column.unit for column in self.settings.columns)
            if self.store is None or row.id in self._taken or size > self.allowed_bytes:
                return
            self.allowed_bytes -= size
            self._taken.add(row.id)
            self._pending.append(row)
            if len(self._pending) < self.shard_size:
                return
            full, self._pending = self._pending, []
        self._publish(full)

    def _publish(self, rows: list[Row]) -> None:
        store = self.store
        if not rows or store is None:
            return
        try:
            keys = [(row.id, row.signature) for row in rows]
            store.write_shard(rows, keys, self._generation)
            self.stored += len(rows)
        except (CacheError, OSError) as error:
            logger.warning("the cache fills no further: %s", error)
            self.store = None


def batches_in_memory(
    plan: BatchPlan, settings: FeatureSettings, most_bytes: int = _MOST_WAITING
) -> int:
    """How many batches of a plan may be computed ahead of the step."""
    used, limit = MemoryLimit().read()
    budget = min(most_bytes, _SHARE_WAITING * (limit - used))
    row = sum(column.row_bytes for column in settings.columns)
    largest = int(np.max(plan.sizes * plan.frames.astype(np.int64), initial=1)) * row
    return int(budget // largest)
