"""What the drill says of the time and the memory that a case took."""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import drill
from benchmarks.drills import children, measuring
from benchmarks.drills.cases import ACCEPTED, HUNG, UNBOUNDED, Case, Outcome


def allocate(megabytes: int) -> None:
    np.ones(megabytes * 2**17)


def run_one(case: Case, folder: Path) -> dict:
    (line,) = drill.run_all([case], folder)
    return line


def test_memory_of_a_case_is_its_peak_beyond_its_start(tmp_path):
    def run(work: Path) -> Outcome:
        allocate(300)
        return Outcome(ACCEPTED)

    line = run_one(Case("own", "memory", run), tmp_path)
    assert line["result"] == ACCEPTED and 290 < line["megabytes"] < 400


def test_memory_of_a_case_is_that_of_its_largest_child(tmp_path):
    def run(work: Path) -> Outcome:
        for number, megabytes in enumerate((100, 300, 50)):
            children.call(lambda size=megabytes: allocate(size), work / f"{number}.log")
        return Outcome(ACCEPTED)

    line = run_one(Case("child", "memory", run, megabytes=200.0), tmp_path)
    assert line["result"] == UNBOUNDED and 290 < line["megabytes"] < 400


def test_a_case_that_sleeps_beyond_its_time_is_killed(tmp_path):
    line = run_one(Case("asleep", "time", lambda work: time.sleep(600), 0.3), tmp_path)
    assert line["result"] == HUNG and line["megabytes"] > 0


@pytest.mark.parametrize(
    ("ran", "waited", "seconds"),
    [
        (0.0, 0.0, 8.0),  # asleep
        (8.0, 0.0, 8.0),  # alone on the machine
        (2.0, 6.0, 2.0),  # one thread that shares a core with three others
        (2.0, 2.0, 6.0),  # half of the time asleep
        (8.0, 8.0, 4.0),  # two threads that share their cores with two others
    ],
)
def test_time_in_which_a_process_waits_for_a_core_is_not_counted(ran, waited, seconds):
    assert measuring.counted(8.0, ran, waited) == pytest.approx(seconds)


def test_the_clock_reads_threads_and_children(monkeypatch):
    now, tasks = [100.0], {7: (5.0, 1.0)}
    monkeypatch.setattr(measuring.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(measuring, "_tasks", lambda pid: dict(tasks))
    clock = measuring.Clock(7)
    now[0], tasks[7], tasks[8] = 104.0, (5.5, 2.5), (0.5, 1.5)
    assert clock.seconds() == pytest.approx(1.0)
    now[0] = 106.0
    assert clock.seconds() == pytest.approx(3.0)


def test_a_process_that_ends_while_it_is_looked_at_has_no_threads(monkeypatch):
    gone = SimpleNamespace(pid=2**22 + 1)  # above the largest number of a process
    monkeypatch.setattr(measuring, "family", lambda pid: [gone])
    assert measuring._tasks(gone.pid) == {}
