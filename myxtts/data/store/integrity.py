"""Damage in a store: found by checksums, once per process and shard, reported and dropped."""

import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.data.store.errors import CacheError
from myxtts.data.store.shard_index import decode_index
from myxtts.data.store.store import Problem, Store
from myxtts.monitoring.progress import Progress

logger = logging.getLogger(__name__)

# Of a file that was written this recently, another change may leave the same times behind.
_RECENT_NS = 100_000_000


@dataclass(frozen=True)
class Damage:
    """What was dropped from a store."""

    ids: frozenset[str] = frozenset()
    shards: frozenset[str] = frozenset()  # whole ones, whose utterances are perhaps unknown

    def __or__(self, other: "Damage") -> "Damage":
        return Damage(self.ids | other.ids, self.shards | other.shards)

    def cost(self, utterance_id: str, shard: str) -> bool:
        """Whether an utterance that lies in a shard now had to be made again."""
        return utterance_id in self.ids or shard in self.shards


def find_damage(store: Store, progress: Progress | None = None) -> list[Problem]:
    """What differs from its checksums, in shards that this process has not checked as they are."""
    if not store.folder.exists():
        return []
    now, seen = time.time_ns(), {path: _identity(store, path) for path in store.index_files()}
    unchecked = [path for path, identity in seen.items() if _checked.get(path) != identity]
    problems = store.check_shards(unchecked, progress)
    damaged = {problem.shard for problem in problems}
    for path in unchecked:
        if path.stem not in damaged and _is_settled(seen[path], now):
            _checked[path] = seen[path]
    return problems


def drop_damage(store: Store, progress: Progress | None = None) -> list[Problem]:
    """Find damage, report it in the log, and drop it, so that it is made again."""
    problems = find_damage(store, progress)
    report_damage(store, problems)
    drop(store, problems)
    return problems


def report_damage(store: Store, problems: Iterable[Problem]) -> None:
    for problem in problems:
        logger.warning("%s: %s", store.folder.name, problem)


def drop(store: Store, problems: Sequence[Problem]) -> None:
    """Drop what was found damaged, if it still is."""
    if not problems:
        return
    with store.lock():
        # Another process may have found and repaired the same meanwhile.
        names = sorted({problem.shard for problem in problems})
        paths = [store.folder / f"{name}.index" for name in names]
        drop_damaged(store, store.check_shards([path for path in paths if path.exists()]))


def drop_damaged(store: Store, problems: Sequence[Problem]) -> None:
    """Take damaged utterances out of their shards, and shards out of the store where need be."""
    ids: dict[str, set[str]] = defaultdict(set)
    whole = {problem.shard for problem in problems if problem.shard and not problem.ids}
    for problem in problems:
        ids[problem.shard].update(problem.ids)
    for shard in sorted(filter(None, ids)):
        path = store.folder / f"{shard}.index"
        if shard in whole:
            lost = Damage(_ids_in(path), frozenset({shard}))
            store.drop(shard)
        else:
            lost = Damage(frozenset(ids[shard]))
            store.drop_rows(store.read_index(path), ids[shard])
        _dropped[store.folder] |= lost


def count_rebuilt(store: Store, made: Iterable[tuple[str, str]]) -> int:
    """How many of the utterances made, with their shards, replace what this process dropped.

    Each is counted once.
    """
    dropped = _dropped.pop(store.folder, Damage())
    again = [(name, shard) for name, shard in made if dropped.cost(name, shard)]
    ids, shards = ({pair[at] for pair in again} for at in range(2))
    _dropped[store.folder] = Damage(dropped.ids - ids, dropped.shards - shards)
    return len(again)


def _ids_in(path: Path) -> frozenset[str]:
    """The utterances of a shard, as far as its index can be read."""
    try:
        return frozenset(decode_index(path).ids)
    except CacheError:
        return frozenset()


def _identity(store: Store, index: Path) -> tuple | None:
    """Changes whenever a file of a shard is written; nothing where one is missing."""
    files = [index, *(store.column_path(index.stem, column.name) for column in store.columns)]
    try:
        found = [os.stat(file) for file in files]
    except OSError:
        return None
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)


def _is_settled(identity: tuple | None, now: int) -> bool:
    return identity is not None and all(now - one[3] > _RECENT_NS for one in identity)


_checked: dict[Path, tuple | None] = {}
_dropped: defaultdict[Path, Damage] = defaultdict(Damage)
