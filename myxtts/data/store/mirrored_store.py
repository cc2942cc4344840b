"""A store on object storage: its indexes, and the shards in use, lie in a folder of this machine.

A shard is uploaded column by column, its index last, and only then its index is written here. So an
index here means that the shard is there, whole, and its columns here may be deleted at any time.
"""

import contextlib
import logging
import threading
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from myxtts.data.store.disk import explained
from myxtts.data.store.errors import REMEDY, CacheError
from myxtts.data.store.remote import MissingObject, Remote, in_daemons
from myxtts.data.store.shard_index import ShardIndex, decode_index, encode_index, parse_index
from myxtts.data.store.shard_writer import Column, in_blocks
from myxtts.data.store.shelf import INCOMING, LOCK, Shelf
from myxtts.data.store.store import Problem, Store, find_column_damage
from myxtts.monitoring.progress import INTERVAL_SECONDS, Progress

logger = logging.getLogger(__name__)

# How often an object is fetched before it counts as damaged where it lies.
ATTEMPTS = 3
_SMALL = (".index", ".json")  # what is fetched before anything is read


class MirroredStore(Store):
    """A store behind a URL, and a folder with the parts of it that were fetched or just made.

    With a `budget` so many bytes of columns stay here, else all that were used.
    """

    _private = (*Store._private, LOCK, INCOMING)

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        settings: dict,
        companions: dict[str, str] | None = None,
        *,
        remote: Remote,
        budget: int = 0,
    ):
        super().__init__(folder, columns, settings, companions)
        self.remote = remote
        self.shelf = Shelf(self.folder, self.columns, budget)

    @property
    def place(self) -> str:
        return self.remote.url

    # Reading

    def pull(self, objects: Mapping[str, int]) -> None:
        """Fetch the manifest and the indexes that are new or changed; forget what is gone.

        `objects` are those of this store, with their sizes. A change always shows in the size: a
        shard is named after its utterances, and its index only ever loses some of them. An index
        that is damaged here is fetched again.
        """
        small = {name: size for name, size in objects.items() if name.endswith(_SMALL)}
        if not small and not self.folder.exists():
            return
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.shelf.held():
                for path in self.index_files():
                    if path.name not in small:
                        super().drop(path.stem)
                wanted = [name for name, size in small.items() if not self._is_sound(name, size)]
                for _ in in_daemons(self._fetch_small, wanted):
                    pass

    def make_local(
        self,
        shards: Sequence[ShardIndex],
        keep: Collection[str] = (),
        cancelled: threading.Event | None = None,
    ) -> None:
        """Fetch what is absent of some shards, in their order; those to `keep` stay as well."""
        self.shelf.use(shards)
        if all(map(self.shelf.has, shards)):
            return
        with explained(self.folder), self.shelf.held():
            # Another process may have fetched them meanwhile.
            absent = [index for index in shards if not self.shelf.has(index)]
            kept = {index.name for index in shards} | set(keep)
            self.shelf.make_room(_bytes_of(absent), kept)
            if absent:
                self._fetch_shards(absent, cancelled)

    def exceeds_disk(self, shards: Sequence[ShardIndex]) -> bool:
        return 0 < self.shelf.budget < _bytes_of(shards)

    def read_rows(self, index: ShardIndex, rows: np.ndarray) -> list[dict[str, np.ndarray]]:
        """The arrays of some utterances of a shard, without fetching all of it."""
        found: list[dict[str, np.ndarray]] = [{} for _ in rows]
        for number, column in enumerate(self.columns):
            pieces = self._read_ranges(index, rows, number)
            for arrays, piece, length in zip(found, pieces, index.lengths[rows], strict=True):
                array = np.frombuffer(piece, column.dtype)
                shaped = array if column.width == 1 else array.reshape(-1, column.width)
                arrays[column.name] = shaped[:length]
        return found

    # Writing

    def create(self) -> None:
        """Write the manifest and companions, and learn what is stored already.

        There first, so that a folder here means that there is a store.
        """
        objects = self.remote.objects()
        self.pull(objects)
        differing = {problem.file for problem in self._verify_fixed_files()}
        for name, content in self._fixed_files().items():
            if objects.get(name) != len(content) or (
                name in differing and self.remote.read(name) != content
            ):
                self.remote.write(name, content)
        super().create()

    def drop(self, shard: str) -> None:
        for suffix in ("index", *(column.name for column in self.columns)):
            self.remote.remove(f"{shard}.{suffix}")
        super().drop(shard)

    def local_share(self, size: int) -> int:
        return min(size, self.shelf.budget) if self.shelf.budget else size

    def _upload_columns(self, index: ShardIndex) -> None:
        for column in self.columns:
            file = self.column_path(index.name, column.name)
            self.remote.upload(file, file.name)

    def _publish(self, index: ShardIndex) -> None:
        self.remote.write(f"{index.name}.index", encode_index(index))
        super()._publish(index)
        if self.shelf.budget:
            with self.shelf.held():
                self.shelf.make_room(0, ())

    # Checking

    def verify(self, progress: Progress | None = None) -> list[Problem]:
        """Fetch every object again and report all that is not as it was written."""
        objects, problems = self.remote.objects(), []
        self.pull(objects)
        for name, content in self._fixed_files().items():
            if name not in objects:
                problems.append(Problem(name, "missing"))
            elif self.remote.read(name) != content:
                problems.append(Problem(name, "differs from the settings that name this store"))
        indexes = [name for name in objects if name.endswith(".index")]
        for done, found in enumerate(in_daemons(self._verify_objects, indexes), 1):
            problems += found
            if progress:
                progress(done, len(indexes))
        return sorted(problems, key=lambda problem: problem.file)

    def _verify_objects(self, name: str) -> list[Problem]:
        """Fetch a shard and compare it with its checksums; nothing of it is kept."""
        shard, problems = name.removesuffix(".index"), []
        try:
            index = parse_index(self.remote.read(name), self.folder / name)
        except MissingObject:  # another process has dropped it meanwhile
            return []
        except CacheError as error:
            return [Problem(name, str(error), shard=shard)]
        for number, column in enumerate(self.columns):
            file = f"{shard}.{column.name}"
            try:
                problems += self._damage_in(self.remote.read(file), index, number)
            except MissingObject:
                problems.append(Problem(file, "missing", shard=shard))
        return problems

    def _verify_shard(self, path: Path) -> list[Problem]:
        """Nothing: whatever is damaged here alone must not be dropped there."""
        with contextlib.suppress(FileNotFoundError, CacheError):  # the next `pull` fetches it again
            self._damage(self.read_index(path))
        return []

    def _damage(self, index: ShardIndex) -> list[Problem]:
        """Nothing: a shard that is damaged here is deleted here, and fetched again when needed."""
        if self.shelf.has(index) and (found := super()._damage(index)):
            logger.warning("%s: %s: it will be fetched again", self.folder.name, found[0])
            self.shelf.forget(index.name)
        return []

    def _check_size(self, index: ShardIndex, column: Column) -> None:
        """Nothing is wrong with a column that is not here."""

    def _damage_in(self, data: bytes, index: ShardIndex, number: int) -> list[Problem]:
        column = self.columns[number]
        expected = index.sizes[column.name]
        if len(data) != expected:
            what = f"has {len(data)} bytes instead of {expected}"
            return [Problem(f"{index.name}.{column.name}", what, index.name)]
        return find_column_damage(np.frombuffer(data, np.uint8), column, index, number)

    # Fetching

    def _fetch_shards(
        self, shards: Sequence[ShardIndex], cancelled: threading.Event | None
    ) -> None:
        jobs = [(index, number) for index in shards for number in range(len(self.columns))]
        count, total, done = len(shards), _bytes_of(shards) / 1e6, 0.0
        logger.info("fetching %d shards (%.1f MB) of %s", count, total, self.place)
        began = said = time.monotonic()
        for size in in_daemons(self._fetch_column, jobs):
            if cancelled and cancelled.is_set():
                return
            done += size / 1e6
            if time.monotonic() - said > INTERVAL_SECONDS:
                said = time.monotonic()
                logger.info("fetched %.1f of %.1f MB", done, total)
        took = time.monotonic() - began
        logger.info("fetched %d shards (%.1f MB) in %.1f s", count, total, took)

    def _fetch_column(self, job: tuple[ShardIndex, int]) -> int:
        """Fetch one column of a shard, check it, and put it on the shelf; return its size."""
        index, number = job
        name = f"{index.name}.{self.columns[number].name}"
        for attempt in range(1, ATTEMPTS + 1):
            data = self.remote.read(name)
            found = self._damage_in(data, index, number)
            if not found:
                self.shelf.put(name, data)
                return len(data)
            message = "%s/%s arrived damaged (%s): attempt %d of %d"
            logger.warning(message, self.place, name, found[0].what, attempt, ATTEMPTS)
        # Perhaps another index has taken the place of this one: the next command fetches it.
        super().drop(index.name)
        raise CacheError(f"{self.place}/{found[0]}{REMEDY}")

    def _fetch_small(self, name: str) -> None:
        """Fetch a manifest or an index; the utterances of a damaged index count as missing."""
        for _ in range(ATTEMPTS):
            data = self.remote.read(name)
            try:
                if name.endswith(".index"):
                    parse_index(data, self.folder / name)
            except CacheError:
                continue
            self.shelf.put(name, data)
            return
        logger.warning("%s/%s is damaged: its utterances count as missing", self.place, name)

    def _is_sound(self, name: str, size: int) -> bool:
        """Whether a small file is here as it is there."""
        if self.shelf.size(name) != size:
            return False
        try:
            if name.endswith(".index"):
                decode_index(self.folder / name)
        except CacheError:
            return False
        return True

    def _read_ranges(self, index: ShardIndex, rows: np.ndarray, number: int) -> list[bytes]:
        column = self.columns[number]
        name, expected = f"{index.name}.{column.name}", index.checksums[rows, number].tolist()
        starts = index.starts[rows] * column.row_bytes
        ends = starts + in_blocks(index.lengths[rows]) * column.row_bytes
        for _ in range(ATTEMPTS):
            pieces = self.remote.read_ranges(name, starts.tolist(), ends.tolist())
            if [zlib.crc32(piece) for piece in pieces] == expected:
                return pieces
        raise CacheError(f"{self.place}/{name} is damaged{REMEDY}")


def _bytes_of(shards: Sequence[ShardIndex]) -> int:
    return sum(sum(index.sizes.values()) for index in shards)
