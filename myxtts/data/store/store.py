"""A packed store: utterances as equally long columns in shards that are written once.

A shard is one flat file per column and an index, which is renamed into place last: a shard without
its index does not exist. Nothing in a shard depends on when or by whom it was made, so a store that
was interrupted and finished has the same bytes as one that was not.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from myxtts.atomic import UNWRITABLE
from myxtts.data.store import mmap
from myxtts.data.store.disk import explained, unwritable_message, write_atomically
from myxtts.data.store.errors import REMEDY, CacheError
from myxtts.data.store.shard_index import ARRAYS, ShardIndex, Strings, decode_index, encode_index
from myxtts.data.store.shard_writer import (
    Column,
    Row,
    ShardDraft,
    hash64,
    in_blocks,
    undisturbed,
)
from myxtts.files import NotRegularError, read_regular
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress

FORMAT_VERSION = 1
logger = logging.getLogger(__name__)


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

    `companions` are small files that lie next to the shards, by their names.
    """

    _private: tuple[str, ...] = (".lock",)  # files that are no part of what is stored

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
        index = decode_index(path)
        for column in self.columns:
            self._check_size(index, column)
        return index

    def make_local(self, shards: Sequence[ShardIndex]) -> None:
        """Have the columns of some shards on this disk before they are opened."""

    def exceeds_disk(self, shards: Sequence[ShardIndex]) -> bool:
        """Whether this disk holds only some of these shards at a time."""
        return False

    def local_share(self, size: int) -> int:
        """How many of so many new bytes stay on this disk."""
        return size

    @property
    def place(self) -> str:
        """Where the store lies, for people."""
        return str(self.folder)

    def column_path(self, shard: str, column: str) -> Path:
        return self.folder / f"{shard}.{column}"

    # Writing

    def create(self) -> None:
        """Make the folder, its manifest and companions, or write again those that differ."""
        try:
            with explained(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CacheError(unwritable_message(self.folder.parent, error)) from error
        if self._verify_fixed_files():
            # Whoever holds the store alone takes the temporary files of others for leftovers. To
            # share it is enough, as all write the same; waiting to be alone might take hours.
            with self.share():
                for problem in self._verify_fixed_files():
                    content = self._fixed_files()[problem.file]
                    write_atomically(self.folder / problem.file, content)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store alone, to write and delete; everybody else waits."""
        if self.is_held_here or self.is_shared_here:  # waiting for ourselves would never end
            raise self._held_twice()
        with self._lock_file() as file:
            self._wait_for(file, fcntl.LOCK_EX)
            with _holding(_held, self.folder):
                yield

    @contextlib.contextmanager
    def share(self) -> Iterator[None]:
        """Hold the store together with others that only add shards; who wants it alone waits."""
        if self.is_held_here:
            raise self._held_twice()
        with self._lock_file() as file:
            self._wait_for(file, fcntl.LOCK_SH)
            with _holding(_shared, self.folder):
                yield

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Hold the store alone if nobody else holds it; tell whether."""
        with self._lock_file() as file:
            is_ours = self.is_held_here or self.is_shared_here
            if is_ours or not _locked(file, fcntl.LOCK_EX):
                yield False
                return
            with _holding(_held, self.folder):
                yield True

    @property
    def is_held_here(self) -> bool:
        """Whether this process holds the store alone."""
        return self.folder in _held

    @property
    def is_shared_here(self) -> bool:
        """Whether this process holds the store together with others."""
        return self.folder in _shared

    def write_shard(
        self, rows: Iterable[Row], keys: Sequence[tuple[str, int]], generation: int = 0
    ) -> ShardIndex:
        """Write one shard and publish it; `keys` are the (id, signature) pairs of its rows.

        The name is derived from the keys, so that the same work has the same name in every run.
        """
        with (
            explained(self.folder),
            ShardDraft(self.folder, self.columns, shard_name(keys), generation) as draft,
        ):
            for row in rows:
                draft.add(row)
            index = draft.write_columns()
            self._upload_columns(index)
            self._publish(index)
            return index

    def drop(self, shard: str) -> None:
        """Remove a shard: first its index, so that it is gone at once and whole."""
        with explained(self.folder):
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
            *(getattr(index, name)[keep] for name in ARRAYS),
        )
        self._publish(kept)

    def remove_leftovers(self) -> list[str]:
        """Delete temporary files and data files that no index describes; say which."""
        removed = []
        with explained(self.folder):
            for path in self._leftovers():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                removed.append(path.name)
        return removed

    def _upload_columns(self, index: ShardIndex) -> None:
        """Take the columns of a shard to object storage, if the store lies there."""

    def _publish(self, index: ShardIndex) -> None:
        """Write an index: from then on its shard exists."""
        with undisturbed():
            write_atomically(self.folder / f"{index.name}.index", encode_index(index))

    # Checking

    def verify(self, progress: Progress | None = None) -> list[Problem]:
        """Read every byte and report all that is not as it was written, shards in parallel."""
        problems = self._verify_fixed_files() + self.check_shards(self.index_files(), progress)
        names = [] if self._is_held_elsewhere() else [path.name for path in self._leftovers()]
        return problems + [Problem(name, "a foreign or temporary file") for name in names]

    def check_shards(
        self, indexes: Sequence[Path], progress: Progress | None = None
    ) -> list[Problem]:
        """Compare every byte of some shards with their checksums, in parallel."""
        problems = []
        with ThreadPoolExecutor(available_cores()) as pool:
            for done, found in enumerate(pool.map(self._verify_shard, indexes), 1):
                problems += found
                if progress:
                    progress(done, len(indexes))
        return problems

    def _verify_fixed_files(self) -> list[Problem]:
        problems = []
        for name, content in self._fixed_files().items():
            path = self.folder / name
            try:
                is_same = read_regular(path) == content
            except FileNotFoundError:
                problems.append(Problem(name, "missing"))
            except NotRegularError as error:
                problems.append(Problem(name, error.strerror))
            else:
                if not is_same:
                    what = "differs from the settings that name this store"
                    problems.append(Problem(name, what))
        return problems

    def _verify_shard(self, path: Path) -> list[Problem]:
        try:
            index = self.read_index(path)
        except FileNotFoundError:  # another process has dropped it meanwhile
            return []
        except CacheError as error:
            return [Problem(path.name, str(error), shard=path.stem)]
        return self._damage(index)

    def _damage(self, index: ShardIndex) -> list[Problem]:
        """Compare every byte of a shard's columns with the checksums, and the padding with zero."""
        problems = []
        for number, column in enumerate(self.columns):
            file = self.column_path(index.name, column.name)
            data = mmap.map_files([file], [index.sizes[column.name]])
            problems += find_column_damage(data, column, index, number)
        return problems

    def _leftovers(self) -> list[Path]:
        named = {path.stem for path in self.index_files()}
        suffixes = {column.name for column in self.columns} | {"index"}
        own = {*self._private, *self._fixed_files()}
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
            raise CacheError(f"{path} is missing{REMEDY}") from None
        if size != index.sizes[column.name]:
            expected = index.sizes[column.name]
            raise CacheError(f"{path} has {size} bytes instead of {expected}{REMEDY}")

    def _is_held_elsewhere(self) -> bool:
        """Whether others are writing, so that what looks like a leftover is not."""
        if self.is_held_here or not (self.folder / ".lock").exists():
            return False
        with self.try_lock() as is_free:
            return not is_free

    def _wait_for(self, file: int, kind: int) -> None:
        if not _locked(file, kind):
            logger.warning("%s is being written by another process: waiting", self.folder)
            fcntl.flock(file, kind)

    def _held_twice(self) -> CacheError:
        return CacheError(
            f"this program is filling {self.folder} already: finish that epoch or close it"
        )

    @contextlib.contextmanager
    def _lock_file(self) -> Iterator[int]:
        """The file whose lock is held; where nothing can be written, the folder does as well."""
        with explained(self.folder):
            try:
                descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if error.errno not in UNWRITABLE:
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


