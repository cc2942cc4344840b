"""The workers of a run: how they are started, and what is done when one of them ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from myxtts.cluster.rendezvous import find_worker, free_ports
from myxtts.errors import UserError
from myxtts.workflows import gang
from myxtts.workflows.gang import (
    RESTARTS,
    last_checkpoint,
    start_local,
    supervise,
    train_on_devices,
    wait_for,
    without_option,
    worker_environment,
)
from tests.helpers.fake_clock import FakeClock


class FakeProcess:
    """A worker that ends after some polls, by itself or when it is killed."""

    def __init__(self, code: int | None, polls: int = 0, on_poll=None):
        self.code, self.polls, self.on_poll = code, polls, on_poll
        self.signals: list[int] = []
        self.kills = 0

    def poll(self) -> int | None:
        if self.on_poll:
            self.on_poll()
        self.polls -= 1
        return self.code if self.polls < 0 else None

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def kill(self) -> None:
        if self.polls >= 0:
            self.code, self.polls, self.kills = -signal.SIGKILL, 0, self.kills + 1


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> FakeClock:
    """Nobody waits for real."""
    clock = FakeClock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(time, "sleep", clock.advance)
    return clock


def ended(*codes: int | None) -> list[FakeProcess]:
    return [FakeProcess(code) for code in codes]


def save(folder: Path, step: int) -> None:
    (folder / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)


class Starter:
    """Starts workers that end with given codes, a tuple for each start."""

    def __init__(self, *runs: tuple[int, ...], meanwhile=lambda number: None):
        self.runs, self.meanwhile = runs, meanwhile
        self.count = 0

    def __call__(self) -> list[FakeProcess]:
        codes = self.runs[min(self.count, len(self.runs) - 1)]
        self.count += 1
        self.meanwhile(self.count)
        return ended(*codes)


# How they end


@pytest.mark.parametrize(
    ("codes", "decisive"),
    [
        ((0, 0), 0),
        ((0, 2), 2),
        ((-9, 2), 2),  # a user's mistake explains all others
        ((75, -9), -9),  # who lost another is not the one that died
        ((1, 75), 1),
        ((75, 75), 75),
        ((130, 75), 130),
        ((130, 0), 130),
        ((-9, 130, 2), 2),
    ],
)
def test_the_first_real_fault_decides(codes, decisive):
    assert wait_for(ended(*codes)) == decisive


def test_the_others_may_end_by_themselves_when_one_has_failed(clock):
    workers = [FakeProcess(-9), FakeProcess(75, polls=150)]
    assert wait_for(workers) == -9
    assert workers[1].kills == 0


def test_who_does_not_end_by_itself_is_killed(clock):
    workers = [FakeProcess(1), FakeProcess(None, polls=10**9)]
    began = clock.now
    assert wait_for(workers) == 1
    assert workers[1].kills and clock.now - began == pytest.approx(gang._GRACE_SECONDS, abs=1)


def test_as_long_as_nobody_fails_nobody_is_killed(clock):
    # The others have ended, and the chief still exports.
    workers = [FakeProcess(0, polls=10_000), FakeProcess(0)]
    assert wait_for(workers) == 0
    assert workers[0].kills == 0


# Starting again


@pytest.mark.parametrize(("codes", "code"), [((0, 0), 0), ((2, 75), 2), ((130, 130), 130)])
def test_a_run_that_finished_or_was_stopped_or_cannot_be_is_not_started_again(
    tmp_path, codes, code
):
    start = Starter(codes)
    assert supervise(start, tmp_path) == code
    assert start.count == 1


@pytest.mark.parametrize("codes", [(-9, 75), (75, -9), (1, 75), (75, 75), (-11, 0)])
def test_where_a_worker_dies_all_are_started_again(tmp_path, caplog, codes):
    start = Starter(codes, (0, 0), meanwhile=lambda number: save(tmp_path, number))
    assert supervise(start, tmp_path) == 0
    assert start.count == 2
    code = next(code for code in codes if code not in (0, 75)) if set(codes) != {75} else 75
    expected = f"a worker died (exit code {code}): all start again after step 1"
    assert caplog.messages == [expected]


def test_a_run_that_gets_nowhere_is_given_up(tmp_path):
    save(tmp_path, 40)
    start = Starter((-9, 75))
    with pytest.raises(UserError) as raised:
        supervise(start, tmp_path)
    assert start.count == RESTARTS + 1 == 4
    assert str(raised.value) == (
        f"the workers died 4 times without a new checkpoint in {tmp_path}: see what they printed "
        "last"
    )


def test_a_run_that_gets_on_is_started_again_however_often(tmp_path):
    start = Starter(*[(-9, 75)] * 20, (0, 0), meanwhile=lambda number: save(tmp_path, number))
    assert supervise(start, tmp_path) == 0
    assert start.count == 21


def test_a_new_checkpoint_begins_the_count_again(tmp_path):
    saves = {3, 6}
    start = Starter(
        *[(-9, 75)] * 8, (0, 0), meanwhile=lambda n: save(tmp_path, n) if n in saves else None
    )
    assert supervise(start, tmp_path) == 0


def test_the_last_checkpoint_is_a_whole_one(tmp_path):
    assert last_checkpoint(tmp_path) == 0
    save(tmp_path, 7)
    save(tmp_path, 12)
    for name in ("step-00000099.tmp", "best.json", "step-x", "damaged-step-00000100"):
        (tmp_path / "checkpoints" / name).mkdir()
    assert last_checkpoint(tmp_path) == 12
    save(tmp_path / "stage2", 30)  # the second stage gets on when the first has ended
    assert last_checkpoint(tmp_path) == 42


# Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_goes_to_the_chief_and_a_second_one_to_all(tmp_path, number):
    handler = signal.getsignal(number)
    workers: list[FakeProcess] = []
    seen = []

    def interrupt() -> None:
        if len(seen) < 2:
            os.kill(os.getpid(), number)
            seen.append([list(one.signals) for one in workers])

    workers += [FakeProcess(130, 3, on_poll=interrupt), FakeProcess(75)]
    assert supervise(lambda: workers, tmp_path) == 130
    assert seen == [[[number], []], [[number] * 2, [number]]]
    assert signal.getsignal(number) == handler


@pytest.mark.parametrize(("codes", "code"), [((-9, 75), 130), ((0, 0), 0), ((2, 75), 2)])
def test_who_was_asked_to_end_starts_nothing_again(tmp_path, codes, code):
    asked = []

    def interrupt() -> None:
        if not asked:
            asked.append(True)
            os.kill(os.getpid(), signal.SIGTERM)

    workers = [FakeProcess(codes[0], on_poll=interrupt), FakeProcess(codes[1])]
    starts = []
    assert supervise(lambda: starts.append(1) or workers, tmp_path) == code
    assert len(starts) == 1


# How they are started


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("train --devices 2 --epochs 3", "train --epochs 3"),
        ("train --devices=2 --epochs 3", "train --epochs 3"),
        ("train --epochs 3 --devices 2", "train --epochs 3"),
        ("train --devices 2 --devices=4 --devices 8 -v", "train -v"),
        ("train --devices-per-host 2", "train --devices-per-host 2"),
        ("train", "train"),
    ],
)
def test_workers_get_the_command_without_the_option_that_starts_them(words, kept):
    assert without_option(words.split(), "--devices") == kept.split()


def test_a_worker_learns_from_its_environment_which_it_is():
    addresses = ["127.0.0.1:2001", "127.0.0.1:2002"]
    found = worker_environment(addresses, 1)
    task = {"type": "worker", "index": 1}
    assert json.loads(found["TF_CONFIG"]) == {"cluster": {"worker": addresses}, "task": task}
    worker = find_worker(environ=found)
    assert (worker.rank, worker.count, worker.local_rank) == (1, 2, 1)


def test_ports_are_different_and_free():
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))


def test_workers_are_started_with_the_same_addresses_and_their_own_rank(tmp_path):
    report = "import json, os, sys; c = json.loads(os.environ['TF_CONFIG']); "
    report += "json.dump(c, open(f'{sys.argv[1]}/{c[\"task\"][\"index\"]}', 'w'))"
    workers = start_local([sys.executable, "-c", report, str(tmp_path)], 2)
    assert [process.wait(60) for process in workers] == [0, 0]
    found = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)]
    assert [one["task"]["index"] for one in found] == [0, 1]
    assert found[0]["cluster"] == found[1]["cluster"]
    assert all(one.startswith("127.0.0.1:") for one in found[0]["cluster"]["worker"])


def test_workers_die_with_their_launcher():
    launcher = """
