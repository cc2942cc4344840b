"""Weights from strangers: torch's pickles in both formats, and safetensors, that lie or attack."""

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bounds, Input

KIND = "weights"
COUNT, PER_CASE = 2600, 65
BOUNDS = Bounds(cpu_seconds=1.5, cpu_per_byte=10e-6, megabytes=200.0, memory_per_byte=200.0)

_HUGE = (-1, 0, 2**31, 2**40, 2**62, 2**63 - 1)


def set_up(folder: Path, seed: int) -> None:
    """Nothing: files are made as they are used."""


def warm_up() -> None:
    """Nothing: files are read by NumPy."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"weights {seed}")
    for _ in range(count):
        if random.random() < 0.3:
            name, data = _safetensors(random)
            yield Input(f"safetensors-{name}", len(data), _read_tensors(data))
        else:
            name, data = _torch_file(random)
            yield Input(f"torch-{name}", len(data), _read_checkpoint(data))


def _read_checkpoint(data: bytes):
    def run(own: Path) -> None:
        from myxtts.weights import read_checkpoint, tensors_inside

        path = own / "model.pth"
        path.write_bytes(data)
        found = read_checkpoint(path)
        tensors_inside(found, *(("model",) if "model" in found else ()), source=path)

    return run


def _read_tensors(data: bytes):
    """Read as a voice is: what the stranger says of the file is what it is."""

    def run(own: Path) -> None:
        from myxtts.checkpoints.files import describe, read_tensors

        path = own / "model.safetensors"
        path.write_bytes(data)
        read_tensors(path, describe(path))

    return run


# torch


def _torch_file(random: Random) -> tuple[str, bytes]:
    draw = random.random()
    if draw < 0.35:
        name, data = mutated(random, _packed(random, _state(random)))
        return name, data
    if draw < 0.5:
        return "opcodes", _packed(random, _opcodes(random))
    if draw < 0.7:
        name, pickled = _call(random)
        return name, _packed(random, pickled)
    if draw < 0.85:
        name, pickled = _lie(random)
        return name, _packed(random, pickled)
    return _zip(random)


def _state(random: Random) -> bytes:
    """A state dict of two small tensors."""
    from tests.helpers.make_torch_file import dumps, ordered, tensor

    first = tensor("Float", "0", 6, 0, (2, 3), (3, 1))
    second = tensor(random.choice(("Float", "Half", "Long", "Double")), "1", 4, 0, (4,), (1,))
    return dumps({"model": ordered(first=first, second=second), "step": 5})


def _packed(random: Random, pickled: bytes) -> bytes:
    """A pickle in one of torch's two formats."""
    from tests.helpers.make_torch_file import MAGIC, dumps

    content = np.arange(8, dtype=np.float64).tobytes()
    if random.random() < 0.5:
        packing = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        return _zipped({"data.pkl": pickled, "data/0": content, "data/1": content}, packing)
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    parts = [dumps(part) for part in (MAGIC, 1001, machine)] + [pickled, dumps(["0", "1"])]
    counts = (6, 4) if random.random() < 0.8 else (random.choice(_HUGE), 4)
    return b"".join(parts) + b"".join(struct.pack("<q", n) + content[: 4 * 6] for n in counts)


