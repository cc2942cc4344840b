"""Records what a folder holds before each file operation of a command, and what of it is synced.

A process that is killed leaves what the kernel was told so far, so the folder just before an
operation is what SIGKILL leaves there. A power cut leaves less: contents that were not synced may
be missing or cut, names whose folder was not synced may be the old ones. Both are derived from one
undisturbed run, as ALICE and dm-log-writes do: nothing has to run twice to be killed elsewhere.
"""

import contextlib
import hashlib
import os
import random
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Events of Python's audit hooks that come before something in a folder changes.
_CHANGES = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

ROOT = 0  # the number of the watched folder itself


@dataclass(frozen=True)
class Tree:
    """A folder's names and contents; a file is a key of the blobs, a folder is None."""

    entries: dict[str, str | None]  # by relative path

    @property
    def key(self) -> str:
        return hashlib.sha256(repr(sorted(self.entries.items())).encode()).hexdigest()

    def write_to(self, folder: Path, blobs: Path) -> None:
        """Make the folder hold exactly this."""
        folder.mkdir(parents=True, exist_ok=True)
        for path, blob in sorted(self.entries.items()):
            if blob is None:
                (folder / path).mkdir(parents=True, exist_ok=True)
            else:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes((blobs / blob).read_bytes())


State = tuple[str, Tree]  # after what, and what is there


@dataclass
class _Moment:
    """What was there before an operation: who is where, and each file's content."""

    event: str
    names: dict[tuple[int, str], int]  # (folder, name) -> file or folder, by our numbers
    contents: dict[int, str | None]  # number -> blob, None for a folder
    synced: int | None = None  # whose bytes, or whose names, are synced by the operation