def fingerprint(columns: Sequence[Column], settings: dict) -> str:
    """Key a store by everything that determines its bytes."""
    content = [FORMAT_VERSION, [asdict(column) for column in columns], settings]
    return hashlib.blake2b(
        json.dumps(content, sort_keys=True, ensure_ascii=False).encode(), digest_size=8
    ).hexdigest()


def shard_name(keys: Sequence[tuple[str, int]]) -> str:
    return f"{hash64(json.dumps(keys)):016x}"


def find_column_damage(
    data: np.ndarray, column: Column, index: ShardIndex, number: int
) -> list[Problem]:
    """Compare the bytes of one column of a shard with the checksums, and its padding with zero."""
    file, problems = f"{index.name}.{column.name}", []
    bad = tuple(index.ids[i] for i in _damaged_rows(data, column, index, number))
    if bad:
        problems.append(Problem(file, "damaged utterances", index.name, bad))
    if np.any(data[index.rows * column.row_bytes :]):
        problems.append(Problem(file, "damaged padding", index.name))
    return problems


def _damaged_rows(data: np.ndarray, column: Column, index: ShardIndex, number: int) -> list[int]:
    """Which utterances of a shard's column differ from their checksums."""
    first = (index.starts * column.row_bytes).tolist()
    last = ((index.starts + in_blocks(index.lengths)) * column.row_bytes).tolist()
    expected = index.checksums[:, number].tolist()
    return [i for i, crc in enumerate(expected) if zlib.crc32(data[first[i] : last[i]].data) != crc]


# The folders that this process holds, alone and with others, as often as they are listed: a lock of
# the kernel's tells apart processes only.
_held: list[Path] = []
_shared: list[Path] = []


@contextlib.contextmanager
def _holding(held: list[Path], folder: Path) -> Iterator[None]:
    held.append(folder)
    try:
        yield
    finally:
        held.remove(folder)


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
