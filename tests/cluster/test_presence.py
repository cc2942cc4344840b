"""Signs of life: who is there, who was, and who never came."""

import json
import logging
import os
import threading
import time
from pathlib import Path

import pytest

from myxtts.cluster import presence as presence_module
from myxtts.cluster.presence import LOST, Presence, WorkerLost
from myxtts.cluster.rendezvous import Worker
from myxtts.monitoring.heartbeat import doing
from tests.helpers.fake_clock import FakeClock

ADDRESSES = ("a:1", "b:1", "c:1")


class Gang:
    """Three workers that share a folder, by one clock."""

    def __init__(self, folder: Path):
        self.folder, self.clock = folder, FakeClock()
        self.workers = [self.join(rank) for rank in range(3)]

    def join(self, rank: int) -> Presence:
        return Presence(self.folder, Worker(rank, ADDRESSES, "--workers"), self.clock)

    def all_look(self) -> None:
        for one in self.workers:
            one.look()

    def beat(self, *ranks: int) -> None:
        """Some of them show life, and a second goes by."""
        for rank in ranks:
            self.workers[rank].beat()
        self.clock.advance(1.0)
        self.all_look()


@pytest.fixture
def gang(tmp_path) -> Gang:
    return Gang(tmp_path)


def sign(folder: Path, rank: int) -> dict:
    return json.loads((folder / "workers" / f"{rank}.json").read_text())


def test_a_sign_says_who_it_is_and_what_it_does(tmp_path):
    one = Presence(tmp_path, Worker(1, ADDRESSES, "--workers"), FakeClock())
    one.beat()
    own = {"worker": "worker 1 (b:1)", "process": os.getpid(), "step": 0, "doing": "starting"}
    assert sign(tmp_path, 1) == {**own, "beat": 1, "sees": []}
    one.step = 7
    with doing("building"):
        one.beat()
    assert sign(tmp_path, 1) == {**own, "beat": 2, "step": 7, "doing": "building", "sees": []}
    assert [path.name for path in (tmp_path / "workers").iterdir()] == ["1.json"]


def test_who_has_shown_no_life_is_absent(gang):
    first = gang.workers[0]
    gang.all_look()
    assert first.absent() == [1, 2]
    gang.beat(2)
    assert first.absent() == [1]
    gang.beat(1)
    assert first.absent() == []
    # Nobody is absent for themselves.
    assert gang.workers[2].absent() == [0]


def test_what_an_earlier_run_has_left_is_not_life(gang):
    gang.beat(0, 1, 2)
    late = gang.join(0)
    for _ in range(5):
        late.look()
        gang.clock.advance(100.0)
    assert late.absent() == [1, 2] and late.silent(60.0) == []
    gang.workers[1].beat()
    late.look()
    assert late.absent() == [2]


def test_a_file_that_is_gone_is_no_sign(gang):
    gang.all_look()
    gang.beat(1)
    (gang.folder / "workers" / "1.json").unlink()
    gang.clock.advance(61.0)
    gang.all_look()
    assert gang.workers[0].silent(60.0) == [1]


def test_who_was_alive_and_no_longer_changes_is_silent(gang):
    first = gang.workers[0]
    gang.all_look()
    gang.beat(1, 2)
    for _ in range(60):
        gang.beat(2)
    assert first.silent(60.0) == []  # for 60 seconds, not longer
    gang.beat(2)
    assert first.silent(60.0) == [1]
    gang.beat(1, 2)
    assert first.silent(60.0) == []


def test_a_worker_is_described_by_what_it_last_said(gang):
    gang.all_look()
    gang.workers[1].step = 41
    gang.beat(1)
    first = gang.workers[0]
    assert first.describe(1) == "worker 1 (b:1), last seen starting after step 41"
    assert first.describe(2) == "worker 2 (c:1)"


def test_a_sign_that_cannot_be_read_names_the_worker_alone(gang):
    gang.beat(1)
    (gang.folder / "workers" / "1.json").write_text("{")
    gang.all_look()
    assert gang.workers[0].describe(1) == "worker 1 (b:1)"
    assert gang.workers[0].slowest() == []


