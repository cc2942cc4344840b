"""Adversarial training: it begins late, resumes to the bit, and parts add up to the batch."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from myxtts.checkpoints import load_state, saved_states
from myxtts.monitoring.history import read_lines
from myxtts.training.loop import TrainingLoop
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import assert_equal_states, final_state, run_config

CORPUS = {"count": 12, "speakers": 2, "seconds": (0.4, 0.8)}
STEPS, START = 10, 0.4
PLAN = {
    "max_steps": STEPS,
    "save_interval": 4,
    "keep_checkpoints": 9,
    "validation_interval": 5,
    "adversarial_loss_weight": 0.1,
    "adversarial_start": START,
}
TERMS = ("adversarial_loss", "feature_matching_loss", "discriminator_loss")


@pytest.fixture(scope="module")
def run(shared_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "run"
    assert XTTSTrainer(run_config(shared_corpus, folder, **PLAN)).train() == "finished"
    return folder


def losses_of(folder: Path) -> dict[int, dict[str, float]]:
    lines = [line.values for line in read_lines(folder / "history.jsonl")]
    return {line["step"]: line for line in lines if "loss" in line}


def test_the_discriminator_begins_after_its_share_of_the_steps(run):
    for step, line in losses_of(run).items():
        assert all((line[name] > 0) == (step > START * STEPS) for name in TERMS)
    first, last = (load_state(path).arrays for path in saved_states(run / "checkpoints")[::2])
    names = [name for name in first if name.startswith("adversary/model/")]
    assert len(names) == 10  # kernels and biases of five convolutions
    assert all(not np.array_equal(first[name], last[name]) for name in names)


def test_it_resumes_to_the_bit(shared_corpus, run, tmp_path, monkeypatch):
    take = TrainingLoop._step

    def step(self, *args):
        take(self, *args)
        if self.done == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    config = run_config(shared_corpus, tmp_path / "run", **PLAN)
    monkeypatch.setattr(TrainingLoop, "_step", step)
    assert XTTSTrainer(config).train() == "SIGTERM"
    monkeypatch.undo()
    assert XTTSTrainer(config).train() == "finished"
    assert_equal_states(final_state(tmp_path / "run"), final_state(run))
