"""What of a remote store lies on this disk: fetched by one process at a time, within a budget."""

import contextlib
import fcntl
import itertools
import logging
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from myxtts.data.store.errors import CacheError
from myxtts.data.store.shard_index import ShardIndex
from myxtts.data.store.shard_writer import Column

logger = logging.getLogger(__name__)

LOCK, INCOMING = ".fetching", ".incoming"


class Shelf:
    """The columns that a folder holds of a store; those that were not used for longest go first.

    With a `budget` so many bytes of them stay, else all.
    """

    def __init__(self, folder: Path, columns: Sequence[Column], budget: int = 0):
        self.folder, self.columns, self.budget = folder, columns, budget

    def has(self, index: ShardIndex) -> bool:
        """Whether all columns of a shard are here, as large as they ought to be."""
        files = [(f"{index.name}.{name}", index.sizes[name]) for name in self._names]
        return all(self.size(file) == size for file, size in files)

    def size(self, name: str) -> int | None:
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; the caller holds the shelf."""
        draft = self.folder / INCOMING / f"{next(_numbers)}-{name}"
        draft.write_bytes(data)
        os.replace(draft, self.folder / name)

    def use(self, shards: Sequence[ShardIndex]) -> None:
        """Note that some shards are in use, and others longer unused than these."""
        for index in shards:
            _used[self.folder / index.name] = next(_numbers)

    def make_room(self, needed: int, keep: Collection[str]) -> None:
        """Forget shards, but not those to keep, until so many bytes fit into the budget."""
        local = self._local()
        excess = sum(local.values()) + needed - self.budget if self.budget else 0
        for name in sorted(local.keys() - set(keep), key=self._last_used):
            if excess <= 0:
                break
            self.forget(name)
            excess -= local[name]
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise CacheError(
                f"{needed / 1e6:,.1f} MB are to be fetched to {self.folder}, where "
                f"{free / 1e6:,.1f} MB are free: free some space, name another disk with "
                "--local-cache-dir, or limit what is kept with --local-cache-gb"
            )

    def forget(self, shard: str) -> None:
        """Delete the columns of a shard here; who has them mapped keeps them until it closes."""
        for name in self._names:
            (self.folder / f"{shard}.{name}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the only one on this machine who fetches and forgets, so that nothing comes twice."""
        with open(self.folder / LOCK, "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.debug("%s is being fetched already: waiting", self.folder)
                fcntl.flock(file, fcntl.LOCK_EX)
            # Whoever wrote there was killed, or does not want it any more.
            shutil.rmtree(self.folder / INCOMING, ignore_errors=True)
            (self.folder / INCOMING).mkdir(exist_ok=True)
            yield

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    def _local(self) -> dict[str, int]:
        """The bytes that each shard takes here."""
        sizes = {}
        for path in self.folder.glob("*.index"):
            files = [self.size(f"{path.stem}.{name}") or 0 for name in self._names]
            if any(files):
                sizes[path.stem] = sum(files)
        return sizes

    def _last_used(self, shard: str) -> tuple[int, float]:
        """In this process; before that, when it was fetched."""
        file = self.folder / f"{shard}.{self._names[0]}"
        return _used.get(self.folder / shard, 0), file.stat().st_mtime if file.exists() else 0.0


_numbers = itertools.count(1)
_used: dict[Path, int] = {}