import os, signal, sys
from myxtts.workflows.gang import start_local
start_local([sys.executable, "-c", "import time; time.sleep(600)"], 2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    words = [sys.executable, "-c", launcher]
    # Its pipes are the workers' as well: it returns when nobody is left who could write to them.
    killed = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr


def test_a_run_that_begins_anew_does_so_once(tmp_path, monkeypatch):
    save(tmp_path, 50)
    commands = []

    def start(command, count):
        commands.append(" ".join(command[3:]))
        if len(commands) == 2:  # the old run is set aside, and the new one saves
            (tmp_path / "checkpoints" / "step-00000050").rmdir()
            save(tmp_path, 50)
        return ended(*[(-9, 75), (-9, 75), (0, 0)][len(commands) - 1])

    monkeypatch.setattr(gang, "start_local", start)
    words = "train --reset-training --resume-from x/step-1 --devices 2 -v".split()
    assert train_on_devices(2, words, tmp_path) == 0
    anew = "train --reset-training --resume-from x/step-1 -v"
    assert commands == [anew, anew, "train -v"]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [("", ["0", "1", "2"]), ("4,6", ["4", "6", "4"]), ("GPU-a,GPU-b,GPU-c", ["GPU-a"])],
)
def test_every_worker_has_a_gpu_of_its_own_as_far_as_there_are(monkeypatch, visible, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = [gang._own_device(rank, 3)["CUDA_VISIBLE_DEVICES"] for rank in range(len(expected))]
    assert found == expected


def test_workers_share_the_cores_unless_the_user_has_decided(monkeypatch):
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    monkeypatch.setattr(gang, "available_cores", lambda: 6)
    assert gang._own_device(0, 4)["TF_NUM_INTRAOP_THREADS"] == "1"
    assert gang._own_device(0, 2)["TF_NUM_INTRAOP_THREADS"] == "3"
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "5")
    assert gang._own_device(0, 2)["TF_NUM_INTRAOP_THREADS"] == "5"


def test_the_number_of_devices_is_at_least_one(tmp_path):
    with pytest.raises(UserError, match="^--devices must be 1 or more, not 0$"):
        train_on_devices(0, ["train"], tmp_path)
