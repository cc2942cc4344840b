"""A packed store: utterances as equally long columns in shards that are written once.

A shard is one flat file per column and an index, which is renamed into place last: a shard without
its index does not exist. Nothing in a shard depends on when or by whom it was made, so a store that
was interrupted and finished has the same bytes as one that was not.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import math
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import safetensors.numpy

from myxtts.data import mapping
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores

FORMAT_VERSION = 1
logger = logging.getLogger(__name__)


class CacheError(UserError):
    """The cache cannot be written, or what it holds is not what was written."""


@dataclass(frozen=True, slots=True)
class Column:
    """One array per utterance, [length] where width is 1 and [length, width] otherwise."""

    name: str
    dtype: str
    width: int = 1

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * self.width

    @property
    def unit(self) -> int:
        """Files are padded to this many bytes: whole rows, and a whole number of pages."""
        return math.lcm(mapping.ALIGNMENT, self.row_bytes)

    def padded_bytes(self, rows: int) -> int:
        """The size of a file of so many rows; it ends with at least one row of zeros."""
        return (rows + 1) * self.row_bytes + -((rows + 1) * self.row_bytes) % self.unit


@dataclass(frozen=True, slots=True)
class Row:
    """What one utterance puts into a shard; `reason` says why it has no arrays."""

    id: str
    signature: int
    content: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    reason: str = ""


class Strings(Sequence):
    """Many strings in one blob, decoded where they are asked for: a million cost milliseconds."""

    def __init__(self, blob: bytes, starts: np.ndarray, ends: np.ndarray):
        self.blob, self.starts, self.ends = blob, starts, ends

    @classmethod
    def pack(cls, texts: Sequence[str]) -> "Strings":
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(text) for text in encoded], np.int64)
        ends = np.cumsum(lengths)
        return cls(b"".join(encoded), ends - lengths, ends)

    @classmethod
    def concatenate(cls, parts: Sequence["Strings"]) -> "Strings":
        offsets = np.cumsum([0] + [len(part.blob) for part in parts])[:-1].tolist()
        empty = np.zeros(0, np.int64)
        starts = [part.starts + at for part, at in zip(parts, offsets, strict=True)]
        ends = [part.ends + at for part, at in zip(parts, offsets, strict=True)]
        blob = b"".join(part.blob for part in parts)
        return cls(blob, np.concatenate([empty, *starts]), np.concatenate([empty, *ends]))

    def select(self, chosen: np.ndarray) -> "Strings":
        """Keep some, in the given order, by a mask or by positions; the blob is shared."""
        starts, ends = self.starts[chosen], self.ends[chosen]
        return Strings(self.blob, starts, ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, position: int) -> str:
        return self.blob[self.starts[position] : self.ends[position]].decode()

    def __iter__(self) -> Iterator[str]:
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield self.blob[start:end].decode()


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """What a shard holds: parallel arrays over its utterances."""

    name: str
    generation: int
    rows: int
    sizes: dict[str, int]
    ids: "Strings"
    notes: dict[str, "Strings"]
    keys: np.ndarray
    signatures: np.ndarray
    contents: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    checksums: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something `verify` found: a file, what is wrong with it, and the utterances that it costs."""

    file: str
    what: str
    shard: str = ""
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.ids[:3]) + (", ..." if len(self.ids) > 3 else "")
        return f"{self.file}: {self.what}" + (f" ({len(self.ids)}: {shown})" if self.ids else "")


