"""Files and folders that are whole or absent, and what to do where a disk cannot be written.

A folder is filled under a hidden name next to its place and renamed. One that is replaced is set
aside under another hidden name until the new one is in place: `present` finds it there if a kill
came in between.
"""

import contextlib
import errno
import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from myxtts.errors import UserError

logger = logging.getLogger(__name__)

FULL = (errno.ENOSPC, errno.EDQUOT)
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def write(path: Path, content: bytes, *, alone: bool = False) -> None:
    """Write to a temporary name, sync, rename: readers see the old file or the new one.

    Where no other process writes the same file (`alone`), the temporary name is always the same,
    and overwrites what a killed process left.
    """
    temporary = draft_of(path) if alone else unique_draft_of(path)
    try:
        with naming(path), open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        publish(temporary, path)
    finally:
        # On a disk that has turned read-only this fails too, and would hide the first error.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_output(path: Path, content: bytes) -> None:
    """Write a file that the user asked for, in a folder that may be new."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)


def write_outputs(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together, in their order: all of them or none."""
    with contextlib.ExitStack() as undo:
        for path, content in contents.items():
            write_output(path, content)
            undo.callback(path.unlink, missing_ok=True)
        undo.pop_all()


def publish(draft: Path, path: Path) -> None:
    """Give what is on the disk its name, and have that on the disk too."""
    os.replace(draft, path)
    sync(path.parent)


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of `target` once it is whole and on the disk."""
    draft = draft_of(target)
    try:
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(parents=True)
        yield draft
        for path in (*draft.iterdir(), draft):
            sync(path)
        _put_in_place(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def present(target: Path) -> Path:
    """The folder, or the one that was set aside for it and never replaced."""
    if target.exists() or not set_aside_of(target).exists():
        return target
    return set_aside_of(target)


def remove_folder(path: Path) -> None:
    """Remove a folder so that, whenever a kill comes, nothing looks like half of it."""
    draft = draft_of(path)
    if draft.exists():
        shutil.rmtree(draft)
    os.rename(path, draft)
    sync(path.parent)  # or a power cut could keep the name and lose what is in it
    shutil.rmtree(draft)


def draft_of(target: Path) -> Path:
    """The name under which something is made that one process makes at a time."""
    return target.with_name(f".{target.name}.tmp")


def unique_draft_of(target: Path) -> Path:
    """A name under which nobody else makes the same thing, on whatever host.

    Processes of two containers may have the same number and even the same name of the host.
    """
    return target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def set_aside_of(target: Path) -> Path:
    """The name under which a folder waits until its successor is in place."""
    return target.with_name(f".{target.name}.old")


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only thread of any process that changes what a lock file stands for."""
    import fcntl  # which Windows has not

    with explained(path):
        file = open(path, "ab")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError the name of the file: those of `write` and `fsync` have none."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def explained(
    path: Path, kind: type[UserError] = UserError, *, before: str = "", kept: str = ""
) -> Iterator[None]:
    """Raise an OSError as an error that says what to do, after the words `before`."""
    try:
        yield
    except OSError as error:
        raise kind(before + explain(path, error, kept=kept)) from error


def explain(path: Path, error: OSError, *, kept: str = "") -> str:
    """Why a file was not written, what was kept of it where a disk is full, and what to do."""
    if error.errno == errno.EFBIG:
        return too_large(path)
    if error.errno in FULL:
        return (
            f"no space left while writing {path} ({error.strerror}){kept and f'; {kept}'}: free "
            "some space there and run the same command again, or choose another folder"
        )
    return (
        f"cannot write {path} ({error.strerror or error}): make {path.parent} a writable folder, "
        "or choose another one"
    )


def too_large(path: Path) -> str:
    """What to do about EFBIG."""
    import resource  # which Windows has not

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


def _put_in_place(draft: Path, target: Path) -> None:
    aside = set_aside_of(target)
    if target.exists():
        if aside.exists():
            shutil.rmtree(aside)
        os.rename(target, aside)
    os.rename(draft, target)
    sync(target.parent)
    if aside.exists():
        _remove_replaced(aside)


def _remove_replaced(aside: Path) -> None:
    """Remove what was set aside; a disk that refuses that has the new folder all the same."""
    try:
        shutil.rmtree(aside)
    except OSError as error:
        logger.warning(
            "cannot remove %s (%s): its successor is in place, and whoever writes there next "
            "removes it; or remove it yourself",
            aside,
            error.strerror or error,
        )
