"""Pickles that would run code, or take all memory, are refused and named, and run nothing."""

import os
import pickle
import struct

import pytest

from myxtts.weights import WeightsError, read_checkpoint, storages
from tests.helpers.make_torch_file import (
    ORDERED,
    PARAMETER,
    TENSOR,
    Build,
    Call,
    Global,
    Pid,
    Raw,
    dumps,
    encode,
    tensor,
    write_legacy,
    write_zip,
)


@pytest.fixture(params=["zip", "legacy"])
def read(request, tmp_path, monkeypatch):
    """Read a pickle in either format, in a folder where a hostile one would leave a marker."""
    monkeypatch.chdir(tmp_path)

    def run(pickled: bytes):
        path = tmp_path / "model.pth"
        write = write_zip if request.param == "zip" else write_legacy
        try:
            return read_checkpoint(write(path, pickled, {}))
        finally:
            assert os.listdir(tmp_path) == ["model.pth"]

    return run


class Runs:
    """What the pickle module makes of an object that wants a function to be called."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def opened(name: str) -> Call:
    return Call(Global("builtins", "open"), (name, "w"))


@pytest.mark.parametrize("protocol", range(6))
def test_what_the_pickle_module_writes_for_a_call(read, protocol):
    for call, name in (
        (Runs(os.system, "touch marker"), f"{os.system.__module__}.system"),
        (Runs(eval, "open('marker', 'w')"), "eval"),
        (Runs(exec, "open('marker', 'w')"), "exec"),
    ):
        with pytest.raises(WeightsError, match=f"asks for .*{name}.* Nothing was run"):
            read(pickle.dumps({"x": call}, protocol))


@pytest.mark.parametrize(
    ("value", "culprit"),
    [
        (Call(Global("os", "system"), ("touch marker",)), "os.system"),
        (Call(Global("builtins", "getattr"), (Global("os", "x"), "system")), "builtins.getattr"),
        (Call(Call(Global("builtins", "getattr"), (ORDERED, "x")), ()), "builtins.getattr"),
        (opened("marker"), "builtins.open"),
        (Call(Global("__builtin__", "eval"), ("1",)), "__builtin__.eval"),
        (Global("collections", "OrderedDict.fromkeys"), "collections.OrderedDict.fromkeys"),
        (Global("torch._utils", "_rebuild_tensor_v2.__globals__"), "_v2.__globals__"),
        (Global("torch", "storage._load_from_bytes"), "torch.storage._load_from_bytes"),
        (Global("torch.storage", "_load_from_bytes"), "torch.storage._load_from_bytes"),
        (Global("collections", "Counter"), "collections.Counter"),
        (Global("torch", "FloatStorage "), "torch.FloatStorage "),
        (Global("torch.nn.modules.linear", "Linear"), "torch.nn.modules.linear.Linear"),
        (Global("numpy.core.multiarray", "_reconstruct"), "numpy.core.multiarray._reconstruct"),
        (Raw(b"(S'touch marker'\nios\nsystem\n"), "instruction INST os system"),
        (Raw(b"(cos\nsystem\nS'touch marker'\no"), "os.system"),
        (Raw(encode(ORDERED) + b")\x81"), "instruction NEWOBJ"),
        (Raw(b"(" + encode(ORDERED) + b"o"), "instruction OBJ"),
        (Raw(b"\x82\x01"), "instruction EXT1"),
        (Raw(b"\x8f"), "instruction EMPTY_SET"),
        (Raw(b"Pmarker\n"), "instruction PERSID marker"),
        (Raw(b"\x97"), "instruction NEXT_BUFFER"),
    ],
)
def test_names_and_instructions_outside_the_table_are_named(read, value, culprit):
    with pytest.raises(WeightsError, match=f"{culprit}.*Nothing was run"):
        read(dumps({"x": value}))


def test_a_name_put_together_on_the_stack(read):
    for name in ("system", "sys" + "tem\x1b[31m"):
        value = Raw(encode("os") + encode(name) + b"\x93" + encode(("touch marker",)) + b"R")
        with pytest.raises(WeightsError, match="asks for '?os.system.*Nothing was run") as caught:
            read(dumps({"x": value}))
        assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        Call(TENSOR, ()),
        Call(TENSOR, (1, 0, (1,), (1,))),
        Call(TENSOR, (ORDERED, 0, (1,), (1,))),
        Call(TENSOR, "abc"),
        Call(PARAMETER, (ORDERED,)),
        Call(ORDERED, (5,)),
        Call(ORDERED, ("ab",)),
        Call(ORDERED, ([1, 2],)),
        Call(ORDERED, ([[[], 1]],)),
        Call(Global("torch", "Size"), (("a",),)),
        Call(Global("torch", "device"), (ORDERED,)),
        Call(Global("torch", "FloatStorage"), (3,)),
        Call(5, (3,)),
        Call({}, ()),
        Build(ORDERED, {"ours": 1}),
        Build(ORDERED, (None, {"ours": 1})),
        Build(TENSOR, {"__call__": ORDERED}),
        Build(Global("torch", "FloatStorage"), {"name": "os"}),
        Build(Call(ORDERED, ()), (None, {"items": 1})),
        Build(tensor("Float", "0", 0, 0, (0,), (1,)), {"offset": 100}),
        Build({}, {"a": 1}),
        Build([], {"a": 1}),
        Pid("storage"),
        Pid(("module", "x", "y", "z", "w")),
        Pid(("storage", "torch.FloatStorage", "0", "cpu", 1)),
        Pid(("storage", ORDERED, "0", "cpu", 1)),
        Pid(()),
        Raw(encode({"a": 1}) + encode(5) + b"a"),
        Raw(encode(ORDERED) + encode(5) + b"a"),
        Raw(encode(ORDERED) + encode(5) + encode(5) + b"s"),
        {ORDERED: 1},
        {Pid(("storage", Global("torch", "ByteStorage"), "0", "cpu", 0)): 1},
        {(1, 2): 3},
    ],
    ids=lambda value: str(value)[:60],
)
def test_odd_use_of_known_names_is_rejectd(read, value):
    with pytest.raises(WeightsError, match="model.pth cannot be read"):
        read(dumps({"x": value}))
    # Nothing of it stays: the next file is read as ever.
    assert read(dumps({"x": Call(ORDERED, ([["a", 1]],))})) == {"x": {"a": 1}}


def test_attributes_given_to_an_ordered_dict_are_dropped(read):
    state = {"__class__": 1, "items": 2, "_metadata": 3}
    found = read(dumps({"x": Build(Call(ORDERED, ([["a", 1]],)), state)}))
    assert list(found["x"].items()) == [("a", 1)]


def test_a_value_that_holds_itself_is_rejectd(read):
    for loop in (b"]q\x00h\x00a", b"}q\x00X\x01\x00\x00\x00ah\x00s", b"]q\x00h\x00h\x00\x86a"):
        with pytest.raises(WeightsError, match="nested too deeply, or holds itself"):
            read(dumps({"x": Raw(loop)}))


def test_a_small_pickle_that_would_grow_without_end_is_converted_once(read, monkeypatch):
    converted = []
    key = storages._key
    monkeypatch.setattr(storages, "_key", lambda one: (converted.append(one), key(one))[1])
    # Each level is a dict {"a": list of the level before, twice}; 2 ** 20 dicts if written out.
    levels = b"".join(
        b"}q%cX\x01\x00\x00\x00a](h%ch%ces" % (level + 1, level, level) for level in range(20)
    )
    found = read(dumps({"x": Raw(b"(]q\x00" + levels + b"l")}))["x"]
    assert len(found) == 21
    assert converted.count("a") == 20


def test_a_memo_of_countless_entries_is_rejectd(read):
    for put in (b"r" + struct.pack("<I", 0x7FFFFFFF), b"p99999999999999\n", b"p-5\n"):
        with pytest.raises(WeightsError, match="memo of number"):
            read(dumps({"x": Raw(b"N" + put)}))


def test_a_key_nested_so_deeply_that_python_would_die_is_rejectd(read):
    with pytest.raises(WeightsError, match="too long"):
        read(dumps(Raw(b"})" + b"\x85" * 300_000 + b"Ns")))


def test_lengths_far_beyond_the_file_are_rejectd(read):
    for start in (b"B" + struct.pack("<I", 0xFFFFFFFF), b"\x8e" + struct.pack("<Q", 1 << 60)):
        with pytest.raises(WeightsError, match="damaged or cut off"):
            read(dumps({"x": Raw(start)}))
