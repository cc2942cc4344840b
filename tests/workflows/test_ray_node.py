"""What a node of a Ray cluster does for a worker; no Ray is needed for that."""

import os
import signal
import time
from pathlib import Path

import pytest

from myxtts.workflows.ray_node import NodeWorker, Order

# With a handler of its own: where tests run in the background, SIGINT is ignored.
EXITS_WITH_7_AT_SIGINT = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("there", flush=True)
time.sleep(120)
"""


def order(program: str, **changes) -> Order:
    settings = {"folder": ".", "environment": {}, "threads": 1, "keeps_all_output": True}
    return Order(("-c", program), **{**settings, **changes})


def run(program: str, **changes):
    """Run a program to its end; return all that it printed, its last lines and its exit code."""
    worker, lines = NodeWorker(), []
    worker.start(order(program, **changes))
    while (news := worker.news()).code is None:
        lines += news.lines
    return lines + news.lines, news.last_lines, news.code


@pytest.fixture(autouse=True)
def prompt(monkeypatch):
    monkeypatch.setattr("myxtts.workflows.ray_node.NEWS_SECONDS", 0.05)


def test_all_that_the_chief_prints_is_news():
    program = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    lines, last, code = run(program)
    assert sorted(lines) == [(False, "one\n"), (True, "two\n")]
    assert (last, code) == ([], 3)


def test_of_the_others_only_the_last_lines_are_kept():
    lines, last, code = run("for n in range(50): print(n)", keeps_all_output=False)
    assert (lines, code) == ([], 0)
    assert last == [f"{number}\n" for number in range(30, 50)]


def test_it_runs_where_the_command_was_given_with_its_share_of_the_cores(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    names = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS", "TF_CONFIG")
    program = f"import os; print(os.getcwd(), *map(os.environ.get, {names}))"
    lines, _, _ = run(program, folder=str(tmp_path), threads=7, environment={"TF_CONFIG": "{}"})
    assert lines == [(False, f"{tmp_path} 7 None {{}}\n")]


def test_what_cannot_be_started_has_failed():
    lines, last, code = run("", folder="nowhere")
    assert (lines, code) == ([], 1)
    assert "nowhere" in last[0]


def test_a_signal_reaches_the_worker_also_where_ray_blocks_it():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        worker = NodeWorker()
        worker.start(order(EXITS_WITH_7_AT_SIGINT))
        while not worker.news().lines:
            pass
        worker.send_signal(signal.SIGINT)
        while (news := worker.news()).code is None:
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert news.code == 7


def test_the_worker_dies_with_its_actor(tmp_path):
    program = f"""
import os, pathlib, time
pathlib.Path({str(tmp_path / "process")!r}).write_text(str(os.getpid()))
time.sleep(60)
"""
    if (actor := os.fork()) == 0:
        try:
            NodeWorker().start(order(program))
            time.sleep(60)
        finally:
            os._exit(1)
    number = wait_for_text(tmp_path / "process")
    os.kill(actor, signal.SIGKILL)
    os.waitpid(actor, 0)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{number}").exists() and is_running(number):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_text(path: Path) -> int:
    deadline = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(path.read_text())


def is_running(process: int) -> bool:
    """Whether it is more than an entry that its new parent has not read yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_workers_of_a_host_have_two_ports(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    workers = [NodeWorker() for _ in range(20)]
    ports = {one.describe("", str(tmp_path), str(tmp_path)).port for one in workers}
    assert len(ports) == 20


def test_a_node_says_what_keeps_it_from_training(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    place = NodeWorker().describe("99.0", "/nowhere", str(tmp_path / "run" / "marker"))
    version, run, folder = place.problems
    assert version.endswith(", not 99.0") and "/nowhere" in folder
    assert run == f"it does not see the run folder {tmp_path / 'run'}, or has another of that name"
