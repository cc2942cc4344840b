"""Checkpoints written by hand and read back: values, strides, types, and all that is damaged."""

import random
import tarfile
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import safetensors.numpy

from myxtts.weights import WeightsError, read_checkpoint, tensors_inside
from tests.helpers.make_torch_file import (
    ORDERED,
    PARAMETER,
    Call,
    Global,
    dumps,
    ordered,
    storage,
    tensor,
    write_legacy,
    write_zip,
)

COUNT = np.arange(12, dtype="<f4")


def numbers(*values, dtype="<f4") -> bytes:
    return np.array(values, dtype).tobytes()


def content():
    """Two tensors in one storage, one in another, and what else a checkpoint holds."""
    return {
        "step": 7,
        "rate": 0.5,
        "note": "fine",
        "betas": [0.9, (None, True)],
        "model": ordered(
            weight=tensor("Float", "71", 12, 2, (2, 3), (3, 1)),
            bias=tensor("Float", "71", 12, 8, (3,), (1,)),
            counter=tensor("Long", "9", 1, 0, (), ()),
        ),
    }


def zipped(path, **options):
    return write_zip(
        path, content(), {"71": COUNT.tobytes(), "9": numbers(5, dtype="<i8")}, **options
    )


def legacy(path, **options):
    storages = {"71": (12, COUNT.tobytes()), "9": (1, numbers(5, dtype="<i8"))}
    return write_legacy(path, content(), storages, **options)


def safe(path):
    safetensors.numpy.save_file({"a": COUNT.reshape(3, 4), "b": np.array([True, False])}, path)
    return path


def read_one(tmp_path, value, data: bytes) -> np.ndarray:
    return read_checkpoint(write_zip(tmp_path / "one.pt", {"x": value}, {"0": data}))["x"]


@pytest.mark.parametrize("write", [zipped, legacy])
def test_all_that_a_checkpoint_holds_comes_out(tmp_path, write):
    found = read_checkpoint(write(tmp_path / "model.pth"))
    model = found.pop("model")
    assert found == {"step": 7, "rate": 0.5, "note": "fine", "betas": [0.9, (None, True)]}
    assert type(model) is OrderedDict
    assert list(model) == ["weight", "bias", "counter"]
    assert not vars(model)
    np.testing.assert_array_equal(model["weight"], [[2, 3, 4], [5, 6, 7]])
    np.testing.assert_array_equal(model["bias"], [8, 9, 10])
    assert (model["counter"].shape, model["counter"].dtype, model["counter"]) == ((), "int64", 5)
    assert not model["weight"].flags.writeable


@pytest.mark.parametrize(
    "options",
    [{"top": "my model é"}, {"packing": zipfile.ZIP_DEFLATED}, {"byteorder": b"little"}],
    ids=str,
)
def test_the_kinds_of_zip_that_torch_writes(tmp_path, options):
    found = read_checkpoint(zipped(tmp_path / "model.pth", **options))
    np.testing.assert_array_equal(found["model"]["bias"], [8, 9, 10])


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "expected"),
    [
        (0, (3, 4), (1, 3), COUNT.reshape(4, 3).T),
        (1, (2, 2), (6, 2), [[1, 3], [7, 9]]),
        (11, (), (), 11),
        (4, (1,), (1_000_000,), [4]),
        (12, (0, 3), (3, 1), np.zeros((0, 3))),
        (3, (2, 3), (0, 1), [[3, 4, 5], [3, 4, 5]]),
    ],
    ids=["transposed", "every other", "scalar", "idle stride", "nothing", "repeated"],
)
def test_offsets_and_strides_are_honoured(tmp_path, offset, shape, strides, expected):
    value = tensor("Float", "0", 12, offset, shape, strides)
    found = read_one(tmp_path, value, COUNT.tobytes())
    np.testing.assert_array_equal(found, np.asarray(expected, "f4"))
    assert found.shape == np.shape(expected)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (13,), (1,)),
        (1, (12,), (1,)),
        (12, (), ()),
        (13, (0,), (1,)),
        (-1, (2,), (1,)),
        (0, (-2,), (1,)),
        (5, (2,), (-1,)),
        (0, (2,), (12,)),
        (0, (2, 3), (1,)),
        (0, (1 << 40, 1 << 40), (0, 0)),
        (0, (0, 1 << 61, 1 << 61), (0, 0, 0)),
        (0, (100,), (0,)),
        (1 << 70, (1,), (1,)),
        (0, (1,) * 40, (1,) * 40),
        (0, (True,), (1,)),
        (0, ("2",), (1,)),
        (0.0, (2,), (1,)),
        (0, 2, 1),
        (0, (1.5,), (1,)),
    ],
)
def test_nothing_is_read_outside_a_storage(tmp_path, offset, shape, strides):
    value = tensor("Float", "0", 12, offset, shape, strides)
    with pytest.raises(WeightsError, match="one.pt cannot be read: a "):
        read_one(tmp_path, value, COUNT.tobytes())


