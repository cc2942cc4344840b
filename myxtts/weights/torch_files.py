"""Checkpoints of torch (its zip format and the one before) and safetensors, as NumPy arrays.

Neither torch nor the code that a pickle may carry is needed or run: see `pickles`.
"""

import contextlib
import fnmatch
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors

from myxtts.weights.error import WeightsError
from myxtts.weights.pickles import Damaged, Storage, load_pickle, printable
from myxtts.weights.storages import array_of, size_of, with_arrays

_AGAIN = "Fetch it again from where it came from"
_ZIP, _PICKLE, _TAR = b"PK\x03\x04", b"\x80", b"ustar"
_TAR_AT = 257
_LONGEST_HEADER = 100_000_000  # of safetensors, by its definition
_LEGACY_MAGIC, _LEGACY_VERSION = 0x1950A86A20F9469CFC6C, 1001
_STORED_AS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
# What zipfile raises for bytes that are no archive, or not that of its directory.
_NO_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
)
_SHOWN = 8
_UNPACKED_RATIO, _UNPACKED_FREE = 20, 1 << 24  # weights hardly shrink; what grows more is a trap
_BIG_ENDIAN = "was saved on a big-endian machine, which is not read: save it again on another"
_SAFE_TYPES = {
    "F64": "DoubleStorage",
    "F32": "FloatStorage",
    "F16": "HalfStorage",
    "BF16": "BFloat16Storage",
    "I64": "LongStorage",
    "I32": "IntStorage",
    "I16": "ShortStorage",
    "I8": "CharStorage",
    "U8": "ByteStorage",
    "BOOL": "BoolStorage",
}


def read_checkpoint(path: str | os.PathLike[str]) -> dict[Any, Any]:
    """Read a checkpoint of torch or safetensors: its nested dict, with arrays for tensors.

    The format is known by the content. bfloat16 becomes float32. The arrays are read-only; those
    that share a storage in the file share memory.
    """
    path = Path(path)
    with _explained(path), open(path, "rb") as file:
        content = _reader(file, path)(file, path)
    if not isinstance(content, dict):
        raise WeightsError(f"{path} holds {_kind(content)} instead of a dict of named arrays")
    return content


def tensors_inside(
    checkpoint: Mapping[str, Any],
    *inside: str,
    source: str | os.PathLike[str] = "the checkpoint",
    dropped: Collection[str] = (),
) -> dict[str, np.ndarray]:
    """The named arrays below the keys `inside`, without those whose names match `dropped`.

    What is dropped is given as names or patterns such as `*.num_batches_tracked`.
    """
    found, place = checkpoint, str(source)
    for key in inside:
        if not isinstance(found, Mapping) or key not in found:
            raise WeightsError(f"{place} has no {key!r}: it holds {_summary(found)}")
        found, place = found[key], f"{key!r} of {place}"
    if not isinstance(found, Mapping):
        raise WeightsError(f"{place} is {_kind(found)} instead of a dict of named arrays")
    kept = {name: found[name] for name in found if not matches(str(name), dropped)}
    others = {name: value for name, value in kept.items() if not isinstance(value, np.ndarray)}
    others |= {name: value for name, value in kept.items() if not isinstance(name, str)}
    if others or not kept:
        raise WeightsError(f"{place} is no dict of named arrays: it holds {_summary(others)}")
    return kept


def matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _reader(file: BinaryIO, path: Path) -> Callable[[BinaryIO, Path], Any]:
    """The function that reads a file that begins like this one, which is left at its start."""
    start = file.read(_TAR_AT + len(_TAR))
    file.seek(0)
    if not start:
        raise WeightsError(f"{path} is empty. {_AGAIN}")
    if start.startswith(_ZIP):
        return _read_zip
    if start[_TAR_AT:] == _TAR:
        raise WeightsError(
            f"{path} is a tar archive, the format of torch before 0.2, which is not read: load it "
            "with a torch of that age and save it again"
        )
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= _LONGEST_HEADER:
        return _read_safetensors
    if start.startswith(_PICKLE):
        return _read_legacy
    raise WeightsError(
        f"{path} is no checkpoint of torch and no safetensors: it has {_size(file):,} bytes "
        f"and begins with {_beginning(start)}. {_AGAIN}"
    )


def _beginning(start: bytes) -> str:
    """The first line where it is text, as with a web page or a Git LFS pointer, or some bytes."""
    line = start.splitlines()[0][:60]
    text = line.decode("utf-8", errors="replace")
    return repr(text) if text.isprintable() else f"the bytes {start[:8].hex(' ')}"