def _zipped(members: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as archive:
        for name, data in {**members, "version": b"3\n"}.items():
            archive.writestr(f"archive/{name}", data)
    return packed.getvalue()


def _opcodes(random: Random) -> bytes:
    """Instructions of the pickle machine in a random order."""
    from pickletools import opcodes

    known = [one.code.encode("latin-1") for one in opcodes]
    words = (b"", b"", b"\1", b"\0\0\0\0", b"5\n", b"os\nsystem\n", b"\x08touch ran", b"x\n")
    body = [random.choice(known) + random.choice(words) for _ in range(random.randrange(1, 60))]
    return b"\x80\x02" + b"".join(body) + b"."


class _Runs:
    """What the pickle module makes of an object that wants a function to be called."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def _call(random: Random) -> tuple[str, bytes]:
    """A pickle that asks for code to be run, in the ways that the machine knows."""
    import os

    from tests.helpers.make_torch_file import Build, Call, Global, Raw, dumps, encode

    command = "touch ran"
    module, name = random.choice(
        (
            *(("os", "system"), ("posix", "system"), ("nt", "system"), ("subprocess", "getoutput")),
            *(("builtins", "eval"), ("builtins", "exec"), ("__builtin__", "eval")),
            *(("torch", "os.system"), ("torch._utils", "_rebuild_tensor_v2.__globals__")),
            *(("collections", "OrderedDict.fromkeys"), ("torch.storage", "_load_from_bytes")),
            *(("numpy", "fromfile"), ("pathlib", "Path.touch"), ("webbrowser", "open")),
        )
    )
    if name in ("eval", "exec"):
        command = "__import__('os').system('touch ran')"
    values = {
        "reduce": Call(Global(module, name), (command,)),
        "inst": Raw(f"(S{command!r}\ni{module}\n{name}\n".encode()),
        "obj": Raw(b"(" + encode(Global(module, name)) + encode(command) + b"o"),
        "stack-global": Raw(encode(module) + encode(name) + b"\x93" + encode((command,)) + b"R"),
        "newobj": Raw(encode(Global(module, name)) + encode((command,)) + b"\x81"),
        "build": Build(Call(Global("collections", "OrderedDict"), ()), {"__reduce__": command}),
        "key": {Call(Global(module, name), (command,)): 1},
    }
    if random.random() < 0.2:
        protocol = random.randrange(6)
        return f"pickle-{protocol}", pickle.dumps({"x": _Runs(os.system, command)}, protocol)
    how = random.choice(list(values))
    return f"{how}-{module}.{name}", dumps({"model": values[how]} if how != "key" else values[how])


def _lie(random: Random) -> tuple[str, bytes]:
    """Tensors whose shapes, offsets or storages are not there, and values that grow."""
    from tests.helpers.make_torch_file import Raw, dumps, encode, tensor

    big = random.choice(_HUGE)
    doubled = b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(60))
    lies = {
        "count": tensor("Float", "0", big, 0, (2,), (1,)),
        "offset": tensor("Float", "0", 6, big, (2,), (1,)),
        "shape": tensor("Float", "0", 6, 0, (big, 2), (1, 1)),
        "zero-strides": tensor("Float", "0", 6, 0, (2**14, 2**14), (0, 0)),
        "zero-strides-huge": tensor("Float", "0", 6, 0, (2**20, 2**20), (0, 0)),
        "strides": tensor("Float", "0", 6, 0, (2, 2), (big, -1)),
        "dimensions": tensor("Float", "0", 6, 0, (1,) * 200, (1,) * 200),
        "types": tensor("Float", "0", 6, 0, ("a", None), (1.5, [])),
        "key": tensor("Float", "../../canary/precious", 6, 0, (2,), (1,)),
        "kind": tensor("Quantised", "0", 6, 0, (2,), (1,)),
        "doubled": Raw(b"(" + doubled + b"l"),
        "long-number": Raw(b"\x8b" + struct.pack("<i", 10**6) + b"\xff" * 10**6),
        "number-text": Raw(b"L" + b"9" * 10**5 + b"L\n"),
        "int-text": Raw(b"I" + b"9" * 10**5 + b"\n"),
        "memo": Raw(b"Nr" + struct.pack("<I", 0x7FFFFFFF)),
        "deep": Raw(b"(" * 5000 + b"N" + b"t" * 5000),
        "deep-list": Raw(b"]" * 10**5 + b"a" * (10**5 - 1)),
        "bytes": Raw(b"\x8e" + struct.pack("<Q", 1 << 60)),
        "marks": Raw(b"(" * 10**5),
        "dups": Raw(encode("a" * 1000) + b"2" * 10**5),
    }
    name = random.choice(list(lies))
    return f"{name}-{big}", dumps({"model": {"weight": lies[name]}})


def _zip(random: Random) -> tuple[str, bytes]:
    """Archives that unpack to much, or whose directory and members disagree."""
    pickled = _state(random)
    name = random.choice(
        (
            "bomb",
            "pickle-bomb",
            "two-pickles",
            "no-pickle",
            "traversal",
            "comment",
            "count",
            "flags",
        )
    )
    if name == "bomb":
        return name, _bomb("data/0")
    if name == "pickle-bomb":
        return name, _bomb("data.pkl")
    if name == "no-pickle":
        return name, _zipped({"data/0": b"x"})
    if name == "traversal":
        members = {"data.pkl": pickled, "../../canary/written": b"x", "/tmp/written": b"x"}
        return name, _zipped(members)
    data = _zipped({"data.pkl": pickled, "data/0": bytes(32), "data/1": bytes(32)})
    if name == "two-pickles":
        return name, data + data
    if name == "comment":
        return name, data[:-2] + b"\xff\xff" + b"x" * 65535
    directory = data.rfind(b"PK\1\2")
    if name == "flags":
        return name, data[: directory + 8] + b"\xff\xff" + data[directory + 10 :]
    return name, data[: directory + 20] + b"\xff" * 8 + data[directory + 28 :]


@cache
def _bomb(name: str) -> bytes:
    """An archive of some kilobytes with a member of 60 MB."""
    members = {"data.pkl": _state(Random(0)), "data/0": bytes(32), "data/1": bytes(32)}
    return _zipped(members | {name: b"\x80\x02" + bytes(60 * 2**20) + b"."}, zipfile.ZIP_DEFLATED)


# safetensors


def _safetensors(random: Random) -> tuple[str, bytes]:
    good = {"weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}
    if random.random() < 0.3:
        name, data = mutated(random, _tensor_file(good))
        return name, data
    entry = dict(good["weight"])
    name, field, value = random.choice(_LIES)
    if field:
        entry[field] = value
    header = {"header": value} if not field else {"weight": entry}
    if name in _HEADERS:
        return name, _HEADERS[name](random)
    if random.random() < 0.2:
        header["other"] = {**good["weight"], "data_offsets": [8, 24]}
        name += "-overlap"
    return name, _tensor_file(header)


def _tensor_file(header: object) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + np.ones(4, np.float32).tobytes()


_LIES = (
    ("shape-huge", "shape", [2**40, 2**40]),
    ("shape-negative", "shape", [-1, -4]),
    ("shape-text", "shape", "ab"),
    ("shape-float", "shape", [2.5, 2]),
    ("shape-deep", "shape", [[[2]]]),
    ("shape-many", "shape", [1] * 100),
    ("shape-zero", "shape", [0, 2**62]),
    ("type-unknown", "dtype", "X99"),
    ("type-other", "dtype", "F64"),
    ("type-bfloat", "dtype", "BF16"),
    ("type-float8", "dtype", "F8_E4M3"),
    ("type-number", "dtype", 5),
    ("offsets-huge", "data_offsets", [0, 2**63]),
    ("offsets-swapped", "data_offsets", [16, 0]),
    ("offsets-negative", "data_offsets", [-16, 0]),
    ("offsets-null", "data_offsets", None),
    ("header-list", "", [1, 2]),
    ("header-null", "", None),
    ("length-huge", "", ""),
    ("length-zero", "", ""),
    ("header-deep", "", ""),
    ("header-large", "", ""),
    ("header-empty", "", ""),
    ("header-bytes", "", ""),
    ("same-names", "", ""),
    ("nothing", "", ""),
)
_HEADERS = {
    "length-huge": lambda random: random.choice((2**63, 2**64 - 1, 10**8)).to_bytes(8, "little"),
    "length-zero": lambda random: bytes(8),
    "header-deep": lambda random: _tensor_file(b'{"a":' * 20_000),
    "header-large": lambda random: _tensor_file(
        json.dumps({str(n): {} for n in range(20_000)}).encode()
    ),
    "header-empty": lambda random: _tensor_file(b"{}"),
    "header-bytes": lambda random: _tensor_file(random.randbytes(64)),
    "same-names": lambda random: _tensor_file(b'{"w":{},"w":{"dtype":"F32"}}'),
    "nothing": lambda random: b"",
}
