"""Ctrl-C while something is imported, in a terminal and in the background."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from myxtts.cli.interrupts import handled
from tests.cli.conftest import ROOT

# Stands for TensorFlow: it says that it is being imported, and drops every KeyboardInterrupt.
STUBBORN = """
import pathlib, time
pathlib.Path(__file__).with_name("is_imported").touch()
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        pass
"""


@pytest.fixture
def stubborn(tmp_path):
    """Make a module that takes some seconds to import; return its folder and its sign of life."""

    def make(name: str, seconds: float):
        folder = tmp_path / "modules" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(STUBBORN.format(seconds=seconds))
        return folder.parent, folder / "is_imported"

    return make


def wait_for(path) -> None:
    while not path.exists():
        time.sleep(0.02)


def train(modules, corpus, folder, *before, **options) -> subprocess.Popen:
    words = ["-m", "myxtts.cli.main", "train", "--data", corpus, "--checkpoint-dir", folder]
    environment = os.environ | {"PYTHONPATH": f"{modules}:{ROOT}"}
    command = [str(word) for word in (*before, sys.executable, *words)]
    return subprocess.Popen(command, env=environment, **options)


def test_ctrl_c_in_a_terminal_ends_an_import_that_drops_it(stubborn, corpus, tmp_path):
    modules, is_imported = stubborn("tensorflow", seconds=60)
    ours, theirs = pty.openpty()
    pipes = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    # Only the terminal of a session sends it a signal for Ctrl-C.
    process = train(
        modules, corpus, tmp_path / "run", preexec_fn=lambda: _take_terminal(theirs), **pipes
    )
    os.close(theirs)
    wait_for(is_imported)
    os.write(ours, b"\x03")
    assert process.wait(timeout=30) == 130
    assert os.read(ours, 4096).replace(b"\r", b"").endswith(b"interrupted\n")
    os.close(ours)
    assert not (tmp_path / "run").exists()


def _take_terminal(descriptor: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def test_an_interrupt_in_the_background_ends_an_import_that_drops_it(stubborn, corpus, tmp_path):
    """A shell that runs a script starts its background processes with SIGINT ignored."""
    modules, is_imported = stubborn("tensorflow", seconds=60)
    ignoring = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = train(modules, corpus, tmp_path / "run", *ignoring, **pipes)
    wait_for(is_imported)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert not (tmp_path / "run").exists()


def test_an_interrupt_that_comes_while_importing_is_raised_afterwards(stubborn, monkeypatch):
    modules, is_imported = stubborn("slow_to_import", seconds=0.2)
    monkeypatch.syspath_prepend(modules)
    (modules / "slow_to_import" / "asks.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nhas_gone_on = True\n"
    )
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), handled():
        import slow_to_import.asks

        assert slow_to_import.asks.has_gone_on
        time.sleep(20)
    assert is_imported.exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_a_destructor_drops_is_raised_again():
    class Last:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), handled():
        Last()
        time.sleep(20)
    assert sys.unraisablehook is before