class Store:
    """A folder of shards that share their columns and the settings that determine their bytes.

    `companions` are small files that lie beside the shards, by their names.
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        settings: dict,
        companions: dict[str, str] | None = None,
    ):
        self.folder = Path(folder)
        self.columns = tuple(columns)
        self.settings = settings
        self.companions = companions or {}

    # Reading

    def shards(self) -> list[ShardIndex]:
        """Read every index, in the order of names; a damaged one is an error."""
        return [self.read_index(path) for path in self.index_files()]

    def index_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.index"))

    def read_index(self, path: Path) -> ShardIndex:
        """Read one index and check its checksum and the sizes of the files that it describes."""
        index = _decode_index(path)
        for column in self.columns:
            self._check_size(index, column)
        return index

    def column_path(self, shard: str, column: str) -> Path:
        return self.folder / f"{shard}.{column}"

    # Writing

    def create(self) -> None:
        """Make the folder, its manifest and companions, or mend those that are not as expected."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._verify_fixed_files():
            # Whoever holds the store takes the temporary files of others for leftovers.
            with self.lock():
                for problem in self._verify_fixed_files():
                    content = self._fixed_files()[problem.file]
                    write_atomically(self.folder / problem.file, content)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store for writing; a second process waits for the first."""
        with self._lock_file() as file:
            if not _locked(file):
                logger.warning("%s is being written by another process: waiting", self.folder)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Hold the store for writing if nobody else does; tell whether."""
        with self._lock_file() as file:
            yield _locked(file)

    def write_shard(
        self, rows: Iterable[Row], keys: Sequence[tuple[str, int]], generation: int = 0
    ):
        """Write one shard and publish it; `keys` are the (id, signature) pairs of its rows.

        The name is derived from the keys, so that the same work has the same name in every run.
        """
        with _explained(self.folder), _Draft(self, shard_name(keys), generation) as draft:
            for row in rows:
                draft.add(row)
            return draft.publish()

    def drop(self, shard: str) -> None:
        """Remove a shard: first its index, so that it is gone at once and whole."""
        with _explained(self.folder):
            for suffix in ("index", *(column.name for column in self.columns)):
                (self.folder / f"{shard}.{suffix}").unlink(missing_ok=True)

    def drop_rows(self, index: ShardIndex, ids: Iterable[str]) -> None:
        """Publish an index without some utterances; their bytes stay behind as unused space."""
        dropped = set(ids)
        keep = np.array([name not in dropped for name in index.ids], bool)
        if not keep.any():
            self.drop(index.name)
            return
        kept = ShardIndex(
            index.name,
            index.generation,
            index.rows,
            index.sizes,
            Strings.pack(list(index.ids.select(keep))),
            {note: Strings.pack(list(text.select(keep))) for note, text in index.notes.items()},
            *(getattr(index, name)[keep] for name in _ARRAYS),
        )
        write_atomically(self.folder / f"{index.name}.index", _encode_index(kept))

    def remove_leftovers(self) -> list[str]:
        """Delete temporary files and data files that no index describes; say which."""
        removed = []
        with _explained(self.folder):
            for path in self._leftovers():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                removed.append(path.name)
        return removed

    # Checking

    def verify(self, progress=None) -> list[Problem]:
        """Read every byte and report all that is not as it was written, shards in parallel."""
        problems = self._verify_fixed_files()
        files = self.index_files()
        with ThreadPoolExecutor(available_cores()) as pool:
            for done, found in enumerate(pool.map(self._verify_shard, files), 1):
                problems += found
                if progress:
                    progress(done, len(files))
        names = [path.name for path in self._leftovers()]
        return problems + [Problem(name, "a foreign or temporary file") for name in names]

    def _verify_fixed_files(self) -> list[Problem]:
        problems = []
        for name, content in self._fixed_files().items():
            path = self.folder / name
            if not path.exists():
                problems.append(Problem(name, "missing"))
            elif path.read_bytes() != content:
                problems.append(Problem(name, "differs from the settings that name this store"))
        return problems

    def _verify_shard(self, path: Path) -> list[Problem]:
        try:
            index = self.read_index(path)
        except CacheError as error:
            return [Problem(path.name, str(error), shard=path.stem)]
        return self._damage(index)

    def _damage(self, index: ShardIndex) -> list[Problem]:
        """Compare every byte of a shard's columns with the checksums, and the padding with zero."""
        problems = []
        for number, column in enumerate(self.columns):
            file = self.column_path(index.name, column.name)
            data = mapping.map_files([file], [index.sizes[column.name]])
            bad = tuple(index.ids[i] for i in _damaged_rows(data, column, index, number))
            if bad:
                problems.append(Problem(file.name, "damaged utterances", index.name, bad))
            if np.any(data[index.rows * column.row_bytes :]):
                problems.append(Problem(file.name, "damaged padding", index.name))
        return problems

    def _leftovers(self) -> list[Path]:
        named = {path.stem for path in self.index_files()}
        suffixes = {column.name for column in self.columns} | {"index"}
        own = {".lock", *self._fixed_files()}
        return [
            path
            for path in sorted(self.folder.iterdir())
            if path.name not in own
            and not (path.stem in named and path.suffix[1:] in suffixes and path.is_file())
        ]

    def _check_size(self, index: ShardIndex, column: Column) -> None:
        path = self.column_path(index.name, column.name)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise CacheError(f"{path} is missing{_REMEDY}") from None
        if size != index.sizes[column.name]:
            expected = index.sizes[column.name]
            raise CacheError(f"{path} has {size} bytes instead of {expected}{_REMEDY}")

    @contextlib.contextmanager
    def _lock_file(self) -> Iterator[int]:
        """The file whose lock is held; where nothing can be written, the folder does as well."""
        try:
            descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _fixed_files(self) -> dict[str, bytes]:
        """The files that follow from the settings: the companions, and the manifest last."""
        manifest = {
            "format": FORMAT_VERSION,
            "columns": [asdict(column) for column in self.columns],
            "settings": self.settings,
        }
        text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        files = {**self.companions, "store.json": text}
        return {name: text.encode() for name, text in files.items()}


