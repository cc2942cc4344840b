"""Storages and the tensors that are parts of them, as NumPy arrays."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from myxtts.weights.pickles import Damaged, Storage, Tensor

# What storages are made of. Bytes that have no type in NumPy are read as whole numbers first.
TYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|u1",
}

_DEEPEST = 50  # nested containers; also where one that holds itself ends
_PLAIN = (str, bytes, int, float, complex, type(None))  # bool is an int


def size_of(storage: Storage) -> int:
    """The bytes that a storage takes in a file."""
    return storage.num_elements * np.dtype(TYPES[storage.kind]).itemsize


def array_of(storage: Storage, data: bytes) -> np.ndarray:
    """The numbers of a storage, read-only; bfloat16 as float32."""
    array = np.frombuffer(data, TYPES[storage.kind])
    if storage.kind == "BFloat16Storage":
        # The upper half of a float32.
        array = (array.astype("<u4") << 16).view("<f4")
    elif storage.kind == "BoolStorage":
        array = array != 0
    array.flags.writeable = False
    return array


def with_arrays(content: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The content of a pickle with plain containers and with arrays in place of tensors.

    A container that stands in several places is converted once: small ones that hold each other
    many times would grow without end.
    """
    known: dict[int, Any] = {}

    def convert(value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise Damaged("it is nested too deeply, or holds itself")
        if id(value) not in known:
            found = convert_new(value, depth)
            if not isinstance(value, (list, tuple, dict)):
                return found
            known[id(value)] = found
        return known[id(value)]

    def convert_new(value: Any, depth: int) -> Any:
        if isinstance(value, Tensor):
            return _view(value, arrays[value.storage.key])
        if isinstance(value, OrderedDict):
            return OrderedDict((_key(k), convert(v, depth + 1)) for k, v in value.items())
        if isinstance(value, dict):
            return {_key(k): convert(v, depth + 1) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(convert(item, depth + 1) for item in value)
        if isinstance(value, _PLAIN):
            return value
        raise Damaged(f"it holds {value}, which is neither a tensor nor a plain value")

    return convert(content, 0)


def _key(key: Any) -> Any:
    if not isinstance(key, _PLAIN):
        raise Damaged(f"a key of a dict is a {type(key).__name__}")
    return key


def _view(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The tensor's part of its storage; all numbers were checked when it was read."""
    strides = [stride * array.itemsize for stride in tensor.strides]
    part = array[tensor.offset :]
    try:
        return np.lib.stride_tricks.as_strided(part, tensor.shape, strides, writeable=False)
    except ValueError as error:  # axes of no and of countless elements
        raise Damaged(f"a tensor has the shape {tensor.shape} ({error})") from error
