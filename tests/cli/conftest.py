import os
import subprocess
import sys
from pathlib import Path

import pytest

from myxtts.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def usual_corpus() -> dict:
    return {"count": 12, "seconds": (0.6, 1.0)}


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch, tmp_path):
    """Neither the environment nor the working directory of whoever runs the tests counts."""
    for name in [name for name in os.environ if name.startswith("MYXTTS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def myxtts(capsys):
    """Run a command in this process; return its exit code, its output and its complaints."""

    def run(*argv) -> tuple[int, str, str]:
        try:
            code = main([str(arg) for arg in argv])
        except SystemExit as error:  # argparse ends a program by itself
            code = error.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def program():
    """Start a program of the project in a process of its own."""

    def start(*argv, **options) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, *map(str, argv)]
        return subprocess.Popen(command, env=environment, **(pipes | options))

    return start