@pytest.mark.parametrize(
    ("kind", "data", "expected", "dtype"),
    [
        ("Double", numbers(1.5, -2, dtype="<f8"), [1.5, -2], "float64"),
        ("Half", b"\x00\x3c\x00\xc0", [1, -2], "float16"),
        ("BFloat16", b"\x80\x3f\x20\xc0", [1, -2.5], "float32"),
        ("Int", numbers(1, -2, dtype="<i4"), [1, -2], "int32"),
        ("Short", b"\x01\x00\xfe\xff", [1, -2], "int16"),
        ("Char", b"\x01\xfe", [1, -2], "int8"),
        ("Byte", b"\x01\xfe", [1, 254], "uint8"),
        ("Bool", b"\x00\x02", [False, True], "bool"),
    ],
)
def test_types(tmp_path, kind, data, expected, dtype):
    found = read_one(tmp_path, tensor(kind, "0", 2, 0, (2,), (1,)), data)
    assert (found.tolist(), found.dtype) == (expected, dtype)


def test_parameters_sizes_and_devices_become_plain(tmp_path):
    weight = Call(PARAMETER, (tensor("Float", "0", 1, 0, (1,), (1,)), True, Call(ORDERED, ())))
    size = Call(Global("torch", "Size"), ((2, 3),))
    device = Call(Global("torch", "device"), ("cuda", 0))
    value = {"weight": weight, "size": size, "device": device}
    found = read_one(tmp_path, value, numbers(4))
    assert found == {"weight": np.float32([4]), "size": (2, 3), "device": "cuda:0"}


def test_an_ordered_dict_of_python_2_is_a_list_of_pairs(tmp_path):
    value = Call(ORDERED, ([["b", 1], ["a", 2]],))
    assert read_one(tmp_path, value, b"") == OrderedDict(b=1, a=2)


def test_safetensors_are_known_by_their_content(tmp_path):
    found = read_checkpoint(safe(tmp_path / "model.pth"))
    np.testing.assert_array_equal(found["a"], COUNT.reshape(3, 4))
    np.testing.assert_array_equal(found["b"], [True, False])


def test_bfloat16_in_safetensors(tmp_path):
    header = b'{"x":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}'
    data = len(header).to_bytes(8, "little") + header + b"\x80\x3f\x20\xc0"
    (tmp_path / "x.safetensors").write_bytes(data)
    assert read_checkpoint(tmp_path / "x.safetensors")["x"].tolist() == [[1, -2.5]]


@pytest.mark.parametrize("write", [zipped, legacy, safe])
def test_a_file_cut_off_anywhere_is_rejectd(tmp_path, write):
    whole = write(tmp_path / "whole").read_bytes()
    path = tmp_path / "cut.pth"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(WeightsError, match="cut.pth .*(again|archive)"):
            read_checkpoint(path)


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in what became a string
@pytest.mark.parametrize("write", [zipped, legacy, safe])
def test_random_damage_is_rejectd_or_harmless(tmp_path, write):
    whole = write(tmp_path / "whole").read_bytes()
    path = tmp_path / "damaged.pth"
    dice = random.Random(3)
    refused = 0
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 2, 8))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            read_checkpoint(path)
        except WeightsError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty. Fetch it again"),
        (b"<!DOCTYPE html>\n<html>", "21 bytes|22 bytes and begins with '<!DOCTYPE html>'"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "begins with 'version https://git"),
        (b"\x00\x01\x02\x03", "begins with the bytes 00 01 02 03"),
        (dumps({"a": 1}), "is a pickle, but not a checkpoint of torch"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path, data, message):
    path = tmp_path / "model.pth"
    path.write_bytes(data)
    with pytest.raises(WeightsError, match=message):
        read_checkpoint(path)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(WeightsError, match="absent.pth is not there"):
        read_checkpoint(tmp_path / "absent.pth")
    with pytest.raises(WeightsError, match="is a folder"):
        read_checkpoint(tmp_path)


