"""Writing the files of a cache, and saying what to do where a disk refuses."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from myxtts import atomic
from myxtts.atomic import FULL, UNWRITABLE, too_large
from myxtts.data.store.errors import CacheError


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename: readers see the old file or the new one, whole."""
    with explained(path.parent):
        atomic.write(path, content)


def unwritable_message(folder: Path, error: OSError) -> str:
    return (
        f"cannot write the cache to {folder} ({error.strerror}): "
        "make it writable, or name another place with --cache-dir"
    )


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say what to do where a disk is full or must not be written, or a file gets too large."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise CacheError(
                f"no space left while writing to {folder}. What was finished is kept: free some "
                "space and run the same command again, or move the cache with --cache-dir"
            ) from error
        if error.errno == errno.EFBIG:
            raise CacheError(too_large(Path(error.filename or folder))) from error
        if error.errno in UNWRITABLE:
            raise CacheError(unwritable_message(folder, error)) from error
        raise
