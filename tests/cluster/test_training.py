"""Training by real processes: two workers train what one does, and what they lose comes back."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from myxtts.checkpoints import saved_states
from myxtts.cluster.rendezvous import free_ports
from myxtts.config.io import save_config
from myxtts.monitoring.history import read_lines
from myxtts.training.loop import TrainingLoop
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.gangs import ROOT, Fault, batches_taken, steps_taken, train_gang
from tests.helpers.runs import assert_equal_states, final_state, run_config

pytestmark = pytest.mark.timeout(1800)  # a dozen processes that import TensorFlow

# 15 utterances, 2 of them held out: four batches an epoch, the last of which has one utterance, so
# that one of two workers has nothing to do.
CORPUS = {"count": 15, "speakers": 2, "seconds": (0.4, 0.8)}
STEPS, SAVED_EVERY = 12, 3
PLAN = {
    "max_steps": STEPS,
    "save_interval": SAVED_EVERY,
    "validation_interval": 100,
    "micro_batches": 4,
    "adaptive_loss_weights": True,
}


@dataclass(frozen=True)
class Ended:
    """A run, and how each of its processes ended."""

    folder: Path
    batches: dict[int, tuple[int, int, list[int]]]
    ends: tuple[subprocess.CompletedProcess, ...] = ()


@pytest.fixture(scope="module")
def alone(shared_corpus, tmp_path_factory) -> Ended:
    """The run of one worker, in this process."""
    folder, taken = tmp_path_factory.mktemp("alone") / "run", {}
    take_step = TrainingLoop._step

    def step(self, group):
        take_step(self, group)
        (number,), (batch,) = group.numbers, group.batches
        taken[self.done] = group.epoch, number, batch["index"].numpy().tolist()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "_step", step)
        assert XTTSTrainer(run_config(shared_corpus, folder, **PLAN)).train() == "finished"
    return Ended(folder, taken)


@pytest.fixture(scope="module")
def pair(shared_corpus, alone, tmp_path_factory) -> Ended:
    """The run of two workers that `myxtts train --devices 2` starts."""
    base = tmp_path_factory.mktemp("pair")
    words = ["train", "--config", configured(shared_corpus, base), "--devices", "2"]
    ended = subprocess.run(
        [sys.executable, "-m", "myxtts.cli.main", *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    return Ended(base / "run", {}, (ended,))


@pytest.fixture(scope="module")
def disturbed(shared_corpus, alone, tmp_path_factory) -> Ended:
    """A run whose launcher gets SIGTERM, and which is resumed and then loses each worker once."""
    base = tmp_path_factory.mktemp("disturbed")
    run, log = base / "run", base / "log"
    words = ("--config", configured(shared_corpus, base))
    asked = [Fault(0, 3, signal.SIGTERM, launcher=True)]
    lost = [Fault(1, 7, signal.SIGKILL), Fault(0, 11, signal.SIGKILL)]
    ends = tuple(train_gang(2, run, log, *words, faults=faults) for faults in (asked, lost))
    return Ended(run, batches_taken(log, 2), ends)


def configured(corpus: Path, base: Path) -> Path:
    path = base / "config.yaml"
    save_config(run_config(corpus, base / "run", **PLAN), path)
    return path


def environment() -> dict[str, str]:
    kept = {name: x for name, x in os.environ.items() if not name.startswith("MYXTTS_")}
    return kept | {"PYTHONPATH": str(ROOT)}


def history(folder: Path) -> list[dict[str, float]]:
    """What is logged of every step, but the times."""
    lines = [line.values for line in read_lines(folder / "history.jsonl")]
    return [
        {name: x for name, x in line.items() if not name.endswith("_ms")}
        for line in lines
        if "loss" in line
    ]


def assert_same_run(found: Ended, expected: Ended) -> None:
    """The same losses within 1e-4 and the same weights within 1e-3."""
    metrics, others = history(found.folder), history(expected.folder)
    assert [one["step"] for one in metrics] == list(range(1, STEPS + 1))
    for one, other in zip(metrics, others, strict=True):
        for name, value in other.items():
            assert one[name] == pytest.approx(value, rel=1e-4, abs=1e-6), (one["step"], name)
    state, expected_state = final_state(found.folder), final_state(expected.folder)
    assert state.keys() == expected_state.keys()
    for name, value in expected_state.items():
        np.testing.assert_allclose(state[name], value, rtol=1e-3, atol=1e-3, err_msg=name)


def test_two_workers_train_what_one_does(alone, pair):
    assert_same_run(pair, alone)


def test_they_take_the_same_batches_in_the_same_order(alone, disturbed):
    assert len(alone.batches) == STEPS
    assert disturbed.batches == alone.batches
    for epoch in range(3):
        taken = [i for at, _, index in disturbed.batches.values() if at == epoch for i in index]
        assert sorted(taken) == list(range(13))


def test_what_the_launcher_is_asked_to_end_is_saved(disturbed):
    stopped = disturbed.ends[0]
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped by SIGTERM: saved in" in stopped.stdout
    assert "Traceback" not in stopped.stderr


def test_a_worker_that_is_killed_is_named_and_all_start_again(disturbed):
    resumed = disturbed.ends[1]
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stderr.count("a worker died (exit code -9): all start again") == 2
    assert "all start again after step 6" in resumed.stderr
    assert "all start again after step 9" in resumed.stderr
    assert "Traceback" not in resumed.stderr
    for rank, name in ((1, "worker 0 (127.0.0.1:"), (0, "worker 1 (127.0.0.1:")):
        (line,) = [x for x in resumed.stderr.splitlines() if f"error: {name}" in x]
        assert "lost the others" in line, rank


def test_not_more_than_a_save_interval_is_computed_once_more(disturbed):
    log = disturbed.folder.parent / "log"
    steps = [one.step for one in steps_taken(log, 0)]
    assert STEPS < len(steps) <= STEPS + 2 * SAVED_EVERY
    assert sorted(set(steps)) == list(range(1, STEPS + 1))


def test_a_run_that_lost_its_workers_ends_with_the_bits_of_one_that_did_not(disturbed, pair):
    assert_equal_states(final_state(disturbed.folder), final_state(pair.folder))
    assert history(disturbed.folder) == history(pair.folder)


def test_exact_sums_have_the_same_bits_by_any_number_of_workers(
    shared_corpus, tmp_path, monkeypatch
):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")  # some kernels round by their threads
    states, losses = [], []
    for count in (1, 4):
        base = tmp_path / f"of-{count}"
        plan = {**PLAN, "max_steps": 4, "exact_sums": True}
        path = base / "config.yaml"
        base.mkdir()
        save_config(run_config(shared_corpus, base / "run", **plan), path)
        ended = train_gang(count, base / "run", base / "log", "--config", path)
        assert ended.returncode == 0, ended.stderr
        states.append(final_state(base / "run"))
        losses.append([one["loss"] for one in history(base / "run")])
    assert losses[0] == losses[1]
    assert_equal_states(*states)


def test_only_the_chief_writes(pair, alone):
    names = [{path.name for path in run.folder.iterdir()} for run in (pair, alone)]
    assert names[0] == names[1] | {"workers"}
    states = [[x.name for x in saved_states(run.folder / "checkpoints")] for run in (pair, alone)]
    assert states[0] == states[1]


def test_workers_with_other_settings_are_rejected_by_name(shared_corpus, alone, tmp_path):
    ports = free_ports(2)
    addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
    workers = []
    for rank, rate in enumerate((1e-3, 2e-3)):
        config = tmp_path / f"{rank}.yaml"
        settings = run_config(shared_corpus, tmp_path / "run", **PLAN, learning_rate=rate)
        save_config(settings, config)
        words = ["train", "--config", config, "--workers", addresses, "--rank", rank]
        command = [sys.executable, "-m", "myxtts.cli.main", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        workers.append(subprocess.Popen(command, env=environment(), **pipes))
    try:
        errors = [worker.communicate(timeout=600)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [2, 2], errors
    expected = (
        "error: the workers do not train the same:\n"
        f"  worker 1 (127.0.0.1:{ports[1]}) differs from worker 0 (127.0.0.1:{ports[0]}) in: "
        "settings of training\n"
    )
    assert all(expected in error and "Traceback" not in error for error in errors), errors
    assert {path.name for path in (tmp_path / "run").iterdir()} <= {"workers", ".lock"}
