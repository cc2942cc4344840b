"""Every state of a folder in which a SIGKILL could leave it, recorded while a program runs.

    with record(folder) as states:
        run_something_that_writes_to(folder)
    for state in states:
        state.write_to(another)  # as the kill left it; resume there, and compare

A state is taken before each file operation that changes the folder, and after each fsync. Between
two of them a file may be written in part: for one that was written, not renamed, the list also has
a state in which it is empty and one in which half of what was added is there. What native code
writes by itself is seen when Python's next operation comes.
"""

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Audit events of what changes a folder; `open` is told apart by its mode.
_EVENTS = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"),
    *("shutil.rmtree", "shutil.move", "shutil.copyfile"),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class State:
    """A folder's tree at one moment: bytes by relative path, None for a folder."""

    entries: tuple[tuple[str, bytes | None], ...]
    before: str  # the operation that came next

    def write_to(self, folder: str | Path) -> None:
        """Make an empty or missing folder hold this tree."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.entries:
            if content is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_bytes(content)


@contextmanager
def record(
    folder: str | Path, ignore: Callable[[str], bool] = lambda name: False
) -> Iterator[list[State]]:
    """Give a list that receives the distinct states of a folder, in order, while the block runs.

    `ignore` says of a relative path that it is not part of a state.
    """
    recorder = _Recorder(Path(folder), ignore)
    _install()
    _active.append(recorder)
    try:
        yield recorder.states
    finally:
        _active.remove(recorder)
        recorder.take("the end")


class _Recorder:
    def __init__(self, folder: Path, ignore: Callable[[str], bool]):
        self.folder, self.ignore = folder, ignore
        self.states: list[State] = []
        self._seen: set[bytes] = set()
        self._files: dict[str, tuple[tuple, bytes]] = {}  # by path: how it looked, what it held
        self._blobs: dict[bytes, bytes] = {}  # one copy of equal contents
        self._tree = self._scan()
        self._add(self._tree, "the start")

    def take(self, event: str) -> None:
        tree = self._scan()
        if tree == self._tree:
            return
        for torn in self._torn(tree):
            self._add(torn, event)
        self._add(tree, event)
        self._tree = tree

    def _add(self, tree: dict[str, bytes | None], event: str) -> None:
        entries = tuple(sorted(tree.items()))
        digest = hashlib.sha256()
        for name, content in entries:
            digest.update(repr((name, content and hashlib.sha256(content).digest())).encode())
        if digest.digest() not in self._seen:
            self._seen.add(digest.digest())
            self.states.append(State(entries, event))

    def _torn(self, tree: dict[str, bytes | None]) -> Iterator[dict[str, bytes | None]]:
        """The trees in which what was written since the last one is there in part."""
        known = {content for content in self._tree.values() if content is not None}
        for name, content in tree.items():
            if not content or content in known:
                continue
            before = self._tree.get(name) or b""
            start = len(before) if content.startswith(before) else 0
            for length in {start, (start + len(content)) // 2}:
                yield {**tree, name: content[:length]}

    def _scan(self) -> dict[str, bytes | None]:
        tree: dict[str, bytes | None] = {}
        found: dict[str, tuple[tuple, bytes]] = {}
        for path, folders, names in os.walk(self.folder):
            own = os.path.relpath(path, self.folder)
            inside = "" if own == "." else f"{own}/"
            folders[:] = [name for name in folders if not self.ignore(inside + name)]
            tree |= {inside + name: None for name in folders}
            for name in names:
                if not self.ignore(inside + name):
                    self._look(os.path.join(path, name), inside + name, found)
        self._files = found
        return tree | {name: content for name, (_, content) in found.items()}

    def _look(self, path: str, name: str, found: dict[str, tuple[tuple, bytes]]) -> None:
        try:
            seen = os.stat(path, follow_symlinks=False)
            if not stat.S_ISREG(seen.st_mode):
                return
            looks = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if name in self._files and self._files[name][0] == looks:
                found[name] = self._files[name]
                return
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:  # another thread was faster
            return
        found[name] = looks, self._blobs.setdefault(hashlib.sha256(content).digest(), content)


_active: list[_Recorder] = []
_lock = threading.RLock()
_inside = threading.local()
_is_installed = False


def _install() -> None:
    """Audit hooks stay for the life of the process: there is one, for all recorders."""
    global _is_installed
    if _is_installed:
        return
    _is_installed = True
    sys.addaudithook(_hear)
    sync = os.fsync

    def fsync(descriptor) -> None:
        sync(descriptor)
        _take("after os.fsync")

    os.fsync = fsync


def _hear(event: str, arguments: tuple) -> None:
    if not _active:
        return
    if event == "open":
        _, mode, flags = arguments
        is_writing = isinstance(mode, str) and set(mode) & set("wax+")
        if not is_writing and not (mode is None and flags & _WRITING):
            return
    elif event not in _EVENTS:
        return
    _take(f"{event} {arguments[0]}")


def _take(event: str) -> None:
    if getattr(_inside, "is_taking", False):  # the recorder's own files
        return
    _inside.is_taking = True
    try:
        with _lock:
            for recorder in _active:
                recorder.take(event)
    finally:
        _inside.is_taking = False
