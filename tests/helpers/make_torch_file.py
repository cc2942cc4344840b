"""Writes checkpoints as torch does, opcode by opcode, without torch."""

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = 0x1950A86A20F9469CFC6C


@dataclass(frozen=True)
class Global:
    module: str
    name: str


@dataclass(frozen=True)
class Call:
    function: Any
    args: Any


@dataclass(frozen=True)
class Build:
    value: Any
    state: Any


@dataclass(frozen=True)
class Pid:
    value: Any


@dataclass(frozen=True)
class Raw:
    opcodes: bytes


ORDERED = Global("collections", "OrderedDict")
TENSOR = Global("torch._utils", "_rebuild_tensor_v2")
PARAMETER = Global("torch._utils", "_rebuild_parameter")


def ordered(**items) -> Raw:
    """An OrderedDict as state dicts are: with an attribute that torch's modules leave."""
    filled = encode(Call(ORDERED, ())) + b"(" + _items(items) + b"u"
    return Raw(filled + encode({"_metadata": {"": {"version": 1}}}) + b"b")


def storage(kind: str, key: str, count: Any, *view) -> Pid:
    return Pid(("storage", Global("torch", f"{kind}Storage"), key, "cuda:0", count, *view))


def tensor(kind: str, key: str, count: Any, offset: Any, shape: Any, strides: Any, *view) -> Call:
    hooks = Call(ORDERED, ())
    return Call(TENSOR, (storage(kind, key, count, *view), offset, shape, strides, False, hooks))


def dumps(value: Any) -> bytes:
    return b"\x80\x02" + encode(value) + b"."


def encode(value: Any) -> bytes:
    """The opcodes of protocol 2 that leave `value` on the stack."""
    match value:
        case Raw(opcodes):
            return opcodes
        case Global(module, name):
            return f"c{module}\n{name}\n".encode()
        case Call(function, args):
            return encode(function) + encode(args) + b"R"
        case Build(inner, state):
            return encode(inner) + encode(state) + b"b"
        case Pid(pid):
            return encode(pid) + b"Q"
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8a" + bytes([len(data)]) + data
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case tuple():
            return b"(" + b"".join(map(encode, value)) + b"t"
        case list():
            return b"](" + b"".join(map(encode, value)) + b"e"
        case dict():
            return b"}(" + _items(value) + b"u"
    raise TypeError(type(value))


def write_zip(
    path: Path,
    content: Any,
    storages: dict[str, bytes],
    top: str = "archive",
    packing: int = zipfile.ZIP_STORED,
    **others: bytes,
) -> Path:
    """Write the zip format; `content` may be a finished pickle."""
    pickled = content if isinstance(content, bytes) else dumps(content)
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr(f"{top}/data.pkl", pickled)
        for key, data in storages.items():
            archive.writestr(f"{top}/data/{key}", data)
        for name, data in {"version": b"3\n", **others}.items():
            archive.writestr(f"{top}/{name}", data)
    return path


def write_legacy(
    path: Path,
    content: Any,
    storages: dict[str, tuple[int, bytes]],
    little: bool = True,
    version: int = 1001,
    keys: Any = None,
) -> Path:
    """Write the format before the zip; storages are counts of elements and bytes."""
    machine = {"protocol_version": 1001, "little_endian": little, "type_sizes": {"int": 4}}
    keys = sorted(storages) if keys is None else keys
    parts = [dumps(part) for part in (MAGIC, version, machine)]
    parts += [content if isinstance(content, bytes) else dumps(content), dumps(keys)]
    for _, (count, data) in sorted(storages.items()):
        parts.append(struct.pack("<q", count) + data)
    path.write_bytes(b"".join(parts))
    return path


def _items(items: dict) -> bytes:
    return b"".join(encode(key) + encode(value) for key, value in items.items())
