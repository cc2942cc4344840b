"""Object storage in memory that counts what it is asked for, and fails when a test says so."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class FaultyStorage(MemoryFileSystem):
    """`faulty://...`: what lies there, what was asked, and what is to go wrong.

    `fault` is called with the operation and the path before each one; it may raise, or return a
    function that changes the bytes which are read.
    """

    protocol = "faulty"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    asked: ClassVar[list[tuple[str, str]]] = []
    fault: ClassVar[Callable[[str, str], Any] | None] = None

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("faulty://", "memory://"))

    def cat_file(self, path, start=None, end=None, **kwargs):
        change = self._ask("get" if start is None else "range", path)
        data = super().cat_file(path, start, end, **kwargs)
        return change(data) if change else data

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self._ask("put", path)
        return super().pipe_file(path, value, mode, **kwargs)

    def put_file(self, lpath, rpath, **kwargs):
        self._ask("put", rpath)
        with open(lpath, "rb") as file:
            return super().pipe_file(rpath, file.read())

    def rm_file(self, path):
        self._ask("delete", path)
        return super()._rm(path)

    def find(self, path, **kwargs):
        self._ask("list", path)
        return super().find(path, **kwargs)

    def _ask(self, operation: str, path: str) -> Any:
        path = self._strip_protocol(path)
        type(self).asked.append((operation, path))
        return type(self).fault(operation, path) if type(self).fault else None


fsspec.register_implementation("faulty", FaultyStorage, clobber=True)


@contextmanager
def fresh_storage() -> Iterator[type[FaultyStorage]]:
    """An empty storage without faults."""
    FaultyStorage.store.clear()
    FaultyStorage.pseudo_dirs[:] = [""]
    FaultyStorage.asked.clear()
    FaultyStorage.fault = None
    try:
        yield FaultyStorage
    finally:
        FaultyStorage.fault = None


def counted(storage: type[FaultyStorage]) -> Counter[str]:
    """How often each operation was asked for since the last count."""
    found = Counter(operation for operation, _ in storage.asked)
    storage.asked.clear()
    return found


def objects(storage: type[FaultyStorage], below: str) -> dict[str, bytes]:
    """Everything below a path, by its relative name."""
    inside = {name: file for name, file in storage.store.items() if name.startswith(f"{below}/")}
    return {name[len(below) + 1 :]: file.getvalue() for name, file in inside.items()}


def flip_object(storage: type[FaultyStorage], name: str, at: int = 0) -> None:
    """Change one bit of an object in place."""
    storage.store[name].getbuffer()[at] ^= 1
