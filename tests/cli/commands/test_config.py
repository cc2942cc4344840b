import importlib.util

import pytest
import yaml

from myxtts.cli import train_test_file
from myxtts.config.config import SETTINGS
from myxtts.config.io import load_config
from tests.cli.conftest import ROOT


def rows(table: str) -> dict[str, tuple[str, str]]:
    """Value and origin by path, from what --explain prints."""
    cells = [line.split(maxsplit=2) for line in table.splitlines()]
    return {path: (value, origin) for path, value, origin in cells}


def test_show_prints_every_setting_as_yaml(myxtts):
    code, out, _ = myxtts("config", "show", "--epochs", 7)
    values = yaml.safe_load(out)
    assert code == 0
    assert {f"{s}.{name}" for s, part in values.items() for name in part} == set(SETTINGS)
    assert values["training"]["epochs"] == 7


def test_explain_names_every_setting_and_its_origin(myxtts, monkeypatch, tmp_path):
    (tmp_path / "a.yaml").write_text("data:\n  batch_size: 3\n  num_workers: 4\n")
    monkeypatch.setenv("MYXTTS_DATA_NUM_WORKERS", "5")
    monkeypatch.setenv("MYXTTS_TRAINING_SEED", "9")
    flags = ("--batch-size", 6, "--seed", 8, "--model-size", "tiny")
    code, out, err = myxtts("config", "show", "--explain", "--config", "a.yaml", *flags)
    table = rows(out)
    assert code == 0
    assert set(table) == set(SETTINGS)
    assert table["data.batch_size"] == ("6", "flag --batch-size")
    assert table["data.num_workers"] == ("5", "environment MYXTTS_DATA_NUM_WORKERS")
    assert table["training.seed"] == ("9", "environment MYXTTS_TRAINING_SEED")
    assert table["data.max_mel_frames"] == ("1000", "preset tiny")
    assert table["data.n_mels"] == ("80", "default")
    assert err == "warning: --seed has no effect: environment MYXTTS_TRAINING_SEED wins over it\n"


def test_create_writes_a_file_that_loads_with_the_given_settings(myxtts, tmp_path):
    code, out, _ = myxtts("config", "create", "--output", "sub/a.yaml", "--batch-size", 5)
    assert (code, out) == (0, "wrote sub/a.yaml\n")
    assert load_config(tmp_path / "sub" / "a.yaml").data.batch_size == 5
    assert "# utterances per batch" in (tmp_path / "sub" / "a.yaml").read_text()


def test_create_keeps_the_file_that_was_there(myxtts, tmp_path):
    (tmp_path / "config.yaml").write_text("mine")
    assert myxtts("config", "create")[0] == 0
    assert (tmp_path / "config.yaml.bak").read_text() == "mine"
    assert load_config(tmp_path / "config.yaml").data.batch_size == 32


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (("--batch-size", "many"), "data.batch_size must be a whole number, got 'many'"),
        (("--batch-size", "0"), "data.batch_size must be at least 1"),
        (("--preprocessing-mode", "fast"), "must be one of auto, precompute, runtime; got 'fast'"),
        (("--no-such-flag",), "unrecognized arguments: --no-such-flag"),
        (("--batch", "3"), "unrecognized arguments: --batch 3"),
        (("--config", "absent.yaml"), "there is no settings file absent.yaml"),
        (("--config", "odd.yaml"), "did you mean 'data.batch_size'?"),
        (("--config", "broken.yaml"), "this is not valid YAML"),
    ],
)
def test_wrong_settings_are_named(myxtts, tmp_path, argv, complaint):
    (tmp_path / "odd.yaml").write_text("data:\n  batch_sise: 3\n")
    (tmp_path / "broken.yaml").write_text("data:\n  batch_size: [3\n")
    code, _, err = myxtts("config", "show", *argv)
    assert code == 2
    assert complaint in err


def test_a_wrong_argument_is_answered_in_two_lines(myxtts):
    code, _, err = myxtts("train", "--modelsize", "tiny")
    assert code == 2
    assert err == (
        "myxtts train: error: unrecognized arguments: --modelsize tiny "
        "(did you mean --model-size?)\nsee myxtts train --help\n"
    )
    code, _, err = myxtts("config", "show", "--batch-size", "0")
    assert code == 2
    assert err == (
        "myxtts config show: error: argument --batch-size: data.batch_size must be at least 1, "
        "got 0\nsee myxtts config show --help\n"
    )


def test_a_model_size_over_a_created_file_is_explained_truthfully(myxtts):
    assert myxtts("config", "create")[0] == 0
    flags = ("--config", "config.yaml", "--model-size", "tiny")
    code, out, err = myxtts("config", "show", "--explain", *flags)
    assert (code, err) == (0, "")
    assert rows(out)["model.decoder_dim"] == ("192", "preset tiny")
    assert rows(out)["model.model_size"] == ("tiny", "flag --model-size")


def test_the_old_program_creates_a_config(capsys, tmp_path):
    argv = "--mode create-config --output gpu_optimized.yaml --preprocessing-mode precompute"
    assert train_test_file.main([*argv.split(), "--batch-size", "48", "--epochs", "1000"]) == 0
    assert capsys.readouterr().out == "wrote gpu_optimized.yaml\n"
    config = load_config(tmp_path / "gpu_optimized.yaml")
    assert config.data.preprocessing_mode == "precompute"
    assert (config.data.batch_size, config.training.epochs) == (48, 1000)


def test_the_old_program_rejects_a_mode_that_it_lacks(capsys):
    with pytest.raises(SystemExit) as raised:
        train_test_file.main(["--mode", "dance"])
    assert raised.value.code == 2
    assert "invalid choice: 'dance'" in capsys.readouterr().err


def test_the_old_program_hands_out_the_default_config():
    spec = importlib.util.spec_from_file_location("trainTestFile", ROOT / "trainTestFile.py")
    face = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(face)
    config = face.create_default_config(
        data_path="./data/ljspeech", preprocessing_mode="precompute", batch_size=48
    )
    assert config.data.dataset_path == "./data/ljspeech"
    assert (config.data.preprocessing_mode, config.data.batch_size) == ("precompute", 48)
