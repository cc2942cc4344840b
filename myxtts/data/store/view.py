"""The shards of a store as arrays over all of its utterances."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from myxtts.data.store import mmap
from myxtts.data.store.shard_index import ShardIndex, Strings
from myxtts.data.store.shard_writer import BLOCK, Column, block_starts
from myxtts.data.store.store import Store
from myxtts.monitoring.timers import READ, stage

NOT_CACHED = -1  # the start of an utterance whose features are not stored


class StoreView:
    """All shards of a store, or some, as concatenated arrays over their utterances."""

    def __init__(self, store: Store, shards: Sequence[ShardIndex] | None = None):
        self.store = store
        self.shards = store.shards() if shards is None else list(shards)
        counts = [len(shard) for shard in self.shards]
        self.shard = np.repeat(np.arange(len(counts)), counts)
        self.generation = np.repeat([shard.generation for shard in self.shards], counts)
        self.ids = Strings.concatenate([shard.ids for shard in self.shards])
        self.keys = self._join("keys", np.uint64)
        self.signatures = self._join("signatures", np.uint64)
        self.contents = self._join("contents", np.uint64)
        self.offsets = self._join("starts", np.int64)
        self.lengths = self._join("lengths", np.int32)

    def __len__(self) -> int:
        return len(self.keys)

    def notes(self, name: str) -> Strings:
        return Strings.concatenate([shard.notes[name] for shard in self.shards])

    @cached_property
    def latest(self) -> np.ndarray:
        """The rows that no newer row of the same utterance supersedes, in stored order."""
        order = np.lexsort((self.generation, self.keys))
        last = np.append(np.diff(self.keys[order].astype(np.uint64)) != 0, True)
        return np.sort(order[last]) if len(order) else order

    def starts(self, column: Column) -> np.ndarray:
        """The first row of every utterance in the column's contiguous array."""
        return self.offsets + self.bases(column)[self.shard] if len(self) else self.offsets

    def bases(self, column: Column) -> np.ndarray:
        """The first row of every shard in the column's contiguous array, and where it ends."""
        sizes = [shard.sizes[column.name] // column.row_bytes for shard in self.shards]
        return np.cumsum([0, *sizes])

    def files(self, column: Column) -> tuple[list[Path], list[int]]:
        """The files of a column, shard by shard, and their sizes; all of them are on this disk."""
        self.store.make_local(self.shards)
        paths = [self.store.column_path(shard.name, column.name) for shard in self.shards]
        return paths, [shard.sizes[column.name] for shard in self.shards]

    def mapped(self, column: Column) -> np.ndarray:
        """A column of all shards as one array of rows."""
        return _in_rows(mmap.map_files(*self.files(column)), column)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """The latest row for each key, or -1."""
        order = self._by_key
        if not len(order):
            return np.full(len(keys), -1)
        # Sorted queries walk through memory in order: several times faster for a million.
        asked = np.argsort(keys)
        at = np.empty(len(keys), np.int64)
        at[asked] = np.searchsorted(self.keys[order], keys[asked]).clip(max=len(order) - 1)
        return np.where(self.keys[order[at]] == keys, order[at], -1)

    @cached_property
    def _by_key(self) -> np.ndarray:
        return self.latest[np.argsort(self.keys[self.latest])]

    def _join(self, name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype), *(getattr(s, name) for s in self.shards)])


class ColumnData:
    """A column of all shards as one array of rows: mapped, in memory, or read on demand."""

    def __init__(
        self, view: StoreView, column: Column, mapped: bool = True, in_memory: bool = False
    ):
        self.column = column
        self.paths, self.sizes = view.files(column)
        self.array: np.ndarray | None = None
        if in_memory:
            self._bytes = _in_memory(tuple(self.paths), tuple(self.sizes))
            self.array = _in_rows(self._bytes, column)
        elif mapped:
            self.array = view.mapped(column)
        self.is_mapped = mapped and not in_memory
        self._bases = np.cumsum([0, *self.sizes])

    @property
    def rows(self) -> int:
        return sum(self.sizes) // self.column.row_bytes

    def copy(self, start: int, length: int, out: np.ndarray) -> None:
        """Copy rows into the beginning of `out`."""
        if self.array is not None:
            out[:length] = self.array[start : start + length]
            return
        offset = start * self.column.row_bytes
        shard = int(np.searchsorted(self._bases, offset, side="right")) - 1
        with stage(READ):
            mmap.read_range(self.paths[shard], offset - int(self._bases[shard]), out[:length])

    def read_ahead(self, starts: Sequence[int], lengths: Sequence[int]) -> None:
        """Let the kernel know which rows of a mapped array will be wanted soon."""
        if self.array is None:
            return
        size = self.column.row_bytes
        for start, length in zip(starts, lengths, strict=True):
            mmap.read_ahead(self.array, start * size, (start + length) * size)

    def resident_fraction(self) -> float:
        if self.array is None or not self.is_mapped:
            return 1.0
        return mmap.resident_fraction(self.array)


def _in_rows(data: np.ndarray, column: Column) -> np.ndarray:
    rows = data.view(column.dtype)
    return rows if column.width == 1 else rows.reshape(-1, column.width)


def _in_memory(paths: tuple[Path, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """The files' bytes, read once for all who hold them: training and validation share a store."""
    data = _loaded.get((paths, sizes))
    if data is None:
        data = _loaded[paths, sizes] = mmap.read_files(paths, sizes)
    return data


_loaded: WeakValueDictionary = WeakValueDictionary()


class MemoryColumn(ColumnData):
    """A column that was never stored: the arrays of utterances, one behind the other."""

    def __init__(self, column: Column, arrays: Sequence[np.ndarray]):
        self.starts, rows = block_starts(np.array([len(array) for array in arrays], np.int64))
        rows += BLOCK
        shape = (rows,) if column.width == 1 else (rows, column.width)
        self.column, self.is_mapped = column, False
        self.array = mmap.aligned_empty(shape, column.dtype)
        self.array[:] = 0
        self.sizes = [self.array.nbytes]
        for start, array in zip(self.starts.tolist(), arrays, strict=True):
            self.array[start : start + len(array)] = array
