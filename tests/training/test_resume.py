"""Going on is exact: a run that was stopped and killed ends with the bits of one that was not."""

import json
import random
import signal
from pathlib import Path

import pytest

from myxtts.checkpoints import saved_states
from myxtts.config.io import save_config
from myxtts.monitoring.history import read_lines
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import assert_equal_states, final_state, run_config, train

# 15 utterances, 3 of them held out: three batches an epoch, so that 40 steps take 14 epochs.
CORPUS = {"count": 15, "speakers": 2, "seconds": (0.4, 0.8)}
STEPS = 40
PLAN = {"max_steps": STEPS, "save_interval": 7, "validation_interval": 13, "keep_checkpoints": 2}


@pytest.fixture(scope="module")
def undisturbed(shared_corpus, tmp_path_factory) -> Path:
    """A run of forty steps in one go."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert XTTSTrainer(run_config(shared_corpus, folder, **PLAN)).train() == "finished"
    return folder


def step_of(folder: Path) -> int:
    states = saved_states(folder / "checkpoints")
    return int(states[-1].name.removeprefix("step-")) if states else 0


def history(folder: Path) -> list[dict]:
    """All of a run's history but the times, and the validations that an interruption brings."""
    return [
        {name: value for name, value in line.values.items() if not name.endswith("_ms")}
        for line in read_lines(folder / "history.jsonl")
        if "loss" in line.values
    ]


@pytest.mark.timeout(900)  # four processes that import TensorFlow
def test_a_run_that_is_stopped_and_killed_ends_with_the_same_bits(
    shared_corpus, undisturbed, tmp_path
):
    folder = tmp_path / "run"
    config = tmp_path / "config.yaml"
    save_config(run_config(shared_corpus, folder, **PLAN), config)
    chance = random.Random(5)

    stopped = train("--config", config, signal_number=signal.SIGTERM, after=17)
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped by SIGTERM" in stopped.stdout and "Traceback" not in stopped.stderr
    assert step_of(folder) == 17

    for _ in range(2):
        before = step_of(folder)
        killed = train(
            "--config", config, signal_number=signal.SIGKILL, after=chance.uniform(0.0, 0.3)
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert f"step {before}, epoch" in killed.stderr  # it went on from the last checkpoint
        assert before <= step_of(folder) < STEPS

    trainer = XTTSTrainer(run_config(shared_corpus, folder, **PLAN), resume=True)
    assert trainer.train() == "finished"
    assert step_of(folder) == STEPS
    # Weights, averages, the optimizer's moments and counters, and the seeds of dropout.
    state = final_state(folder)
    for kind in ("model/", "optimizer/", "seeds/"):
        assert any(name.startswith(kind) for name in state)
    assert any("average" in name for name in state)
    assert_equal_states(state, final_state(undisturbed))
    assert history(folder) == history(undisturbed)
    voices = [run / "voice" / "model.safetensors" for run in (folder, undisturbed)]
    assert voices[0].read_bytes() == voices[1].read_bytes()


def test_a_finished_run_has_nothing_left_to_do(shared_corpus, undisturbed):
    before = final_state(undisturbed)
    assert XTTSTrainer(run_config(shared_corpus, undisturbed, **PLAN)).train() == "finished"
    assert_equal_states(final_state(undisturbed), before)


def test_what_a_run_leaves(undisturbed):
    names = {path.name for path in undisturbed.iterdir()}
    assert {"checkpoints", "config.yaml", "history.jsonl", "voice", "voice-best"} <= names
    # The last two, and the best, which a validation has found.
    states = [path.name for path in saved_states(undisturbed / "checkpoints")]
    assert states[-2:] == ["step-00000039", "step-00000040"]
    lines = [json.loads(line) for line in (undisturbed / "history.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, STEPS + 1))
    scores = {line["step"]: line["val/loss"] for line in lines if "val/loss" in line}
    assert list(scores) == [13, 26, 39, 40]
    best = json.loads((undisturbed / "checkpoints" / "best.json").read_text())
    assert best["step"] == min(scores, key=scores.get)
    assert best["value"] == pytest.approx(scores[best["step"]])
    assert f"step-{best['step']:08d}" in states
