"""Disks that refuse: small ones in memory, and file operations that fail as a disk's would."""

import builtins
import ctypes
import errno
import io
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

PAGE = 4096
_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
_ROOM = "size=256m,nr_inodes=20000"
_BALLAST = ".ballast"

# What changes a folder's names; a quota lets files go.
_GROWS = ("mkdir", "link", "symlink")
_MOVES = ("rename", "replace", "unlink", "remove", "rmdir", "truncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class SmallDisk:
    """A memory disk of this process and its children alone: nobody else sees the mount."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __enter__(self) -> "SmallDisk":
        _own_mounts()
        self.folder.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", _ROOM, "tmpfs", self.folder)
        return self

    def __exit__(self, *_) -> None:
        subprocess.run(["umount", "-l", self.folder], check=True)

    @property
    def used(self) -> tuple[int, int]:
        """Pages and inodes in use."""
        found = os.statvfs(self.folder)
        return found.f_blocks - found.f_bfree, found.f_files - found.f_ffree

    def leave_pages(self, count: int) -> None:
        """Fill it but for some pages."""
        found = os.statvfs(self.folder)
        with open(self.folder / _BALLAST, "wb") as file:
            if found.f_bfree > count:
                os.posix_fallocate(file.fileno(), 0, (found.f_bfree - count) * PAGE)

    def leave_inodes(self, count: int) -> None:
        self._remount(f"nr_inodes={self.used[1] + count}")

    def forbid_writing(self) -> None:
        self._remount("ro")

    def free(self) -> None:
        """Take every limit away."""
        self._remount(f"rw,{_ROOM}")
        (self.folder / _BALLAST).unlink(missing_ok=True)

    def _remount(self, options: str) -> None:
        _mount("-o", f"remount,{options}", self.folder)


def why_not() -> str:
    """Why no disk can be mounted here; empty where one can. For a process that may lose its
    mounts."""
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f".drill-disk-{os.getpid()}"
    try:
        with SmallDisk(folder):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None)
        return (said.decode().strip() if said else str(error)) or "mount failed"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse(folder: Path, code: int, from_operation: int) -> list[str]:
    """Let every operation below a folder fail from the given one on, in this process for good.

    Returns the list that the operations are added to, counted from 0. These are those that go
    through Python; `code` is what the disk says. Under a quota (EDQUOT) what takes no room works.
    """
    seen: list[str] = []
    root = str(folder.resolve()) + os.sep

    def check(what: str, path, dir_fd: int | None = None) -> None:
        place = _place(path, dir_fd)
        if not place.startswith(root):
            return
        seen.append(f"{what} {place.removeprefix(root)}")
        if len(seen) > from_operation and not (code == errno.EDQUOT and what in _MOVES):
            raise OSError(code, os.strerror(code), str(path))

    builtins.open = io.open = _checked_open(io.open, check)
    os.open = _checked_descriptor(os.open, check)
    for name in (*_GROWS, *_MOVES):
        setattr(os, name, _checked_change(name, getattr(os, name), check))
    return seen


def _checked_open(own: Callable, check: Callable) -> Callable:
    def open_file(file, mode="r", *args, **kwargs):
        if not isinstance(file, int) and set(mode) & set("wax+"):
            check("open", file)
        return own(file, mode, *args, **kwargs)

    return open_file


def _checked_descriptor(own: Callable, check: Callable) -> Callable:
    def open_file(path, flags, mode=0o777, *, dir_fd=None):
        if flags & _WRITING:
            check("open", path, dir_fd)
        return own(path, flags, mode, dir_fd=dir_fd)

    return open_file


def _checked_change(name: str, own: Callable, check: Callable) -> Callable:
    def change(path, *args, **kwargs):
        dir_fd = kwargs.get("dir_fd", kwargs.get("src_dir_fd"))
        check(name, path, dir_fd)
        return own(path, *args, **kwargs)

    return change


def _place(path, dir_fd: int | None) -> str:
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    base = os.readlink(f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
    return os.path.normpath(os.path.join(base, os.fsdecode(path)))


def _own_mounts() -> None:
    """Give this process mounts of its own, which end with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    _mount("--make-rprivate", "/")


def _mount(*words) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)
