"""`myxtts export`: what a user reads where it cannot be done."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from myxtts.cli.main import main
from tests.helpers.small_voice import small_run

pytest.importorskip("tf2onnx", reason="tf2onnx is not installed: the extra `export`")

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return small_run(tmp_path_factory.mktemp("runs") / "small", languages=("en",))


def words(run: Path, target: Path, to: str = "onnx", *more: str) -> list[str]:
    return ["export", "--voice", str(run), "--to", to, "-o", str(target), *more]


def test_a_voice_is_exported_and_speaks(run, tmp_path, capsys):
    assert main(words(run, tmp_path / "out", "onnx", "--licence", "CC0")) == 0
    assert "parity: 6 texts" in capsys.readouterr().out
    wav = tmp_path / "hello.wav"
    speak = ["synthesize", "--voice", str(tmp_path / "out"), "--text", "Hello.", "-o", str(wav)]
    assert main(speak) == 0 and wav.is_file()


def test_a_run_without_a_voice_is_named(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    assert main(words(tmp_path / "run", tmp_path / "out")) == 2
    assert "there is no voice in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_target_is_answered_with_the_known_ones(run, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words(run, tmp_path / "out", "coreml"))
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "coreml" in error and "piper" in error


@pytest.mark.parametrize(
    "to, name", [("onnx", "out"), ("piper", "out.onnx"), ("sherpa", "out"), ("litert", "out")]
)
def test_nothing_is_replaced(run, tmp_path, capsys, to, name):
    (tmp_path / name).write_text("precious")
    assert main(words(run, tmp_path / name, to)) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "precious"


def test_a_full_disk_leaves_nothing_behind(run, tmp_path, capsys, monkeypatch):
    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(words(run, tmp_path / "out")) == 2
    assert "no space left while writing" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_weights_of_fewer_bits_are_for_onnx_files(run, tmp_path, capsys):
    assert main(words(run, tmp_path / "out", "saved-model", "--weights", "int8")) == 2
    assert "is for ONNX files" in capsys.readouterr().err


def test_a_trained_voice_without_tensorflow_names_the_extra(run):
    program = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
from myxtts.errors import UserError
from myxtts import load_voice
try:
    load_voice(sys.argv[1])
except UserError as error:
    print(error)
"""
    command = [sys.executable, "-c", program, str(run)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "myxtts[cpu]" in result.stdout and "myxtts export" in result.stdout, result.stderr
