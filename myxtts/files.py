"""Regular files only: reading a pipe or a device may block, or never end."""

import errno
import os
import stat
from io import FileIO

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
# Windows has only the last of the others, and needs it.
_OTHER_FLAGS = ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in _OTHER_FLAGS)


class NotRegularError(OSError):
    """Something that has a file's name but is not a regular file."""

    strerror: str

    def __init__(self, path: str | os.PathLike[str], kind: str):
        super().__init__(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Open a regular file for reading, through symbolic links; anything else is an OSError."""
    # Looked at before it is opened, since opening a device may already do something; and again
    # afterwards, since it may be another file by then.
    check_regular(path, os.stat(path))
    descriptor = os.open(path, _FLAGS)
    try:
        check_regular(path, os.fstat(descriptor))
    except NotRegularError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb", buffering=0)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a regular file."""
    with open_regular(path) as file:
        return file.read()


def check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    """Raise where a path with this status is not a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kinds = (kind for is_kind, kind in _KINDS if is_kind(status.st_mode))
        raise NotRegularError(path, next(kinds, "something special"))
