"""The published weights themselves, where they have been fetched."""

import os
from pathlib import Path

import numpy as np
import pytest

from myxtts.weights import PUBLIC, check_fit, is_present, read_checkpoint, tensors_inside
from tests.helpers.shared_data import shared

FOLDERS = (os.environ.get("MYXTTS_WEIGHTS_DIR"), Path(__file__).parents[2] / "checkpoints")


def real(name: str) -> Path:
    """The path of public weights, or skip the calling test and name what is absent."""
    for folder in filter(None, FOLDERS):
        if is_present(PUBLIC[name], folder):
            return Path(folder) / PUBLIC[name].filename
    pytest.skip(f"the weights {name!r} are not here: `myxtts weights get`, or MYXTTS_WEIGHTS_DIR")


def listed(table: str) -> list[tuple[str, ...]]:
    """The names, shapes and types in a table of the reference."""
    lines = (shared("reference") / table).read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines if not line.startswith("#")]


def test_ecapa_has_the_tensors_of_the_reference():
    path = real("ecapa_tdnn")
    expected, found = listed("ecapa_checkpoint_keys.txt"), read_checkpoint(path)
    assert [(k, str(v.shape), str(v.dtype)) for k, v in found.items()] == expected
    shapes = {name: array.shape for name, array in found.items()}
    check_fit(found, shapes, path, ignored=["*.num_batches_tracked"])


@pytest.mark.parametrize("name", ["hifigan_universal", "hifigan_ljspeech"])
def test_hifigan_has_the_tensors_of_the_reference(name):
    expected = listed("hifigan_checkpoint_keys.txt")
    found = tensors_inside(read_checkpoint(real(name)), "generator")
    assert [(k, str(v.shape), str(v.dtype)) for k, v in found.items()] == expected
    assert len(found) == 234 and all(np.isfinite(array).all() for array in found.values())


def test_resemblyzer_tensors_share_a_storage_in_the_known_places():
    found = read_checkpoint(real("resemblyzer"))
    assert found["step"] == 1_564_501
    tensors = tensors_inside(found, "model_state", dropped=["similarity_*"])
    assert len(tensors) == 14
    offsets = {"weight_ih_l0": 0, "weight_hh_l0": 40_960, "weight_ih_l2": 827_392}
    offsets |= {"bias_ih_l0": 1_351_680, "bias_hh_l2": 1_351_680 + 5 * 1024}
    start = tensors["lstm.weight_ih_l0"].ctypes.data
    for name, offset in offsets.items():
        assert (tensors[f"lstm.{name}"].ctypes.data - start) == 4 * offset
    assert all(np.isfinite(array).all() for array in tensors.values())
