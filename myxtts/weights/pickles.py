"""The pickles in torch's checkpoints, read as descriptions of tensors and never as programs.

A pickle is a program that may call whatever Python has. Here it can name what `_KNOWN` lists and
nothing else, and each of these names stands for a function of this module that checks its
arguments and returns an inert record.
"""

import io
import pickle
import pickletools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from myxtts.weights.error import WeightsError

_MOST_BYTES = 1 << 26  # ten thousand tensors take 3 MB
_MOST_TUPLES = 80_000  # four per tensor; Python dies of a key of more than 100,000 nested ones
_MOST_AXES = 32
_LONGEST_NAME = 200

# What torch's own files use. Sets, classes, extensions and buffers are not among them.
_OPCODES = set(
    """PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT DICT SETITEM SETITEMS
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
    GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID""".split()
)
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_TUPLES = ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")


class Damaged(Exception):
    """What is wrong with a file, without its name."""


# What the unpickler and the disassembler raise for bytes that are no pickle.
_NO_PICKLE = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    MemoryError,
    RecursionError,
)


class _Inert:
    """What a pickle can hold but not change."""

    def __setstate__(self, state: Any) -> None:
        raise Damaged(f"it tries to change {self}")


@dataclass(frozen=True)
class Storage(_Inert):
    """Numbers in a row, of the kind that torch calls `FloatStorage` or the like."""

    kind: str
    key: str
    num_elements: int


@dataclass(frozen=True)
class Tensor(_Inert):
    """A part of a storage; offset and strides count elements and stay inside."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def load_pickle(source: bytes | BinaryIO, path: Path) -> tuple[Any, dict[str, Storage]]:
    """Load one pickle, and return what it holds and the storages that it speaks of.

    A file is read from where it stands and left behind the pickle.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    start, odd = file.tell(), ""
    try:
        odd = _scan(file)
        end = file.tell()
        file.seek(start)
        unpickler = _Unpickler(io.BytesIO(file.read(end - start)), path)
        return unpickler.load(), unpickler.storages
    except _NO_PICKLE as error:
        if odd:
            raise WeightsError(_hostile(path, f"the pickle instruction {odd}")) from error
        raise Damaged(f"it is damaged or cut off ({error})") from error


def _scan(file: BinaryIO) -> str:
    """Go through a pickle without loading it, up to its end or to what must not be loaded.

    Returns the odd opcode, before which the file then stands, or nothing.
    """
    tuples = 0
    found: Iterator[tuple[pickletools.OpcodeInfo, Any, Any]] = pickletools.genops(file)
    for count, (opcode, arg, position) in enumerate(found):
        tuples += opcode.name in _TUPLES
        if opcode.name not in _OPCODES:
            file.seek(position)
            return f"{opcode.name} {arg}" if isinstance(arg, str) else opcode.name
        # The memo is an array: one large index in a few bytes would take all memory.
        if opcode.name in _PUTS and not 0 <= arg <= count:
            raise Damaged(f"it is damaged (a memo of number {arg})")
        if tuples > _MOST_TUPLES or file.tell() > _MOST_BYTES:
            raise Damaged("what describes its tensors is too long")
    return ""


class _Unpickler(pickle.Unpickler):
    """Builds plain values, `Storage` and `Tensor`."""

    def __init__(self, file: BinaryIO, path: Path):
        super().__init__(file, encoding="utf-8")  # of strings that Python 2 wrote
        self.path = path
        self.storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get(module, {}).get(name)
        if known is None:
            raise WeightsError(_hostile(self.path, f"{module}.{name}"))
        return known

    def persistent_load(self, pid: Any) -> Storage:
        """A storage: ("storage", kind, key, device, number of elements, in old files also None)."""
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
            raise Damaged("it refers to something that is not a storage")
        _, kind, key, _, num_elements, *view = pid
        if not isinstance(kind, _Kind) or not isinstance(key, str) or view not in ([], [None]):
            raise Damaged("a storage is described in an unknown way")
        storage = Storage(kind.name, key, _natural(num_elements, "size of a storage"))
        if self.storages.setdefault(key, storage) != storage:
            raise Damaged(f"the storage {key!r} is described in two ways")
        return storage


def _hostile(path: Path, what: str) -> str:
    return (
        f"{path} asks for {printable(what)}, which weights do not need: loading it with torch "
        "could run code that it carries. Nothing was run. Do not use it unless you trust who made "
        "it; if you do, have them save just the tensors, best as safetensors"
    )


def printable(text: str) -> str:
    """A name from a file as it may be shown: short, and nothing that steers a terminal."""
    text = text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."
    return text if text.isprintable() else ascii(text)


@dataclass(frozen=True)
class _Kind(_Inert):
    """Stands for a class of storages; there is nothing to call."""

    name: str


@dataclass(frozen=True)
class _Function(_Inert):
    """Stands for a function or class of torch, and calls ours."""

    ours: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.ours(*args)


class _OrderedDict(OrderedDict):
    """An ordered dict whose attributes (torch notes versions of layers there) are dropped."""

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise Damaged("an ordered dict has a state that is no dict")


def _ordered_dict(items: Any = ()) -> _OrderedDict:
    """An empty one that is filled later, or as Python 2 wrote it, with a list of pairs."""
    if not isinstance(items, (list, tuple)):
        raise Damaged("an ordered dict is not made of pairs")
    return _OrderedDict(items)


def _tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(storage, Storage):
        raise Damaged("a tensor has no storage")
    if metadata:
        raise Damaged("a tensor is stored as the negative or the conjugate of its values")
    offset, shape, strides = _natural(offset, "offset"), _naturals(shape), _naturals(strides)
    if len(shape) != len(strides) or len(shape) > _MOST_AXES:
        raise Damaged(f"a tensor has {len(shape)} axes and {len(strides)} strides")
    num_elements, last = 1, offset
    for length, stride in zip(shape, strides, strict=True):
        num_elements *= length
        last += (length - 1) * stride
    inside = last < storage.num_elements if num_elements else offset <= storage.num_elements
    # Repeating values by strides of 0 is legal, and has no bound.
    if not inside or num_elements > storage.num_elements:
        raise Damaged(
            f"a tensor of shape {shape}, strides {strides} and offset {offset} is not inside "
            f"its storage of {storage.num_elements} elements"
        )
    return Tensor(storage, offset, shape, strides)


def _parameter(data: Any, requires_grad: Any = True, hooks: Any = None) -> Tensor:
    if not isinstance(data, Tensor):
        raise Damaged("a parameter is not made of a tensor")
    return data


def _naturals(numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, (tuple, list)):
        raise Damaged("a shape is no tuple")
    return tuple(_natural(number, "length or stride") for number in numbers)


def _natural(number: Any, what: str) -> int:
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise Damaged(f"a {what} is {str(number)[:40]}")
    return number


def _device(kind: Any, index: Any = None) -> str:
    if not isinstance(kind, str) or type(index) not in (int, type(None)):
        raise Damaged("a device is neither a name nor a name and a number")
    return kind if index is None else f"{kind}:{index}"


_KINDS = "Double Float Half BFloat16 Long Int Short Char Byte Bool".split()

_KNOWN: dict[str, dict[str, _Inert]] = {
    "collections": {"OrderedDict": _Function(_ordered_dict)},
    "torch._utils": {
        "_rebuild_tensor_v2": _Function(_tensor),
        "_rebuild_parameter": _Function(_parameter),
    },
    "torch": {
        "Size": _Function(_naturals),
        "device": _Function(_device),
        **{f"{kind}Storage": _Kind(f"{kind}Storage") for kind in _KINDS},
    },
}
