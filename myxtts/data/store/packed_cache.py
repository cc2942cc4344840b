"""The cache of a run: features and tokens of many utterances, joined, as arrays of NumPy.

`PackedCache` is what the batch plan and the readers work on. It opens without TensorFlow, and it
may be incomplete: an utterance whose features are not stored has the start -1 in their columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.store.shard_writer import BLOCK, block_starts
from myxtts.data.store.store import Column, Store, Strings, mmap
from myxtts.monitoring.timers import READ, stage

NOT_CACHED = -1
UNKNOWN = -1  # a speaker that is not in the table: one of validation that training never has


class StoreView:
    """All shards of a store as concatenated arrays over their utterances."""

    def __init__(self, store: Store):
        self.store = store
        self.shards = store.shards()
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
        sizes = [shard.sizes[column.name] // column.row_bytes for shard in self.shards]
        bases = np.cumsum([0, *sizes])[:-1]
        return self.offsets + bases[self.shard] if len(self) else self.offsets

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
        self.paths = [view.store.column_path(s.name, column.name) for s in view.shards]
        self.sizes = [shard.sizes[column.name] for shard in view.shards]
        self.array = None
        if in_memory:
            self._bytes = _in_memory(tuple(self.paths), tuple(self.sizes))
            self.array = self._shape(self._bytes)
        elif mapped:
            self.array = self._shape(mmap.map_files(self.paths, self.sizes))
        self.is_mapped = mapped and not in_memory
        self._bases = np.cumsum([0, *self.sizes])

    @property
    def rows(self) -> int:
        return sum(self.sizes) // self.column.row_bytes

    def blocks(self, rows: int) -> np.ndarray:
        """The array as blocks of so many rows, a divisor of BLOCK; the last one is all zeros."""
        return self.array.reshape(-1, rows * self.column.width)

    def copy(self, start: int, length: int, out: np.ndarray) -> None:
        """Copy rows into the beginning of `out`."""
        if self.array is not None:
            out[:length] = self.array[start : start + length]
            return
        offset = start * self.column.row_bytes
        shard = int(np.searchsorted(self._bases, offset, side="right")) - 1
        with stage(READ):
            mmap.read_range(self.paths[shard], offset - int(self._bases[shard]), out[:length])

    def read_ahead(self, start: int, length: int) -> None:
        size = self.column.row_bytes
        mmap.read_ahead(self.array, start * size, (start + length) * size)

    def resident_fraction(self) -> float:
        return mmap.resident_fraction(self.array) if self.is_mapped else 1.0

    def _shape(self, data: np.ndarray) -> np.ndarray:
        rows = data.view(self.column.dtype)
        return rows if self.column.width == 1 else rows.reshape(-1, self.column.width)


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


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What an encoder of voices says of each utterance: rows of an array [stored, dim]."""

    array: np.ndarray
    rows: np.ndarray

    def __getitem__(self, positions: np.ndarray) -> np.ndarray:
        return self.array[self.rows[positions]]

    @property
    def dim(self) -> int:
        return self.array.shape[1]

    def select(self, chosen: np.ndarray) -> "Embeddings":
        return replace(self, rows=self.rows[chosen])


@dataclass(frozen=True, eq=False)
class PackedCache:
    """The utterances of a run as parallel arrays, and the columns that hold their features."""

    ids: Sequence[str]
    texts: Sequence[str]
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    speaker: np.ndarray
    language: np.ndarray
    text_lengths: np.ndarray
    mel_lengths: np.ndarray
    columns: dict[str, ColumnData]
    starts: dict[str, np.ndarray]
    recordings: Sequence[Utterance] | None = None
    embeddings: Embeddings | None = None
    told: set[str] = field(default_factory=set)  # faults of recordings that are in the log already

    def __len__(self) -> int:
        return len(self.text_lengths)

    @property
    def is_cached(self) -> np.ndarray:
        """Which utterances have stored features."""
        return self.starts["mel"] != NOT_CACHED

    def select(self, chosen: np.ndarray) -> "PackedCache":
        """A view of some utterances, by a mask or by positions; the columns are shared."""
        chosen = np.flatnonzero(chosen) if np.asarray(chosen).dtype == bool else np.asarray(chosen)
        return replace(
            self,
            ids=_select(self.ids, chosen),
            texts=_select(self.texts, chosen),
            speaker=self.speaker[chosen],
            language=self.language[chosen],
            text_lengths=self.text_lengths[chosen],
            mel_lengths=self.mel_lengths[chosen],
            starts={name: starts[chosen] for name, starts in self.starts.items()},
            recordings=None if self.recordings is None else _select(self.recordings, chosen),
            embeddings=None if self.embeddings is None else self.embeddings.select(chosen),
        )

    def numbered(self, speakers: Sequence[str], languages: Sequence[str]) -> "PackedCache":
        """The same with its speakers and languages numbered by tables that others share."""
        return replace(
            self,
            speakers=tuple(speakers),
            languages=tuple(languages),
            speaker=_renumbered(self.speaker, self.speakers, speakers),
            language=_renumbered(self.language, self.languages, languages),
        )

    def without_features(self, missing: np.ndarray) -> "PackedCache":
        """The same, with the stored features of some utterances disregarded."""
        starts = dict(self.starts)
        for name in starts.keys() - {"tokens"}:
            starts[name] = np.where(missing, NOT_CACHED, starts[name])
        return replace(self, starts=starts)

    def utterance(self, position: int) -> dict[str, np.ndarray]:
        """Copies of one utterance's arrays: tokens, mel, pitch, energy."""
        out = {}
        for name, data in self.columns.items():
            length = int((self.text_lengths if name == "tokens" else self.mel_lengths)[position])
            shape = (length,) if data.column.width == 1 else (length, data.column.width)
            out[name] = np.empty(shape, data.column.dtype)
            data.copy(int(self.starts[name][position]), length, out[name])
        return out

    def read_ahead(self, positions: np.ndarray) -> None:
        """Tell the kernel which mels will be wanted soon."""
        starts = self.starts["mel"][positions].tolist()
        for start, length in zip(starts, self.mel_lengths[positions].tolist(), strict=True):
            self.columns["mel"].read_ahead(start, length)


