"""`myxtts prepare --cluster`: all of it on Ray, with one report."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from myxtts.data.features import prepare as preparing
from myxtts.data.store.ray_workers import RayWorkers
from tests.cli.commands.test_prepare import damage_recordings, files
from tests.cli.commands.test_prepare_workers import PROGRAM, SHARD
from tests.helpers import stand_in_encoder
from tests.helpers.make_corpus import make_corpus
from tests.helpers.ray_cluster import ROOT, add_node
from tests.helpers.tiny_cache import contents, locate


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: SHARD)


def test_a_cluster_makes_the_bytes_of_a_plain_preparation(myxtts, corpus, ray_cluster, monkeypatch):
    assert myxtts("prepare", corpus)[0] == 0
    expected = files(corpus)
    shutil.rmtree(corpus / "cached_features")
    monkeypatch.setattr("myxtts.monitoring.progress.INTERVAL_SECONDS", 0.0)
    code, out, err = myxtts("prepare", corpus, "--cluster", ray_cluster.address)
    assert code == 0
    assert err.splitlines()[-1].startswith("preparing: 12 of 12 utterances, 0 s left, ")
    assert out.startswith(f"Ray: 2 cores ({ray_cluster.address})\n")
    assert "features  12 made, 0 reused, 0 dropped\ntokens    12 made, 0 reused, 0 dropped" in out
    assert files(corpus) == expected
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    code, out, _ = myxtts("prepare", corpus, "--cluster", "auto", "--cache-dir", "elsewhere")
    assert code == 0 and "features  12 made" in out
    (other,) = Path("elsewhere").iterdir()
    assert contents(other) == expected


def test_what_cannot_be_prepared_is_named_once(myxtts, corpus, ray_cluster):
    damage_recordings(corpus)
    code, out, err = myxtts("prepare", corpus, "--cluster", ray_cluster.address)
    assert code == 2
    assert "features  9 made, 0 reused, 2 dropped" in out and "metadata  1 dropped" in out
    assert "error: 3 utterances could not be prepared:\n" in err


def test_voices_are_embedded_by_whoever_asks(myxtts, corpus, tmp_path, monkeypatch, ray_cluster):
    stand_in_encoder.install(monkeypatch)
    weights = stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())
    flags = ("--speaker-encoder-path", weights, "--cluster", ray_cluster.address)
    code, out, _ = myxtts("prepare", corpus, *flags)
    assert code == 0 and out.endswith("voices    12 made, 0 reused, 0 dropped\n")


def test_an_address_without_a_cluster_is_a_message(myxtts, corpus):
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    code, out, err = myxtts("prepare", corpus, "--cluster", "127.0.0.1:1")
    assert (code, out) == (2, "")
    assert err.startswith("error: there is no Ray cluster at 127.0.0.1:1 ")
    assert not (corpus / "cached_features").exists()


def test_a_node_that_cannot_work_is_named_before_anything_is_made(
    myxtts, corpus, ray_cluster, monkeypatch
):
    monkeypatch.setattr("myxtts.__version__", "99.0")
    code, _, err = myxtts("prepare", corpus, "--cluster", ray_cluster.address)
    assert code == 2
    assert "error: these nodes of the cluster cannot prepare this corpus:" in err
    assert files(corpus) == {}


@dataclass(frozen=True)
class Slow:
    """A shard that takes a while, so that a node can be removed meanwhile."""

    task: object

    def __call__(self):
        time.sleep(0.3)
        return self.task()

    def effort(self) -> float:
        return self.task.effort()


class SlowPool:
    def __init__(self, pool: RayWorkers):
        self.pool = pool

    def run(self, tasks):
        return self.pool.run([Slow(task) for task in tasks])


def test_a_node_that_is_removed_midway_costs_nothing_but_time(tmp_path, ray_cluster):
    corpus = make_corpus(tmp_path / "corpus", 48, seconds=(0.4, 0.6))
    plain, shared = (locate(corpus, tmp_path / name) for name in ("plain", "shared"))
    preparing.prepare(plain.utterances, plain.location, workers=1)
    doomed = [add_node(ray_cluster, 2)]

    def remove_a_node(done: int, total: int, seconds: float = 0.0) -> None:
        if doomed:
            ray_cluster.remove_node(doomed.pop(), allow_graceful=False)

    try:
        with RayWorkers(ray_cluster.address) as pool:
            assert pool.cores == 4
            report = preparing.prepare(
                shared.utterances,
                shared.location,
                progress=remove_a_node,
                share=preparing.Share(),
                pool=SlowPool(pool),
            )
    finally:
        for node in doomed:
            ray_cluster.remove_node(node)
    assert not doomed and report.made == 96
    # Nobody deletes what the killed node was writing while it might still be at it.
    preparing.prepare(shared.utterances, shared.location, workers=1)
    assert contents(shared.folder) == contents(plain.folder)


# A Ray of its own


def test_auto_starts_a_ray_and_ctrl_c_ends_it_and_leaves_whole_shards(program, tmp_path, myxtts):
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    corpus = make_corpus(tmp_path / "corpus", 1, seconds=(3.0, 3.1))
    names = [f"copy-{number:04d}" for number in range(240)]
    for name in names:
        os.link(corpus / "wavs" / "utt-0000.wav", corpus / "wavs" / f"{name}.wav")
    table = "".join(f"{name}|a few words|a few words\n" for name in names)
    (corpus / "metadata.csv").write_text(table)
    process = program("-c", PROGRAM, "prepare", corpus, "--cluster", "auto", start_new_session=True)
    try:
        wait_for_a_shard(corpus, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    stored = SHARD * len(list(corpus.glob("cached_features/features-*/*.index")))
    assert process.returncode == 130
    said = f"interrupted: {stored} of 240 are stored; run the same command to resume"
    assert err.splitlines()[-1] == said  # after what Ray may log of its own end
    code, out, _ = myxtts("prepare", corpus)
    assert code == 0
    assert f"features  {240 - stored} made, {stored} reused, 0 dropped" in out


def wait_for_a_shard(corpus: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not list(corpus.glob("cached_features/features-*/*.index")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)


def test_the_benchmark_finds_the_same_bytes(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    few = ("--kills", 3, "--utterances", 40, "--hours", 0.02, "--rounds", 1, "--folder", tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "prepare_cluster.py", *map(str, few)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("names and bytes identical to the undisturbed cache") >= 4
    assert "5 workers, 1 kills so far" in done.stdout and "Ray, a node of two" in done.stdout
    assert "prepare, wall time of 1 worker over 2 workers" in done.stdout
