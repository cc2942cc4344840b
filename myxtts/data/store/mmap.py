"""Many files as one contiguous array: mapped behind one another, without a copy."""

import contextlib
import ctypes
import mmap
import os
import sys
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

# Every mapped file must start on a page. 64 KiB is the largest page size of the usual kernels.
ALIGNMENT = 65536

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_PROT_NONE = 0
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000 if sys.platform.startswith("linux") else 0
_MADV_WILLNEED = 3
_FAILED = ctypes.c_void_p(-1).value


def map_files(paths: Sequence[Path], sizes: Sequence[int]) -> np.ndarray:
    """Map files of known, aligned sizes behind one another as uint8; writes stay private.

    The mapping is private and writable because DLPack, which hands it to TensorFlow without a copy,
    refuses arrays that are read-only. Nothing ever writes to it.
    """
    total = sum(sizes)
    if total == 0:
        return np.zeros(0, np.uint8)
    libc = _libc()
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    base = libc.mmap(None, total, _PROT_NONE, flags, -1, 0)
    _check(base, "reserve", total)
    block = (ctypes.c_char * total).from_address(base)
    weakref.finalize(block, libc.munmap, base, total)
    at = base
    for path, size in zip(paths, sizes, strict=True):
        _map_one(libc, path, size, at)
        at += size
    # It has a buffer, which the stubs do not know.
    return np.frombuffer(block, np.uint8)  # type: ignore[call-overload]


def read_files(paths: Sequence[Path], sizes: Sequence[int]) -> np.ndarray:
    """Read the same files into one aligned array in memory."""
    out = aligned_empty((sum(sizes),), np.uint8)
    at = 0
    for path, size in zip(paths, sizes, strict=True):
        _read_exactly(path, 0, out[at : at + size].data)
        at += size
    return out


def read_range(path: Path, offset: int, out: np.ndarray) -> None:
    """Fill a contiguous array from a file at a byte offset."""
    _read_exactly(path, offset, out.data.cast("B"))


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return an uninitialised array whose data start on 64 bytes, as TensorFlow's kernels want."""
    dtype = np.dtype(dtype)
    size = dtype.itemsize
    for extent in shape:
        size *= int(extent)
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


@cache
def keep_freed_memory() -> None:
    """Have glibc keep what is freed: a buffer given back costs a page fault per 4 kB next time."""
    with contextlib.suppress(AttributeError):  # another C library has no such call
        mallopt = ctypes.CDLL(None).mallopt
        # Older versions refuse more than 32 MB. Setting the other one alone would make things
        # worse: it ends glibc's own adjusting of the first, and leaves that at 128 kB.
        if mallopt(_M_MMAP_THRESHOLD, 32 << 20):
            mallopt(_M_TRIM_THRESHOLD, 256 << 20)


def read_ahead(array: np.ndarray, start: int, stop: int) -> None:
    """Ask the kernel to read bytes [start, stop) of a mapped array in; returns at once."""
    address = array.ctypes.data + start
    first = address - address % mmap.PAGESIZE
    _libc().madvise(first, address + (stop - start) - first, _MADV_WILLNEED)


def resident_fraction(array: np.ndarray, samples: int = 2048) -> float:
    """Estimate how much of a mapped array the kernel holds in memory, from evenly spread pages."""
    pages = array.nbytes // mmap.PAGESIZE
    if pages == 0:
        return 1.0
    flag = (ctypes.c_ubyte * 1)()
    chosen = np.unique(np.linspace(0, pages - 1, samples).astype(np.int64))
    base = array.ctypes.data
    found = 0
    for page in chosen.tolist():
        if _libc().mincore(base + page * mmap.PAGESIZE, mmap.PAGESIZE, flag) != 0:
            return 1.0
        found += flag[0] & 1
    return found / len(chosen)


def _map_one(libc: ctypes.CDLL, path: Path, size: int, at: int) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = os.fstat(descriptor).st_size
        if found != size:  # touching what lies behind the end would kill the process
            raise OSError(f"{path} has {found} bytes instead of {size}")
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        flags = mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE
        _check(libc.mmap(at, size, protection, flags, descriptor, 0), f"map {path}", size)
    finally:
        os.close(descriptor)


def _read_exactly(path: Path, offset: int, view: memoryview) -> None:
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        done = 0
        while done < len(view):
            count = file.readinto(view[done:])
            if not count:
                raise OSError(f"{path} ends {len(view) - done} bytes too early")
            done += count


def _check(address: int | None, what: str, size: int) -> None:
    if address is None or address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot {what} ({size} bytes): {os.strerror(code)}")


def _libc() -> ctypes.CDLL:
    global _LIBC
    if _LIBC is None:
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        numbers = [ctypes.c_int] * 3
        library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *numbers, ctypes.c_long]
        library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        _LIBC = library
    return _LIBC


_LIBC: ctypes.CDLL | None = None