_REMEDY = "; run `myxtts cache fix` or verify_and_fix_cache(fix=True)"


def fingerprint(columns: Sequence[Column], settings: dict) -> str:
    """Key a store by everything that determines its bytes."""
    content = [FORMAT_VERSION, [asdict(column) for column in columns], settings]
    return hashlib.blake2b(
        json.dumps(content, sort_keys=True, ensure_ascii=False).encode(), digest_size=8
    ).hexdigest()


def hash64(text: str) -> int:
    """A stable 64-bit hash of a string."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def shard_name(keys: Sequence[tuple[str, int]]) -> str:
    return f"{hash64(json.dumps(keys)):016x}"


def _damaged_rows(data: np.ndarray, column: Column, index: ShardIndex, number: int) -> list[int]:
    """Which utterances of a shard's column differ from their checksums."""
    first = (index.starts * column.row_bytes).tolist()
    last = ((index.starts + index.lengths) * column.row_bytes).tolist()
    expected = index.checksums[:, number].tolist()
    return [i for i, crc in enumerate(expected) if zlib.crc32(data[first[i] : last[i]]) != crc]


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename: readers see the old file or the new one, whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with _explained(path.parent):
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def unwritable_message(folder: Path, error: OSError) -> str:
    return (
        f"cannot write the cache to {folder} ({error.strerror}): "
        "make it writable, or name another place with --cache-dir"
    )


_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Say what to do where a disk is full or must not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise CacheError(
                f"no space left while writing to {folder}. What was finished is kept: free some "
                "space and run the same command again, or move the cache with --cache-dir"
            ) from error
        if error.errno in _UNWRITABLE:
            raise CacheError(unwritable_message(folder, error)) from error
        raise


