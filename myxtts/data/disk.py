"""Writing files that are whole or not there, and saying what to do where a disk refuses."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from myxtts.data.shard_index import CacheError

FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename: readers see the old file or the new one, whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with explained(path.parent):
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def unwritable_message(folder: Path, error: OSError) -> str:
    return (
        f"cannot write the cache to {folder} ({error.strerror}): "
        "make it writable, or name another place with --cache-dir"
    )


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say what to do where a disk is full or must not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise CacheError(
                f"no space left while writing to {folder}. What was finished is kept: free some "
                "space and run the same command again, or move the cache with --cache-dir"
            ) from error
        if error.errno in UNWRITABLE:
            raise CacheError(unwritable_message(folder, error)) from error
        raise


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
