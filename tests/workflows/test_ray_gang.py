"""Workers on a Ray cluster: where they are placed, what becomes of them, and a run of two."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from myxtts.cluster.ray_connection import connected
from myxtts.config.io import save_config
from myxtts.errors import UserError
from myxtts.training.trainer import XTTSTrainer
from myxtts.workflows import gang as gang_module
from myxtts.workflows import ray_gang
from myxtts.workflows.gang import supervise, wait_for
from myxtts.workflows.ray_gang import RayGang, train_on_cluster
from myxtts.workflows.ray_node import NodeWorker
from tests.helpers.ray_cluster import add_node
from tests.helpers.runs import ROOT, run_config
from tests.workflows.test_ray_node import EXITS_WITH_7_AT_SIGINT

CORPUS = {"count": 12}
SLEEP = ("-c", "import time; time.sleep(120)")


@pytest.fixture
def ray(ray_cluster):
    with connected(ray_cluster.address) as ray:
        yield ray


@pytest.fixture
def make_gang(ray, ray_cluster, tmp_path):
    """Makes gangs, and gives their places back."""
    made = []

    def make(count: int) -> RayGang:
        made.append(RayGang(ray, ray_cluster.address, count, tmp_path / "run"))
        return made[-1]

    yield make
    for gang in made:
        gang.leave()


def wait_until(is_so, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# What is asked for


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ("", "--cluster needs the number of workers"),
        ("a:1,b:2", "with --cluster, --workers is a number from 1 on, not a:1,b:2"),
        ("0", "with --cluster, --workers is a number from 1 on, not 0"),
        ("-1", "with --cluster, --workers is a number from 1 on, not -1"),
    ],
)
def test_the_workers_of_a_cluster_are_a_number(workers, message, tmp_path):
    with pytest.raises(UserError, match=message):
        train_on_cluster("auto", workers, [], tmp_path)


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[cluster\]'"):
        train_on_cluster("auto", "2", [], tmp_path)


# Places


def test_every_worker_learns_who_it_is_and_the_chief_is_heard(make_gang, capfd, monkeypatch):
    monkeypatch.setenv("MYXTTS_SAYS", "told")
    program = """
import json, os
told = json.loads(os.environ["TF_CONFIG"])
print(told["task"]["index"], len(set(told["cluster"]["worker"])), os.environ["MYXTTS_SAYS"])
"""
    assert wait_for(make_gang(2).start(("-c", program))) == 0
    assert capfd.readouterr().out == "0 2 told\n"


def test_the_last_words_of_another_worker_that_fails_are_shown(make_gang, caplog):
    program = """