def test_the_slowest_are_those_with_the_fewest_steps(gang):
    gang.all_look()
    assert gang.workers[0].slowest() == []  # nobody has said anything
    for rank, step in enumerate((9, 8, 9)):
        gang.workers[rank].step = step
    gang.beat(0, 1, 2)
    assert gang.workers[0].slowest() == [1]
    gang.workers[2].step = 8
    gang.beat(2)
    assert gang.workers[0].slowest() == [1, 2]
    for one in gang.workers:
        one.step = 10
    gang.beat(0, 1, 2)
    assert gang.workers[0].slowest() == []


def test_who_does_not_come_is_named(gang, monkeypatch):
    monkeypatch.setattr(time, "sleep", gang.clock.advance)
    gang.all_look()
    gang.beat(1)
    with pytest.raises(WorkerLost) as raised:
        gang.workers[0].wait_for_all(30.0)
    assert str(raised.value) == (
        f"worker 2 (c:1) did not appear in {gang.folder / 'workers'} within 30 s: start it, let it "
        "see the same --checkpoint-dir, or name other workers"
    )
    assert raised.value.exit_code == LOST == 75


def test_waiting_ends_when_all_have_met(gang, monkeypatch):
    rounds = []

    def sleep(seconds: float) -> None:
        rounds.append(seconds)
        gang.beat(0, 1, 2)

    monkeypatch.setattr(time, "sleep", sleep)
    gang.workers[0].wait_for_all(30.0)
    assert len(rounds) == 3  # a first sign, another that is life, and one that says whom it sees


def test_workers_meet_when_each_is_seen_by_the_other_and_knows(gang):
    one, other = (Presence(gang.folder, Worker(rank, ADDRESSES[:2], "")) for rank in (0, 1))
    for each in (one, other):
        each.look()
    one.beat()
    other.look()  # sees one
    assert other.absent() == [] and other.unmet() == [0]
    other.beat()  # and says so
    one.look()
    assert one.absent() == [] and one.unmet() == [1]
    one.beat()
    assert one.unmet() == []
    # It may stop here: what it has left is enough for the other.
    other.look()
    assert other.unmet() == []


def test_whoever_has_met_all_may_fall_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(presence_module, "BEAT_SECONDS", 0.01)
    met = []

    def meet(rank: int) -> None:
        one = Presence(tmp_path, Worker(rank, ADDRESSES, "--workers"))
        with one.watching():
            one.wait_for_all(60.0)
        met.append(rank)

    for _ in range(5):
        threads = [threading.Thread(target=meet, args=(rank,)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(met) == sorted(5 * [0, 1, 2])


def test_where_another_falls_silent_the_process_ends_and_says_who(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(presence_module, "BEAT_SECONDS", 0.01)
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    clock = FakeClock()
    one, other = (Presence(tmp_path, Worker(r, ADDRESSES[:2], "--workers"), clock) for r in (0, 1))
    one.look()
    other.beat()
    one.look()
    with one.watching(patience=60.0):
        time.sleep(0.05)
        assert codes == []
        clock.advance(61.0)
        until = time.monotonic() + 60.0
        while not codes and time.monotonic() < until:
            time.sleep(0.01)
    assert codes[0] == LOST
    assert caplog.messages[0] == (
        "no sign of life for 60 s: worker 1 (b:1), last seen starting after step 0; ending this "
        "worker"
    )


def test_a_file_system_that_is_away_for_a_moment_ends_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(presence_module, "BEAT_SECONDS", 0.01)
    one = Presence(tmp_path, Worker(0, ADDRESSES[:2], "--workers"))
    with one.watching():
        monkeypatch.setattr(one, "folder", tmp_path / "a file" / "workers")
        (tmp_path / "a file").touch()
        until = time.monotonic() + 60.0
        while not caplog.messages and time.monotonic() < until:
            time.sleep(0.01)
        (tmp_path / "a file").unlink()
    assert caplog.messages[0].startswith("no sign of life can be written: ")