def test_the_tar_format_of_old_is_rejectd(tmp_path):
    with tarfile.open(tmp_path / "old.pth.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))
    with pytest.raises(WeightsError, match="tar archive, the format of torch before 0.2"):
        read_checkpoint(tmp_path / "old.pth.tar")


def test_a_zip_of_something_else_is_rejectd(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pth", "w") as archive:
        archive.writestr("model.pth", b"")
    with pytest.raises(WeightsError, match="no checkpoint of torch: it has 0 members"):
        read_checkpoint(tmp_path / "x.pth")


def test_big_endian_machines_are_rejectd(tmp_path):
    for path in (
        zipped(tmp_path / "a.pth", byteorder=b"big"),
        legacy(tmp_path / "b.pth", little=False),
    ):
        with pytest.raises(WeightsError, match="saved on a big-endian machine"):
            read_checkpoint(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (tensor("Float", "0", 11, 0, (2,), (1,)), "storage '0' of 44 bytes has 48 bytes"),
        (tensor("Float", "5", 12, 0, (2,), (1,)), "storage '5' of 48 bytes has nothing"),
        (tensor("Float", "0", -1, 0, (0,), (1,)), "size of a storage is -1"),
        (tensor("Float", "0", 1 << 80, 0, (2,), (1,)), "size of a storage is 1208925"),
        (tensor("Float", 5, 12, 0, (2,), (1,)), "described in an unknown way"),
        (tensor("Float", "0", 12, 0, (2,), (1,), ("v", 0, 2)), "described in an unknown way"),
        ([storage("Float", "0", 12), storage("Int", "0", 12)], "described in two ways"),
        (storage("Float", "0", 12), "which is neither a tensor nor a plain value"),
        (Global("torch", "FloatStorage"), "which is neither a tensor nor a plain value"),
    ],
)
def test_storages_must_be_what_they_are_said_to_be(tmp_path, value, message):
    with pytest.raises(WeightsError, match=message):
        read_one(tmp_path, value, COUNT.tobytes())


def test_a_zip_that_would_fill_the_memory_is_rejectd(tmp_path):
    size = 1 << 25
    value = {"x": tensor("Byte", "0", size, 0, (size,), (1,))}
    path = write_zip(tmp_path / "bomb.pth", value, {"0": bytes(size)}, packing=zipfile.ZIP_DEFLATED)
    with pytest.raises(WeightsError, match=r"bytes claim to unpack to 33,554"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": ["71"]}, "storages that it lists are not those"),
        ({"keys": ["71", "71", "9"]}, "storages that it lists are not those"),
        ({"keys": ["71", 9]}, "are no list"),
        ({"keys": {"71": 1}}, "are no list"),
        ({"version": 1002}, "version is not 1001"),
        ({"keys": ["9", "71"]}, "storage '9' has 12 elements instead of 1"),
    ],
)
def test_damage_to_the_format_before_the_zip(tmp_path, options, message):
    with pytest.raises(WeightsError, match=message):
        read_checkpoint(legacy(tmp_path / "x.pth", **options))


def test_what_is_not_a_dict_at_the_top_is_rejectd(tmp_path):
    path = write_zip(tmp_path / "x.pth", [1, 2], {})
    with pytest.raises(WeightsError, match="holds list instead of a dict of named arrays"):
        read_checkpoint(path)


def test_tensors_inside_says_what_is_there(tmp_path):
    checkpoint = read_checkpoint(zipped(tmp_path / "x.pth"))
    found = tensors_inside(checkpoint, "model", dropped=["count*"])
    assert {name: array.shape for name, array in found.items()} == {"weight": (2, 3), "bias": (3,)}
    with pytest.raises(WeightsError, match=r"x.pth has no 'net': it holds step \(int\), rate"):
        tensors_inside(checkpoint, "net", source="x.pth")
    with pytest.raises(WeightsError, match=r"'model' of x.pth has no 'a': .*weight \(array \[2, 3"):
        tensors_inside(checkpoint, "model", "a", source="x.pth")
    with pytest.raises(WeightsError, match="'note' of x.pth is str instead"):
        tensors_inside(checkpoint, "note", source="x.pth")
    with pytest.raises(WeightsError, match="x.pth is no dict of named arrays: it holds step"):
        tensors_inside(checkpoint, source="x.pth")
