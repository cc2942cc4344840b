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
from myxtts.data.store.shard_writer import Column, Row, ShardDraft, hash64, in_blocks
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
            # Whoever holds the store takes the temporary files of others for leftovers.
            with self.lock():
                for problem in self._verify_fixed_files():
                    content = self._fixed_files()[problem.file]
                    write_atomically(self.folder / problem.file, content)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store for writing; a second process waits for the first."""
        if self.is_held_here:  # waiting for ourselves would never end
            raise CacheError(
                f"this program is filling {self.folder} already: finish that epoch or close it"
            )
        with self._lock_file() as file:
            if not _locked(file):
                logger.warning("%s is being written by another process: waiting", self.folder)
                fcntl.flock(file, fcntl.LOCK_EX)
            with _holding(self.folder):
                yield

    @property
    def is_held_here(self) -> bool:
        """Whether this process holds the store for writing."""
        return self.folder in _held

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Hold the store for writing if nobody else does; tell whether."""
        with self._lock_file() as file:
            if self.is_held_here or not _locked(file):
                yield False
                return
            with _holding(self.folder):
                yield True

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
            return draft.publish()

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
        write_atomically(self.folder / f"{index.name}.index", encode_index(kept))

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

    # Checking

    def verify(self, progress: Progress | None = None) -> list[Problem]:
        """Read every byte and report all that is not as it was written, shards in parallel."""
        problems = self._verify_fixed_files() + self.check_shards(self.index_files(), progress)
        names = [path.name for path in self._leftovers()]
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
            raise CacheError(f"{path} is missing{REMEDY}") from None
        if size != index.sizes[column.name]:
            expected = index.sizes[column.name]
            raise CacheError(f"{path} has {size} bytes instead of {expected}{REMEDY}")

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


def read_store(folder: Path) -> Store:
    """The store in a folder that its fingerprint names, as its own manifest describes it."""
    path = folder / "store.json"
    try:
        manifest = json.loads(read_regular(path))
        columns = tuple(Column(**column) for column in manifest["columns"])
        is_own = folder.name.endswith(f"-{fingerprint(columns, manifest['settings'])}")
    except (OSError, ValueError, TypeError, KeyError):
        is_own = False
    if not is_own:
        raise CacheError(f"{path} is damaged{REMEDY}")
    return Store(folder, columns, manifest["settings"])


def fingerprint(columns: Sequence[Column], settings: dict) -> str:
    """Key a store by everything that determines its bytes."""
    content = [FORMAT_VERSION, [asdict(column) for column in columns], settings]
    return hashlib.blake2b(
        json.dumps(content, sort_keys=True, ensure_ascii=False).encode(), digest_size=8
    ).hexdigest()


def shard_name(keys: Sequence[tuple[str, int]]) -> str:
    return f"{hash64(json.dumps(keys)):016x}"


def _damaged_rows(data: np.ndarray, column: Column, index: ShardIndex, number: int) -> list[int]:
    """Which utterances of a shard's column differ from their checksums."""
    first = (index.starts * column.row_bytes).tolist()
    last = ((index.starts + in_blocks(index.lengths)) * column.row_bytes).tolist()
    expected = index.checksums[:, number].tolist()
    return [i for i, crc in enumerate(expected) if zlib.crc32(data[first[i] : last[i]].data) != crc]


# The folders that this process holds: a lock of the kernel's tells apart processes only.
_held: set[Path] = set()


@contextlib.contextmanager
def _holding(folder: Path) -> Iterator[None]:
    _held.add(folder)
    try:
        yield
    finally:
        _held.discard(folder)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