import json, os, sys, time
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    sys.exit("all is lost")
"""
    assert wait_for(make_gang(2).start(("-c", program))) == 1
    (record,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert record.getMessage().startswith("worker 1 (")
    assert record.getMessage().endswith(" ended with exit code 1:\n  all is lost")


def test_a_signal_is_passed_on(make_gang, capfd):
    (worker,) = make_gang(1).start(("-c", EXITS_WITH_7_AT_SIGINT))
    wait_until(lambda: worker.poll() is None and capfd.readouterr().out)
    worker.send_signal(signal.SIGINT)
    wait_until(lambda: worker.poll() is not None)
    assert worker.poll() == 7


def test_places_are_given_back(make_gang, ray):
    gang = make_gang(2)
    workers = gang.start(SLEEP)
    wait_until(lambda: not ray.available_resources().get("CPU"))
    for worker in workers:
        worker.kill()
    assert [worker.poll() for worker in workers] == [-signal.SIGKILL] * 2
    gang.leave()
    wait_until(lambda: ray.available_resources().get("CPU") == 2)


def test_without_room_the_error_says_how_many_fit(make_gang, monkeypatch, caplog):
    monkeypatch.setattr(ray_gang, "_PROMPT_SECONDS", 0.0)
    monkeypatch.setattr(ray_gang, "PLACE_SECONDS", 0.0)
    with pytest.raises(UserError, match="has room for 2 of 3 workers, each of which needs 1 CPU"):
        make_gang(3).start(SLEEP)
    assert "has room for 2 of 3 workers: waiting up to 0 s for more" in caplog.text


def test_nodes_that_cannot_train_are_named(make_gang, monkeypatch):
    monkeypatch.setattr("myxtts.__version__", "99.0")
    with pytest.raises(UserError, match="these nodes of the cluster cannot train:") as caught:
        make_gang(2).start(SLEEP)
    assert str(caught.value).count(", not 99.0\n") == 1  # one node, two workers


def test_a_node_that_cannot_run_an_actor_is_an_error(make_gang, monkeypatch, caplog):
    class Broken(NodeWorker):
        def __init__(self):
            raise RuntimeError("no such package")

    monkeypatch.setattr(ray_gang, "NodeWorker", Broken)
    with pytest.raises(UserError, match=r"cannot run 1 workers \(.*no such package\)"):
        make_gang(1).start(SLEEP)
    assert caplog.text.count("a node of the cluster cannot run a worker") == 3


def test_a_node_that_dies_takes_a_worker_along_and_all_are_placed_on_the_rest(
    make_gang, ray_cluster, ray, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(gang_module, "_GRACE_SECONDS", 0.0)
    doomed = add_node(ray_cluster, 1)
    wait_until(lambda: ray.cluster_resources()["CPU"] == 3)
    gang, removed, starts = make_gang(2), [], []

    def start():
        program = "pass" if removed else SLEEP[1]
        workers = gang.start(("-c", program))
        starts.append(workers)
        if not removed:
            ray_cluster.remove_node(doomed, allow_graceful=False)
            removed.append(doomed)
        return workers

    try:
        # SPREAD puts one of the two workers on each node.
        assert supervise(start, tmp_path / "run") == 0
    finally:
        if not removed:
            ray_cluster.remove_node(doomed)
    assert len(starts) == 2
    assert "is gone, or its node" in caplog.text and "all start again after step 0" in caplog.text


def test_ctrl_c_while_waiting_for_room_ends_at_once(ray_cluster, corpus, tmp_path):
    flags = ("--data", corpus, "--checkpoint-dir", tmp_path / "run")
    words = ["train", *flags, "--cluster", ray_cluster.address, "--workers", "9"]
    process = subprocess.Popen(
        [sys.executable, "-m", "myxtts.cli.main", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert "has room for 2 of 9 workers: waiting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "interrupted\n"
    assert process.returncode == 130


# A run


def test_a_run_of_two_workers_survives_a_kill_and_is_that_of_one(
    ray_cluster, corpus, tmp_path, capfd, caplog
):
    settings = {"max_steps": 6, "micro_batches": 2, "save_interval": 2}
    alone = run_config(corpus, tmp_path / "alone", **settings)
    trainer = XTTSTrainer(alone)
    trainer.train(*trainer.prepare_datasets())
    folder = tmp_path / "shared"
    save_config(run_config(corpus, folder, **settings), tmp_path / "run.yaml")
    killer = threading.Thread(target=kill_after_checkpoint, args=(folder, 1))
    killer.start()
    words = ["train", "--config", str(tmp_path / "run.yaml"), "--cluster", "x", "--workers", "2"]
    assert train_on_cluster(ray_cluster.address, "2", words, folder) == 0
    killer.join()
    assert "a worker died (exit code -9): all start again after step" in caplog.text
    out, err = capfd.readouterr()
    assert f"the voice is in {folder}" in out and "resuming from" in err
    assert losses(folder) == pytest.approx(losses(tmp_path / "alone"), abs=1e-4)


def kill_after_checkpoint(folder: Path, rank: int) -> None:
    wait_until((folder / "checkpoints" / "step-00000002").exists, seconds=240)
    sign = json.loads((folder / "workers" / f"{rank}.json").read_text())
    os.kill(sign["process"], signal.SIGKILL)


def losses(folder: Path) -> list[float]:
    rows = map(json.loads, (folder / "history.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if "loss" in row]
