"""Tasks on a Ray cluster."""

import logging
import os
import signal
import socket
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from myxtts.data.store import ray_nodes
from myxtts.data.store.errors import CacheError
from myxtts.data.store.ray_nodes import check_nodes
from myxtts.data.store.ray_workers import RayWorkers
from myxtts.errors import UserError


@dataclass(frozen=True)
class Write:
    """Write a file; the longer it takes, the earlier."""

    path: Path
    seconds: float = 0.0

    def __call__(self) -> str:
        self.path.write_text("begun")
        time.sleep(self.seconds)
        self.path.with_suffix(".ended").touch()
        return self.path.name

    def effort(self) -> float:
        return self.seconds


@dataclass(frozen=True)
class Fail:
    """Raise what a store raises."""

    def __call__(self) -> str:
        raise CacheError("no space left")

    def effort(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Die:
    """End the process, so often as is written to a file."""

    path: Path
    times: int

    def __call__(self) -> str:
        with self.path.open("a") as file:
            file.write("x")
        if len(self.path.read_text()) <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    def effort(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Warn:
    """Log a warning of ours, and one of somebody else's."""

    def __call__(self) -> str:
        logging.getLogger("myxtts.somewhere").warning("mind %s", "the gap")
        logging.getLogger("myxtts.somewhere").info("fine")
        logging.getLogger("elsewhere").warning("no matter")
        return "warned"

    def effort(self) -> float:
        return 0.0


# On a cluster


@pytest.fixture
def pool(ray_cluster):
    with RayWorkers(ray_cluster.address) as pool:
        yield pool


def test_results_come_as_tasks_end(pool, tmp_path):
    tasks = [Write(tmp_path / str(number)) for number in range(9)]
    assert sorted(pool.run(tasks)) == [str(number) for number in range(9)]
    assert pool.cores == 2
    assert list(pool.run([])) == []


def test_no_more_is_begun_than_twice_the_cores(pool, tmp_path, monkeypatch):
    begun, most = 0, 0
    remote = pool._ray.remote

    def counting(**options):
        def decorate(function):
            made = remote(**options)(function)

            class Counting:
                @staticmethod
                def remote(task):
                    nonlocal begun
                    begun += 1
                    return made.remote(task)

            return Counting

        return decorate

    monkeypatch.setattr(pool._ray, "remote", counting)
    for ended, _ in enumerate(pool.run([Write(tmp_path / str(n)) for n in range(12)])):
        most = max(most, begun - ended)
    assert (begun, most) == (12, 4)


def test_the_longest_is_begun_first(pool, tmp_path):
    list(pool.run([Write(tmp_path / f"of{tenths}", tenths / 10) for tenths in (0, 3, 1, 2)]))
    begun = [(tmp_path / f"of{tenths}").stat().st_mtime_ns for tenths in (3, 0)]
    assert begun == sorted(begun)


def test_an_error_of_a_task_is_raised_as_it_was(pool):
    with pytest.raises(CacheError) as caught:
        list(pool.run([Fail()]))
    assert str(caught.value) == "no space left" and type(caught.value) is CacheError


def test_a_task_whose_process_dies_is_done_again(pool, tmp_path):
    assert list(pool.run([Die(tmp_path / "twice", 2)])) == ["alive"]


def test_a_task_whose_process_always_dies_is_given_up(pool, tmp_path):
    with pytest.raises(CacheError, match="could not make a shard .*run the same command again"):
        list(pool.run([Die(tmp_path / "always", 99)]))
    assert len((tmp_path / "always").read_text()) == 4  # once, and three times again


def test_warnings_of_ours_come_back(pool, caplog):
    assert list(pool.run([Warn()])) == ["warned"]
    assert [record.getMessage() for record in caplog.records] == ["mind the gap"]


def test_cores_that_are_gone_are_told_of(pool, tmp_path, monkeypatch, caplog):
    counts = iter([4, 4, 2, 2])
    monkeypatch.setattr(RayWorkers, "cores", property(lambda pool: next(counts)))
    list(pool.run([Write(tmp_path / str(number)) for number in range(3)]))
    (record,) = caplog.records
    assert record.getMessage().startswith("2 of 4 cores of the cluster are left")


def test_leaving_early_cancels_what_is_under_way(pool, tmp_path):
    tasks = [Write(tmp_path / str(number), 30.0) for number in range(9)]
    with closing(pool.run([*tasks, Write(tmp_path / "first", 31.0)])) as finished:
        waiting = threading.Thread(target=interrupt_when_there, args=(tmp_path / "first",))
        waiting.start()
        with pytest.raises(KeyboardInterrupt):
            next(finished)
    assert list(pool.run([Write(tmp_path / "next")])) == ["next"]
    names = {path.name for path in tmp_path.iterdir()} - {"next", "next.ended"}
    assert "first" in names and len(names) <= 2  # as many as there are cores, and none ended


def interrupt_when_there(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)
    signal.raise_signal(signal.SIGINT)


def test_a_cluster_that_was_joined_stays(ray_cluster):
    ours = signal.getsignal(signal.SIGTERM)
    for _ in range(2):
        with RayWorkers(ray_cluster.address) as pool:
            assert pool.cores == 2
            assert signal.getsignal(signal.SIGTERM) is ours
        assert not pool._ray.is_initialized()


# The nodes


def test_every_node_that_can_work_passes(pool, tmp_path, caplog):
    (tmp_path / "a.wav").write_bytes(b"sound")
    check_nodes(pool, [tmp_path / "cache"], [tmp_path / "a.wav", tmp_path / "missing.wav"])
    assert list((tmp_path / "cache").iterdir()) == []
    assert caplog.text == ""


def test_a_node_with_another_version_is_named(pool, tmp_path, monkeypatch):
    monkeypatch.setattr("myxtts.__version__", "99.0")
    with pytest.raises(UserError, match=r"it has myxtts .*, not 99\.0") as caught:
        check_nodes(pool, [tmp_path], [])
    assert socket.gethostname() in str(caught.value)


def test_a_node_with_other_libraries_is_warned_of(pool, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(ray_nodes, "_installed", lambda: ("numpy 1.0",))
    check_nodes(pool, [tmp_path], [])
    assert "its rows may differ by rounding" in caplog.text


def test_a_node_that_does_not_see_our_locks_is_warned_of(pool, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(ray_nodes.fcntl, "flock", lambda *arguments: None)
    check_nodes(pool, [tmp_path], [])
    assert f"it does not see locks in {tmp_path}: let nothing else write there" in caplog.text


def test_a_node_that_does_not_share_the_folders_is_named(pool, tmp_path, monkeypatch):
    recording = tmp_path / "a.wav"
    recording.write_bytes(b"sound")
    check = ray_nodes.NodeCheck(
        package=ray_nodes.myxtts.__version__,
        libraries=ray_nodes._installed(),
        markers=(tmp_path / "nowhere" / "marker",),
        recordings=((tmp_path / "b.wav", (1, 2)), (recording, (1, 2)), (tmp_path / "c.wav", None)),
    )
    (report,) = pool.run_on_every_node(check).values()
    assert report.problems == (
        f"it does not see the cache folder {tmp_path / 'nowhere'}, or has another one of that name",
        f"it does not see the recording {tmp_path / 'b.wav'}",
        f"the recording {recording} has another size or time there",
    )
    monkeypatch.setattr(ray_nodes, "NodeCheck", lambda *seen: check)
    with pytest.raises(UserError, match="these nodes of the cluster cannot prepare") as caught:
        check_nodes(pool, [tmp_path], [recording])
    assert "it does not see the recording" in str(caught.value)


def test_a_node_on_which_the_check_fails_is_named(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_nodes, "NodeCheck", lambda *seen: Fail())
    with pytest.raises(UserError, match="myxtts cannot be run there .*no space left"):
        check_nodes(pool, [tmp_path], [])