def _read_zip(file: BinaryIO, path: Path) -> Any:
    with _zip_explained(), zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        folder = _top_folder(members, path)
        _check_sizes(members.values(), _size(file))
        order = members.get(f"{folder}/byteorder")
        if order and _member(archive, order) != b"little":
            raise WeightsError(f"{path} {_BIG_ENDIAN}")
        content, storages = load_pickle(_member(archive, members[f"{folder}/data.pkl"]), path)
        arrays = {}
        for key, storage in storages.items():
            info = members.get(f"{folder}/data/{key}")
            if info is None or info.file_size != size_of(storage):
                found = f"{info.file_size:,} bytes" if info else "nothing"
                raise Damaged(f"the storage {key!r} of {size_of(storage):,} bytes has {found}")
            arrays[key] = array_of(storage, _member(archive, info))
    return with_arrays(content, arrays)


def _top_folder(members: Mapping[str, Any], path: Path) -> str:
    folders = [name.removesuffix("/data.pkl") for name in members if name.endswith("/data.pkl")]
    folders = [folder for folder in folders if "/" not in folder]
    if len(folders) != 1:
        raise WeightsError(
            f"{path} is a zip archive but no checkpoint of torch: it has {len(folders)} members "
            "like archive/data.pkl instead of one. If a checkpoint is inside, unpack it"
        )
    return folders[0]


def _check_sizes(members: Collection[zipfile.ZipInfo], size: int) -> None:
    total = sum(info.file_size for info in members)
    if total > _UNPACKED_RATIO * size + _UNPACKED_FREE:
        raise Damaged(f"its {size:,} bytes claim to unpack to {total:,}")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in _STORED_AS or info.flag_bits & _ENCRYPTED:
        raise Damaged(f"the member {info.filename!r} is encrypted or packed in an unusual way")
    with archive.open(info) as file:
        data = file.read(info.file_size)
    if len(data) != info.file_size:
        raise Damaged(f"the member {info.filename!r} ends early")
    return data


@contextlib.contextmanager
def _zip_explained() -> Iterator[None]:
    try:
        yield
    except _NO_ZIP as error:
        raise Damaged(f"it is damaged or cut off ({error})") from error


def _read_legacy(file: BinaryIO, path: Path) -> Any:
    """Five pickles (magic number, version, machine, content, keys), then the storages."""
    magic, _ = load_pickle(file, path)
    if magic != _LEGACY_MAGIC:
        raise WeightsError(f"{path} is a pickle, but not a checkpoint of torch")
    version, _ = load_pickle(file, path)
    if version != _LEGACY_VERSION:
        raise Damaged(f"its version is not {_LEGACY_VERSION}")
    machine, _ = load_pickle(file, path)
    if not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise WeightsError(f"{path} {_BIG_ENDIAN}")
    content, storages = load_pickle(file, path)
    keys, _ = load_pickle(file, path)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Damaged("the names of its storages are no list")
    if sorted(keys) != sorted(storages):
        raise Damaged("the storages that it lists are not those of its tensors")
    arrays = {key: _legacy_array(storages[key], file) for key in keys}
    return with_arrays(content, arrays)


def _legacy_array(storage: Storage, file: BinaryIO) -> np.ndarray:
    num_elements = int.from_bytes(file.read(8), "little", signed=True)
    if size_of(storage) > _size(file) - file.tell():
        raise Damaged(f"it is cut off: it ends before the storage {storage.key!r} does")
    if num_elements != storage.num_elements:
        raise Damaged(
            f"the storage {storage.key!r} has {num_elements:,} elements instead of "
            f"{storage.num_elements:,}"
        )
    return array_of(storage, file.read(size_of(storage)))


def _read_safetensors(file: BinaryIO, path: Path) -> dict[str, np.ndarray]:
    # safetensors.numpy knows no bfloat16; what it is built on gives bytes.
    try:
        found = safetensors.deserialize(file.read())  # type: ignore[no-untyped-call]  # no types
    except safetensors.SafetensorError as error:
        raise Damaged(str(error)) from error
    arrays = {}
    for name, entry in found:
        if entry["dtype"] not in _SAFE_TYPES:
            raise WeightsError(
                f"{path}: {printable(name)} is of the type {entry['dtype']}, which is not read"
            )
        kind = _SAFE_TYPES[entry["dtype"]]
        storage = Storage(kind, name, math.prod(entry["shape"]))
        arrays[name] = array_of(storage, bytes(entry["data"])).reshape(entry["shape"])
    return arrays


def _summary(value: Any) -> str:
    if not isinstance(value, Mapping):
        return _kind(value)
    kinds = [f"{printable(str(k))} ({_kind(v)})" for k, v in list(value.items())[:_SHOWN]]
    more = len(value) - len(kinds)
    return (", ".join(kinds) or "nothing") + (f" and {more} more" if more else "")


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {list(value.shape)}"
    return type(value).__name__


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise WeightsError(f"{path} is not there") from error
    except IsADirectoryError as error:
        raise WeightsError(f"{path} is a folder: name the file of weights in it") from error
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror or error}") from error
    except Damaged as error:
        raise WeightsError(f"{path} cannot be read: {printable(str(error))}. {_AGAIN}") from error
