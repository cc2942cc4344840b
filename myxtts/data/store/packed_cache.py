"""The cache of a run: features and tokens of many utterances, joined, as arrays of NumPy.

`PackedCache` is what the batch plan and the readers work on. It opens without TensorFlow, and it
may be incomplete: an utterance whose features are not stored has the start -1 in their columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.store.late_features import AbsentColumn, LateFeatures
from myxtts.data.store.shard_index import Strings
from myxtts.data.store.shard_writer import Column
from myxtts.data.store.store import Store
from myxtts.data.store.view import NOT_CACHED, ColumnData, MemoryColumn, StoreView

UNKNOWN = -1  # a speaker that is not in the table: one of validation that training never has


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
    columns: Mapping[str, ColumnData]
    starts: dict[str, np.ndarray]
    recordings: Sequence[Utterance] = ()
    embeddings: Embeddings | None = None
    late: LateFeatures | None = None  # where only some features are on this disk at a time
    logged: set[str] = field(
        default_factory=set
    )  # faults of recordings that are in the log already

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
            recordings=_select(self.recordings, chosen) if self.recordings else (),
            embeddings=None if self.embeddings is None else self.embeddings.select(chosen),
            late=None if self.late is None else self.late.select(chosen),
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
        """Let the kernel know which mels will be wanted soon."""
        starts, lengths = self.starts["mel"][positions], self.mel_lengths[positions]
        self.columns["mel"].read_ahead(starts.tolist(), lengths.tolist())


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
    columns: dict[str, ColumnData] = {}
    starts: dict[str, np.ndarray] = {}
    is_late = features.store.exceeds_disk(features.shards)
    for view, rows, present in (
        (tokens, token_rows, np.ones(len(token_rows), bool)),
        (features, feature_rows, has_features),
    ):
        for column in view.store.columns:
            columns[column.name] = (
                AbsentColumn(column, view.store.place)
                if is_late and view is features
                else ColumnData(view, column, mapped, in_memory)
            )
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
        late=LateFeatures(features, feature_rows) if is_late else None,
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
