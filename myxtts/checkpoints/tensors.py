"""Safetensors as arrays, with nothing believed that the file says of itself."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, shown

# What safetensors calls the types that weights, counters and seeds have.
TYPES = {
    "<f8": "F64",
    "<f4": "F32",
    "<f2": "F16",
    "<i8": "I64",
    "<i4": "I32",
    "<u4": "U32",
    "|b1": "BOOL",
}
_DTYPES = {name: np.dtype(code) for code, name in TYPES.items()}
_SIZE_BYTES = 8  # of the length of the header
_METADATA = "__metadata__"
_MOST_AXES = 32


def parse_tensors(content: bytearray) -> dict[str, np.ndarray]:
    """The arrays of a file of safetensors, which share its memory.

    Every byte behind the header belongs to one array; a DocumentError says where that is not so.
    """
    start, header = _header(content)
    arrays, end = {}, 0
    for name, dtype, shape, first, last in sorted(
        (_entry(name, entry) for name, entry in header.items()), key=lambda entry: entry[3:]
    ):
        count = math.prod(shape)
        if first != end or last - first != count * dtype.itemsize:
            raise DocumentError(f"{shown(name)} is not where its header says")
        end = last
        if start + end > len(content):
            raise DocumentError(f"{shown(name)} reaches behind the end of the file")
        array = np.frombuffer(content, dtype, count, start + first) if count else np.empty(0, dtype)
        arrays[name] = array.reshape(shape)
    if start + end != len(content):
        raise DocumentError(f"{len(content) - start - end:,} bytes at its end belong to nothing")
    return arrays


def not_finite(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The names of arrays that hold NaN or infinite numbers."""
    return [
        name
        for name, array in arrays.items()
        if array.dtype.kind == "f" and not np.isfinite(array).all()
    ]


def _header(content: bytearray) -> tuple[int, dict[str, Any]]:
    """Where the arrays start, and what the header says of them."""
    size = int.from_bytes(content[:_SIZE_BYTES], "little")
    start = _SIZE_BYTES + size
    if len(content) < start or size > MOST_JSON_BYTES:
        raise DocumentError(f"its header of {size:,} bytes is longer than it can be")
    header = parse_json(bytes(content[_SIZE_BYTES:start]))
    if not isinstance(header, dict):
        raise DocumentError("its header is no JSON object")
    header.pop(_METADATA, None)
    return start, header


def _entry(name: str, entry: Any) -> tuple[str, np.dtype, tuple[int, ...], int, int]:
    if not isinstance(entry, dict):
        raise DocumentError(f"its header does not describe {shown(name)}")
    kind, shape, span = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise DocumentError(f"{shown(name)} is of the type {shown(kind)}, which is not read")
    if not _are_counts(shape) or len(shape) > _MOST_AXES or 0 in shape and shape != [0]:
        raise DocumentError(f"{shown(name)} has the shape {shown(shape)}")
    if not _are_counts(span) or len(span) != 2:
        raise DocumentError(f"{shown(name)} is at {shown(span)}")
    return name, _DTYPES[kind], tuple(shape), *span


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
