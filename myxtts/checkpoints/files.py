"""The files of checkpoints and voices, which are known by their size and sha256."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from myxtts import atomic
from myxtts.checkpoints.tensors import TYPES, not_finite, parse_tensors
from myxtts.config.documents import (
    MOST_JSON_BYTES,
    DocumentError,
    parse_json,
    read_document,
    shown,
)
from myxtts.errors import UserError

_SEAL = "check"


class CheckpointError(UserError):
    """A checkpoint or a voice that cannot be written, read or used."""


class DamagedError(CheckpointError):
    """A file is missing, or is not what was written."""


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of `target` once it is whole and on the disk."""
    with explained(target), atomic.new_folder(target) as draft:
        yield draft


def remove_folder(path: Path) -> None:
    """Remove a folder so that, whenever a kill comes, nothing looks like half of it."""
    with explained(path):
        atomic.remove_folder(path)


def write_tensors(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays or Keras variables as safetensors."""
    # The library's own writer hides why a write failed, and makes files that only the owner reads.
    values = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    # The widest first, so that every array is aligned.
    values = dict(sorted(values.items(), key=lambda item: (-item[1].itemsize, item[0])))
    header, end = {}, 0
    for name, value in values.items():
        span = [end, end := end + value.nbytes]
        header[name] = {"dtype": _type(name, value), "shape": value.shape, "data_offsets": span}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for value in values.values():
            file.write(value.data)


def read_tensors(
    path: Path, record: Mapping[str, Any], *, finite: bool = False
) -> dict[str, np.ndarray]:
    """Read safetensors after comparing the file with what `describe` said of it.

    With `finite`, arrays with NaN or infinite values are rejected by name.
    """
    try:
        arrays = parse_tensors(read_checked(path, record))
    except DocumentError as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if finite and (names := not_finite(arrays)):
        some = ", ".join(map(shown, names[:3])) + (" and others" if len(names) > 3 else "")
        raise DamagedError(f"{path} holds values that are no finite numbers, in {some}")
    return arrays


def describe(path: Path) -> dict[str, Any]:
    """Size and sha256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"size": path.stat().st_size, "sha256": digest}


def check_file(path: Path, record: Mapping[str, Any]) -> None:
    """Raise DamagedError unless the file is what `describe` said of it."""
    with _compared(path, record):
        _compare(path, describe(path)["sha256"], record)


def is_description(record: Any) -> bool:
    """Whether this can be what `describe` says of a file."""
    return (
        isinstance(record, dict)
        and type(record.get("size")) is int
        and isinstance(record.get("sha256"), str)
    )


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the sha256 of its own content, so that no change of it goes unnoticed."""
    return {**record, _SEAL: _digest(record)}


def unsealed(path: Path, record: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    """The record that a file was read as, without its seal.

    Raises DamagedError where the seal is not that of the content, or is missing though required.
    """
    content = {name: value for name, value in record.items() if name != _SEAL}
    if _SEAL not in record and required:
        raise DamagedError(f"{path} is damaged: its checksum is missing")
    if _SEAL in record and record[_SEAL] != _digest(content):
        raise DamagedError(f"{path} is damaged: its content is not what its checksum was made of")
    return content


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    path.write_bytes(_encoded(record))


def write_json_atomically(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record so that readers see the old file or the new one."""
    with explained(path):
        atomic.write(path, _encoded(record), alone=True)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; what is none is damaged."""
    try:
        record = parse_json(read_document(path, MOST_JSON_BYTES))
    except OSError as error:
        raise DamagedError(f"cannot read {path}: {error.strerror}") from error
    except DocumentError as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if not isinstance(record, dict):
        raise DamagedError(f"{path} is damaged: it holds no JSON object")
    return record


def explained(target: Path) -> contextlib.AbstractContextManager[None]:
    """Say what to do where a disk is full or must not be written."""
    return atomic.explained(target, CheckpointError, kept="what was saved before is untouched")


@contextlib.contextmanager
def _compared(path: Path, record: Mapping[str, Any]) -> Iterator[None]:
    """Compare the type and size of a file before it is read; explain an error of the disk."""
    try:
        if not path.is_file():
            what = "is no regular file" if path.exists() else "is missing"
            raise DamagedError(f"cannot read {path}: it {what}")
        size = path.stat().st_size
        if size != record["size"]:
            raise DamagedError(f"{path} has {size} bytes instead of {record['size']}")
        yield
    except OSError as error:
        raise DamagedError(f"cannot read {path}: {error.strerror}") from error


def _compare(path: Path, sha256: str, record: Mapping[str, Any]) -> None:
    if sha256 != record["sha256"]:
        raise DamagedError(f"{path} is damaged: its sha256 is not the one that was recorded")


def read_checked(path: Path, record: Mapping[str, Any]) -> bytearray:
    """The bytes of a file, which are read once and are those that `describe` spoke of."""
    with _compared(path, record):
        content = bytearray(record["size"])
        with open(path, "rb") as file:
            if file.readinto(content) != len(content) or file.read(1):
                raise DamagedError(f"{path} changes while it is read")
        _compare(path, hashlib.sha256(content).hexdigest(), record)
    return content


def _encoded(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _type(name: str, value: np.ndarray) -> str:
    if value.dtype.str not in TYPES:
        raise CheckpointError(
            f"{name} is of type {value.dtype}, which is not saved: weights are kept as float32, "
            "whatever the precision of the computation"
        )
    return TYPES[value.dtype.str]