@dataclass
class Recording:
    """Every moment of an undisturbed run; contents are kept in the folder `blobs`."""

    folder: Path
    blobs: Path
    moments: list[_Moment] = field(default_factory=list)
    _known: dict[int, tuple[int, tuple, str | None]] = field(default_factory=dict)
    _next: int = 1
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, event: str, synced_inode: int | None = None) -> None:
        with self._lock:
            names, contents, seen = {}, {}, {}
            self._scan(self.folder, ROOT, names, contents, seen)
            self._known = seen
            number = seen[synced_inode][0] if synced_inode in seen else None
            if synced_inode is not None and number is None:
                number = ROOT if synced_inode == os.stat(self.folder).st_ino else None
            self.moments.append(_Moment(event, names, contents, number))

    def _scan(self, folder: Path, own: int, names: dict, contents: dict, seen: dict) -> None:
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            try:
                found = entry.stat(follow_symlinks=False)
                number, blob = self._look(Path(entry.path), found)
            except FileNotFoundError:  # another thread removed it meanwhile
                continue
            seen[found.st_ino] = (number, _mark(found), blob)
            names[own, entry.name], contents[number] = number, blob
            if stat.S_ISDIR(found.st_mode):
                self._scan(Path(entry.path), number, names, contents, seen)

    def _look(self, path: Path, found: os.stat_result) -> tuple[int, str | None]:
        number, mark, blob = self._known.get(found.st_ino, (self._next, None, None))
        self._next += number == self._next
        if stat.S_ISREG(found.st_mode) and mark != _mark(found):
            blob = self._keep(path.read_bytes())
        return number, blob

    def kills(self) -> list[State]:
        """Each distinct folder that SIGKILL can leave, torn writes included, and before what."""
        found: dict[str, tuple[str, Tree]] = {}
        before = self.moments[0].contents if self.moments else {}
        for at, moment in enumerate(self.moments):
            tree = _tree(moment.names, moment.contents)
            found.setdefault(tree.key, (f"{at}: {moment.event}", tree))
            for number, blob in moment.contents.items():
                if blob is None or before.get(number) == blob:
                    continue
                for part, torn in enumerate(self._torn(before.get(number), blob)):
                    tree = _tree(moment.names, moment.contents | {number: torn})
                    found.setdefault(tree.key, (f"{at}: {moment.event}, torn {part}", tree))
            before = moment.contents
        return list(found.values())

    def _torn(self, before: str | None, blob: str) -> Iterator[str]:
        """What a kill can leave of a write: nothing of it, or half."""
        content = (self.blobs / blob).read_bytes()
        old = (self.blobs / before).read_bytes() if before else b""
        start = len(old) if content.startswith(old) else 0  # appended, or written anew
        for end in (start, (start + len(content)) // 2):
            yield self._keep(content[:end])

    def cuts(self, seed: int, per_moment: int = 3) -> list[State]:
        """Folders that a cut of the power can leave: what is not synced is dropped or reordered."""
        chance, found = random.Random(seed), {}
        disk = _Disk(self.moments[0]) if self.moments else None
        for at, moment in enumerate(self.moments):
            disk.see(moment)
            ways = [disk.oldest(self._cut), disk.names_only(self._cut)]
            ways += [disk.by_chance(self._cut, chance) for _ in range(per_moment)]
            for way, tree in enumerate(ways):
                found.setdefault(tree.key, (f"{at}.{way}: {moment.event}", tree))
            disk.done(moment)
        return list(found.values())

    def _cut(self, blob: str | None, share: float) -> str | None:
        """A prefix of a content, as a blob."""
        if blob is None or share >= 1:
            return blob
        content = (self.blobs / blob).read_bytes()
        return self._keep(content[: int(share * len(content))])

    def _keep(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        kept = self.blobs / name
        if not kept.exists():
            kept.write_bytes(content)
        return name


class _Disk:
    """What a disk is sure to hold, and the changes of names that it may or may not have."""

    def __init__(self, first: _Moment):
        self.names, self.last = dict(first.names), first.names
        self.contents = dict(first.contents)  # as last synced
        self.now = dict(first.contents)
        self.pending: list[dict[tuple[int, str], int | None]] = []

    def see(self, moment: _Moment) -> None:
        """Note how names changed since the moment before, as one operation."""
        changed: dict[tuple[int, str], int | None] = {
            place: moment.names.get(place)
            for place in self.last.keys() | moment.names.keys()
            if self.last.get(place) != moment.names.get(place)
        }
        if changed:
            self.pending.append(changed)
        self.last, self.now = moment.names, self.now | moment.contents

    def done(self, moment: _Moment) -> None:
        """Note what the operation of this moment syncs."""
        if moment.synced is None:
            return
        if moment.contents.get(moment.synced) is not None:
            self.contents[moment.synced] = moment.contents[moment.synced]
            return
        kept = []
        for change in self.pending:
            own = {place: who for place, who in change.items() if place[0] == moment.synced}
            # A rename between two folders is on the disk once either of them is.
            if own:
                _apply(self.names, change)
            else:
                kept.append(change)
        self.pending = kept

    def oldest(self, cut) -> Tree:
        """Nothing that was not synced is there."""
        return self._tree(dict(self.names), lambda number: cut(self.now[number], 0.0))

    def names_only(self, cut) -> Tree:
        """All names are there; contents that were not synced are empty."""
        names = dict(self.names)
        for change in self.pending:
            _apply(names, change)
        return self._tree(names, lambda number: cut(self.now[number], 0.0))

    def by_chance(self, cut, chance: random.Random) -> Tree:
        """Each change of a name and each content is there, or not, or in part."""
        names = dict(self.names)
        for change in self.pending:
            if chance.random() < 0.5:
                _apply(names, change)
        return self._tree(
            names, lambda number: cut(self.now[number], chance.choice((0.0, 0.5, 1.0)))
        )

    def _tree(self, names, unsynced) -> Tree:
        contents = {}
        for number in set(names.values()):
            if self.now.get(number) is None or self.contents.get(number) == self.now[number]:
                contents[number] = self.now.get(number)
            elif number in self.contents:  # appended to since it was synced
                contents[number] = self.contents[number]
            else:
                contents[number] = unsynced(number)
        return _tree(names, contents)


def _apply(names: dict, change: dict) -> None:
    for place, who in change.items():
        if who is None:
            names.pop(place, None)
        else:
            names[place] = who


def _tree(names: dict[tuple[int, str], int], contents: dict[int, str | None]) -> Tree:
    """Paths from numbers; a name in a folder that is not there is not there either."""
    entries: dict[str, str | None] = {}
    waiting = [(ROOT, "")]
    inside: dict[int, list[tuple[str, int]]] = {}
    for (folder, name), number in names.items():
        inside.setdefault(folder, []).append((name, number))
    while waiting:
        folder, path = waiting.pop()
        for name, number in inside.get(folder, ()):
            entries[path + name] = contents[number]
            if contents[number] is None:
                waiting.append((number, f"{path}{name}/"))
    return Tree(entries)


def _mark(found: os.stat_result) -> tuple:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextlib.contextmanager
def record(folder: Path, blobs: Path) -> Iterator[Recording]:
    """Record a folder while this process works in it."""
    blobs.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    recording, is_on, busy = Recording(folder, blobs), [True], threading.local()
    inside, sync = str(folder.resolve()), os.fsync

    def take(event: str, synced: int | None = None) -> None:
        if is_on[0] and not getattr(busy, "now", False):
            busy.now = True
            try:
                recording.take(event, synced)
            finally:
                busy.now = False

    def listen(event: str, arguments: tuple) -> None:
        if not is_on[0]:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(sign in (mode or "") for sign in "wax+") or (flags or 0) & _WRITING
            if writes and _is_inside(path, inside):
                take(f"open {_shown(path, inside)}")
        elif event in _CHANGES:
            where = arguments[1] if event == "os.rename" else arguments[0]
            is_relative = arguments[-1] not in (None, -1)  # to an open folder, as rmtree does it
            if is_relative or _is_inside(where, inside):
                shown = where if is_relative else _shown(where, inside)
                take(f"{event.removeprefix('os.')} {shown}")

    def synced(descriptor: int) -> None:
        take("sync", os.fstat(descriptor).st_ino)
        sync(descriptor)

    sys.addaudithook(listen)
    os.fsync = synced
    try:
        yield recording
    finally:
        take("end")
        is_on[0] = False
        os.fsync = sync


def _is_inside(path, folder: str) -> bool:
    if isinstance(path, int):  # a descriptor
        return False
    absolute = os.path.abspath(os.fsdecode(path))
    return absolute == folder or absolute.startswith(folder + os.sep)


def _shown(path, folder: str) -> str:
    return os.path.relpath(os.fsdecode(path), folder)
