"""A vocoder's folder: the same weights come back, and what is damaged or foreign is named."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from myxtts.checkpoints import CheckpointError, weights_of
from myxtts.checkpoints.files import DamagedError, sealed
from myxtts.checkpoints.vocoders import (
    TrainedVocoder,
    find_vocoder,
    load_vocoder,
    named_vocoder,
    save_vocoder,
)
from tests.helpers.tiny_vocoder import SMALL, tiny_vocoder, voiced_mel


@pytest.fixture(scope="module")
def model():
    return tiny_vocoder(SMALL, seed=3)


@pytest.fixture
def folder(model, tmp_path) -> Path:
    return save_vocoder(tmp_path / "vocoder", model, SMALL)


def card_of(folder: Path) -> dict:
    return json.loads((folder / "vocoder.json").read_text())


def write_card(folder: Path, **changed) -> None:
    card = {**card_of(folder), **changed}
    del card["check"]
    (folder / "vocoder.json").write_text(json.dumps(sealed(card)))


# There and back.


def test_the_same_weights_come_back_and_say_the_same_samples(folder, model):
    found = load_vocoder(folder)
    assert isinstance(found, TrainedVocoder)
    assert (found.path, found.kind, found.spec) == (folder, "istft", SMALL)
    assert found.model.settings == model.settings
    expected = weights_of(model)
    assert weights_of(found.model).keys() == expected.keys()
    for name, value in weights_of(found.model).items():
        assert np.asarray(value).tobytes() == np.asarray(expected[name]).tobytes(), name
    mel = voiced_mel(20, SMALL)
    np.testing.assert_array_equal(found.model(mel)["waveform"], model(mel)["waveform"])


def test_the_layout_is_as_documented(folder, model):
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "vocoder.json"]
    card = card_of(folder)
    assert (card["format"], card["kind"], card["spec"]) == (2, "istft", asdict(SMALL))
    assert card["settings"] == model.settings
    size = (folder / "model.safetensors").stat().st_size
    assert card["files"]["model.safetensors"]["size"] == size


def test_a_vocoder_takes_the_place_of_the_one_before(folder):
    other = tiny_vocoder(SMALL, seed=4, dim=8)
    save_vocoder(folder, other, SMALL)
    found = load_vocoder(folder).model
    assert found.settings["dim"] == 8
    np.testing.assert_array_equal(found.pre.kernel, other.pre.kernel)
    assert [path.name for path in folder.parent.iterdir()] == ["vocoder"]


def test_what_is_no_vocoder_is_not_replaced(model, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "note.txt"):
        with pytest.raises(CheckpointError, match="is not a vocoder: choose another folder"):
            save_vocoder(folder, model, SMALL)
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_one_that_a_kill_left_set_aside_is_found(folder):
    folder.rename(folder.with_name(".vocoder.old"))
    assert load_vocoder(folder).kind == "istft"
    assert load_vocoder(folder.parent).kind == "istft"


@pytest.mark.parametrize("place", ["", "vocoder", "vocoder/vocoder", "stage2/vocoder"])
def test_a_folder_or_the_run_around_it_will_do(model, tmp_path, place):
    run = tmp_path / "run"
    save_vocoder(run / place, model, SMALL)
    assert find_vocoder(run) == run / place
    assert load_vocoder(run).path == run / place


def test_the_vocoder_of_a_run_comes_before_that_of_its_second_stage(model, tmp_path):
    for place in ("vocoder", "stage2/vocoder"):
        save_vocoder(tmp_path / place, model, SMALL)
    assert find_vocoder(tmp_path) == tmp_path / "vocoder"


# What cannot be loaded.


def test_where_there_is_none_it_says_where_it_looked(tmp_path):
    assert find_vocoder(tmp_path) is None
    with pytest.raises(CheckpointError) as error:
        load_vocoder(tmp_path)
    for place in ("", "/vocoder", "/stage2/vocoder"):
        assert f"{tmp_path}{place}" in str(error.value)


def test_a_name_is_public_weights_only_where_it_is_one_of_a_vocoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named_vocoder("runs/mine") == Path("runs/mine")
    assert named_vocoder("ecapa_tdnn") == Path("ecapa_tdnn")
    with pytest.raises(CheckpointError, match="`myxtts weights get hifigan_ljspeech`"):
        named_vocoder("hifigan_ljspeech")
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(tmp_path))
    (tmp_path / "hifigan_ljspeech.pth").touch()
    assert named_vocoder("hifigan_ljspeech") == tmp_path / "hifigan_ljspeech.pth"


def test_a_flipped_bit_of_the_weights_is_noticed(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="model.safetensors is damaged.*sha256"):
        load_vocoder(folder)


def test_shortened_and_missing_weights_are_noticed(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedError, match="model.safetensors has [0-9]+ bytes instead of"):
        load_vocoder(folder)
    path.unlink()
    with pytest.raises(DamagedError, match="cannot read .*model.safetensors"):
        load_vocoder(folder)


@pytest.mark.parametrize("content", ["", "{", "[1]", '"istft"'])
def test_a_card_that_is_none_is_damaged(folder, content):
    (folder / "vocoder.json").write_text(content)
    with pytest.raises(DamagedError, match="vocoder.json is damaged"):
        load_vocoder(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"format": 3},
        {"kind": "wavenet"},
        {"kind": ["istft"]},
        {"settings": None},
        {"spec": None},
        {"files": None},
        {"files": {"model.safetensors": None}},
        {"files": {"model.safetensors": {}}},
    ],
    ids=lambda changed: json.dumps(changed)[:40],
)
def test_a_card_of_something_else_is_rejectd(folder, changed):
    write_card(folder, **changed)
    with pytest.raises(CheckpointError, match="vocoder.json does not describe a vocoder"):
        load_vocoder(folder)


def test_settings_that_only_the_model_finds_at_odds_are_rejectd(folder):
    rates = {"channels": 6, "rates": [8, 8], "rate_kernels": [16, 16], "block": 2}
    settings = {**rates, "kernels": [3], "dilations": [[1]], "n_mels": SMALL.n_mels}
    write_card(folder, kind="hifigan", settings=settings)
    with pytest.raises(DamagedError, match="vocoder.json has settings that cannot be: 6 channels"):
        load_vocoder(folder)


def test_weights_of_other_settings_are_rejectd_by_name(folder, model):
    write_card(folder, settings={**model.settings, "dim": 24})
    with pytest.raises(DamagedError, match="does not fit its settings: .*pre/kernel.*24"):
        load_vocoder(folder)


def test_other_mels_are_rejectd_by_name(folder):
    found = load_vocoder(folder)
    found.check(SMALL)
    other = replace(SMALL, n_mels=80, fmax=4000.0)
    with pytest.raises(CheckpointError) as error:
        found.check(other)
    assert "n_mels 20 here 80, fmax 3600.0 here 4000.0" in str(error.value)
    assert "hop_length" not in str(error.value) and str(folder) in str(error.value)
