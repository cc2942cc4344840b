"""Features that are too many for this disk: some shards at a time come from object storage."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from myxtts.data.store.errors import CacheError
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.remote import in_daemons
from myxtts.data.store.shard_index import ShardIndex
from myxtts.data.store.shard_writer import Column
from myxtts.data.store.view import NOT_CACHED, ColumnData, MemoryColumn, StoreView

if TYPE_CHECKING:
    from myxtts.data.store.packed_cache import PackedCache

logger = logging.getLogger(__name__)


class AbsentColumn(ColumnData):
    """A column that cannot be read as a whole: whoever tries is told so."""

    def __init__(self, column: Column, place: str):
        self.column, self.is_mapped, self.sizes = column, False, []
        self._place = place

    @property
    def array(self) -> np.ndarray:  # type: ignore[override]
        raise CacheError(
            f"--local-cache-gb is less than the features in {self._place}, and this needs all of "
            "them on this disk at once: raise it"
        )

    def copy(self, start: int, length: int, out: np.ndarray) -> None:
        out[:length] = self.array[start : start + length]

    def resident_fraction(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class LateFeatures:
    """In which shard and row of a store the features of each utterance lie."""

    view: StoreView
    rows: np.ndarray  # [utterances] rows of the view, -1 where there is none

    @property
    def store(self) -> MirroredStore:
        assert isinstance(self.view.store, MirroredStore)
        return self.view.store

    @property
    def shard(self) -> np.ndarray:
        """The number of the shard of each utterance; that of no features does not matter."""
        return self.view.shard[np.maximum(self.rows, 0)]

    @property
    def sizes(self) -> np.ndarray:
        """The bytes of each shard."""
        return np.array([sum(index.sizes.values()) for index in self.view.shards], np.int64)

    @property
    def limit(self) -> int:
        """The bytes of a group of shards: while one is read, the next is fetched."""
        largest, budget = int(self.sizes.max(initial=0)), self.store.shelf.budget
        if 2 * largest > budget:
            raise CacheError(
                f"--local-cache-gb is {budget / 1e9:g}, but two shards of {self.store.place} take "
                f"{2 * largest / 1e9:.3f} GB: give it at least that much"
            )
        return budget // 2

    def select(self, chosen: np.ndarray) -> "LateFeatures":
        return replace(self, rows=self.rows[chosen])

    def fetch(
        self,
        shards: Sequence[int],
        keep: Sequence[int] = (),
        cancelled: threading.Event | None = None,
    ) -> None:
        """Have some shards on this disk; those to `keep` stay there too."""
        kept = {index.name for index in self._indexes(keep)}
        self.store.make_local(self._indexes(shards), kept, cancelled)

    def open(self, cache: "PackedCache", shards: Sequence[int], **how: bool) -> "PackedCache":
        """A cache with the features of some shards, all of which are fetched first if need be."""
        view = StoreView(self.store, self._indexes(shards))
        place = np.full(len(self.view.shards), -1)
        place[list(shards)] = np.arange(len(shards))
        own = np.where(cache.is_cached, place[self.shard], -1)
        columns, starts = dict(cache.columns), dict(cache.starts)
        for column in self.store.columns:
            columns[column.name] = _opened(view, column, **how)
            first = self.view.offsets[self.rows] + view.bases(column)[own]
            starts[column.name] = np.where(own >= 0, first, NOT_CACHED)
        return replace(cache, columns=columns, starts=starts, late=None)

    def load(self, cache: "PackedCache") -> "PackedCache":
        """A cache with the features of all its utterances in memory: for few of a large store."""
        arrays: list[dict[str, np.ndarray]] = [{} for _ in self.rows]
        stored = np.flatnonzero(cache.is_cached)
        by_shard = [stored[self.shard[stored] == one] for one in np.unique(self.shard[stored])]
        for positions, found in in_daemons(self._read, by_shard):
            for position, one in zip(positions.tolist(), found, strict=True):
                arrays[position] = one
        columns, starts = dict(cache.columns), dict(cache.starts)
        for column in self.store.columns:
            empty = np.zeros((0,) if column.width == 1 else (0, column.width), column.dtype)
            loaded = MemoryColumn(column, [one.get(column.name, empty) for one in arrays])
            columns[column.name] = loaded
            starts[column.name] = np.where(cache.is_cached, loaded.starts, NOT_CACHED)
        size = sum(columns[column.name].sizes[0] for column in self.store.columns) / 1e6
        logger.info("%d utterances are kept in memory (%.1f MB)", len(stored), size)
        return replace(cache, columns=columns, starts=starts, late=None)

    def _read(self, positions: np.ndarray) -> tuple[np.ndarray, list[dict[str, np.ndarray]]]:
        shard = int(self.shard[positions[0]])
        first = int(np.searchsorted(self.view.shard, shard))
        index = self.view.shards[shard]
        return positions, self.store.read_rows(index, self.rows[positions] - first)

    def _indexes(self, shards: Sequence[int]) -> list[ShardIndex]:
        return [self.view.shards[number] for number in shards]


def _opened(view: StoreView, column: Column, **how: bool) -> ColumnData:
    """A column of some shards. What is mapped stays, even if another process deletes the files."""
    while True:
        try:
            return ColumnData(view, column, **how)
        except FileNotFoundError as error:  # deleted between fetching and opening
            logger.info("%s is fetched again: another process needed the room", error.filename)