def open_cache(
    features: Store,
    tokens: Store,
    keys: np.ndarray | None = None,
    *,
    mapped: bool = True,
    in_memory: bool = False,
) -> PackedCache:
    """Join a store of features and one of tokens; `keys` choose the utterances and their order.

    Without keys the cache holds everything that is in both. With keys, every utterance that has
    tokens is in it, with or without features.
    """
    feature_view, token_view = StoreView(features), StoreView(tokens)
    everything = keys is None
    keys = token_view.keys[token_view.latest] if everything else np.asarray(keys, np.uint64)
    token_rows, feature_rows = token_view.find(keys), feature_view.find(keys)
    wanted = _filled(token_view, token_rows)
    if everything:
        wanted &= _filled(feature_view, feature_rows)
    return _join(
        feature_view, token_view, feature_rows[wanted], token_rows[wanted], mapped, in_memory
    )


def memory_cache(
    utterances: Sequence, encoded: Sequence[np.ndarray], feature_columns: Sequence[Column]
) -> PackedCache:
    """A cache that holds tokens in memory and no features at all."""
    tokens = MemoryColumn(Column("tokens", "int32"), encoded)
    columns = {c.name: MemoryColumn(c, []) for c in feature_columns} | {"tokens": tokens}
    starts = {name: np.full(len(encoded), NOT_CACHED, np.int64) for name in columns}
    speakers, speaker = _codes([u.speaker for u in utterances])
    languages, language = _codes([u.language for u in utterances])
    return PackedCache(
        ids=[u.id for u in utterances],
        texts=[u.text for u in utterances],
        speakers=speakers,
        languages=languages,
        speaker=speaker,
        language=language,
        text_lengths=np.array([len(ids) for ids in encoded], np.int32),
        mel_lengths=np.zeros(len(encoded), np.int32),
        columns=columns,
        starts=starts | {"tokens": tokens.starts},
    )


def _join(
    features: StoreView,
    tokens: StoreView,
    feature_rows: np.ndarray,
    token_rows: np.ndarray,
    mapped: bool,
    in_memory: bool,
) -> PackedCache:
    has_features = _filled(features, feature_rows)
    columns, starts = {}, {}
    for view, rows, present in (
        (tokens, token_rows, np.ones(len(token_rows), bool)),
        (features, feature_rows, has_features),
    ):
        for column in view.store.columns:
            columns[column.name] = ColumnData(view, column, mapped, in_memory)
            first = np.full(len(rows), NOT_CACHED, np.int64)
            first[present] = view.starts(column)[rows[present]]
            starts[column.name] = first
    lengths = np.zeros(len(feature_rows), np.int32)
    lengths[has_features] = features.lengths[feature_rows[has_features]]
    speakers, speaker = _codes(tokens.notes("speaker").select(token_rows))
    languages, language = _codes(tokens.notes("language").select(token_rows))
    return PackedCache(
        ids=tokens.ids.select(token_rows),
        texts=tokens.notes("text").select(token_rows),
        speakers=speakers,
        languages=languages,
        speaker=speaker,
        language=language,
        text_lengths=tokens.lengths[token_rows],
        mel_lengths=lengths,
        columns=columns,
        starts=starts,
    )


def _filled(view: StoreView, rows: np.ndarray) -> np.ndarray:
    """Which of the rows exist and hold something; a rejected utterance has the length 0."""
    filled = rows >= 0
    filled[filled] = view.lengths[rows[filled]] > 0
    return filled


def _codes(names: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Number the distinct names in their sorted order."""
    # Of a million strings only the distinct ones are decoded.
    encoded = names.encoded() if isinstance(names, Strings) else [name.encode() for name in names]
    table = sorted({name: name.decode() for name in set(encoded)}.items(), key=lambda item: item[1])
    number = {name: i for i, (name, _) in enumerate(table)}
    codes = np.array([number[name] for name in encoded], np.int32)
    return tuple(name for _, name in table), codes


def _renumbered(codes: np.ndarray, names: Sequence[str], table: Sequence[str]) -> np.ndarray:
    number = {name: i for i, name in enumerate(table)}
    return np.array([number.get(name, UNKNOWN) for name in names], np.int32)[codes]


def _select(names: Sequence, chosen: np.ndarray) -> Sequence:
    return (
        names.select(chosen) if isinstance(names, Strings) else [names[i] for i in chosen.tolist()]
    )