class _Draft:
    """A shard being written under temporary names; memory stays bounded by one utterance."""

    def __init__(self, store: Store, name: str, generation: int):
        self.store, self.name, self.generation = store, name, generation
        self.rows: list[Row] = []
        self.lengths: list[int] = []
        self.checksums: list[list[int]] = []
        self.files = {}

    def __enter__(self) -> "_Draft":
        try:
            for column in self.store.columns:
                self.files[column.name] = open(self._temporary(column.name), "wb")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        for name, file in self.files.items():
            with contextlib.suppress(OSError):  # closing flushes, which fails again on a full disk
                file.close()
            self._temporary(name).unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Append an utterance's arrays; only its names and numbers stay in memory."""
        length = 0 if row.reason else len(row.arrays[self.store.columns[0].name])
        crcs = [0] * len(self.store.columns)
        for number, column in enumerate(self.store.columns if not row.reason else ()):
            array = np.ascontiguousarray(row.arrays[column.name], column.dtype)
            expected = (length,) if column.width == 1 else (length, column.width)
            if array.shape != expected:
                raise ValueError(f"{row.id}: {column.name} is {array.shape}, not {expected}")
            data = memoryview(array).cast("B")
            crcs[number] = zlib.crc32(data)
            self.files[column.name].write(data)
        self.rows.append(Row(row.id, row.signature, row.content, {}, row.notes, row.reason))
        self.lengths.append(length)
        self.checksums.append(crcs)

    def publish(self) -> ShardIndex:
        """Pad, sync and rename the columns, then the index: from then on the shard exists."""
        index = self._index()
        for column in self.store.columns:
            file = self.files[column.name]
            # Real zeros, not a hole: mapping a hole of a full memory disk kills the process.
            file.write(bytes(index.sizes[column.name] - index.rows * column.row_bytes))
            file.flush()
            os.fsync(file.fileno())
            file.close()
        for column in self.store.columns:
            target = self.store.column_path(self.name, column.name)
            os.replace(self._temporary(column.name), target)
        write_atomically(self.store.folder / f"{self.name}.index", _encode_index(index))
        return index

    def _index(self) -> ShardIndex:
        lengths = np.array(self.lengths, np.int32)
        starts = np.zeros(len(lengths), np.int64)
        np.cumsum(lengths[:-1], out=starts[1:])
        total = int(lengths.sum())
        notes = [{**row.notes, "reason": row.reason} for row in self.rows]
        return ShardIndex(
            name=self.name,
            generation=self.generation,
            rows=total,
            sizes={column.name: column.padded_bytes(total) for column in self.store.columns},
            ids=Strings.pack([row.id for row in self.rows]),
            notes={key: Strings.pack([note[key] for note in notes]) for key in sorted(notes[0])},
            keys=np.array([hash64(row.id) for row in self.rows], np.uint64),
            signatures=np.array([row.signature for row in self.rows], np.uint64),
            contents=np.array([row.content for row in self.rows], np.uint64),
            starts=starts,
            lengths=lengths,
            checksums=np.array(self.checksums, np.uint32).reshape(len(lengths), -1),
        )

    def _temporary(self, column: str) -> Path:
        return self.store.folder / f"{self.name}.{column}.{os.getpid()}.tmp"


_ARRAYS = ("keys", "signatures", "contents", "starts", "lengths", "checksums")


def _encode_index(index: ShardIndex) -> bytes:
    """Arrays and strings as safetensors, followed by a checksum of all that."""
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    for name, strings in {"ids": index.ids, **_prefixed(index.notes)}.items():
        arrays[f"{name}.bytes"] = np.frombuffer(strings.blob, np.uint8)
        arrays[f"{name}.lengths"] = strings.ends - strings.starts
    header = {field: getattr(index, field) for field in ("name", "generation", "rows", "sizes")}
    content = safetensors.numpy.save(arrays, {"shard": json.dumps(header, sort_keys=True)})
    return content + zlib.crc32(content).to_bytes(4, "little")


def _decode_index(path: Path) -> ShardIndex:
    data = path.read_bytes()
    content = data[:-4]
    if len(data) < 16 or zlib.crc32(content) != int.from_bytes(data[-4:], "little"):
        raise CacheError(f"{path} is damaged{_REMEDY}")
    arrays = safetensors.numpy.load(content)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["shard"])
    if header["name"] != path.stem:
        raise CacheError(f"{path} describes another shard, {header['name']}{_REMEDY}")
    notes = [key[5:-6] for key in arrays if key.startswith("note.") and key.endswith(".bytes")]
    return ShardIndex(
        **header,
        ids=_strings(arrays, "ids"),
        notes={note: _strings(arrays, f"note.{note}") for note in sorted(notes)},
        **{name: arrays[name] for name in _ARRAYS},
    )


def _prefixed(notes: dict[str, "Strings"]) -> dict[str, "Strings"]:
    return {f"note.{key}": strings for key, strings in notes.items()}


def _strings(arrays: dict[str, np.ndarray], name: str) -> "Strings":
    ends = np.cumsum(arrays[f"{name}.lengths"])
    return Strings(arrays[f"{name}.bytes"].tobytes(), ends - arrays[f"{name}.lengths"], ends)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
