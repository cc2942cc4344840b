"""Files that are written whole or not at all, and what to do where a disk refuses to write."""

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def write_whole(path: Path, content: bytes, *, alone: bool = False) -> None:
    """Write to a temporary name, sync, rename: readers see the old file or the new one.

    Where no other process writes the same file (`alone`), the temporary name is always the same,
    and overwrites what a killed process left.
    """
    temporary = path.with_name(f"{path.name}.tmp" if alone else f"{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path), open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        # On a disk that has turned read-only this fails too, and would hide the first error.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError the name of the file: those of `write` and `fsync` have none."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def refusal(path: Path, error: OSError) -> str:
    """Why a file was not written, and what to do."""
    if error.errno == errno.EFBIG:
        return too_large(path)
    if error.errno in FULL:
        return (
            f"no space left while writing {path} ({error.strerror}): free some space there and "
            "run the same command again, or choose another folder"
        )
    return (
        f"cannot write {path} ({error.strerror or error}): make {path.parent} writable, or choose "
        "another folder"
    )


def too_large(path: Path) -> str:
    """What to do about EFBIG."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit == resource.RLIM_INFINITY:
        return (
            f"{path} would be larger than its file system allows: choose a folder on another file "
            "system"
        )
    return (
        f"{path} would be larger than {limit:,} bytes, the most that this process may write to a "
        "file: raise the limit (ulimit -f unlimited) and run the same command again"
    )
