"""Several steps in a call: a run has the bits of single steps, and of one that was killed."""

import signal
from pathlib import Path

import pytest

from myxtts.config.io import save_config
from myxtts.errors import UserError
from myxtts.training.loop import TrainingLoop
from myxtts.training.run import TrainingRun
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import assert_equal_states, final_state, run_config, train
from tests.training.test_resume import history, step_of

# 13 are trained on: seven batches an epoch.
CORPUS = {"count": 15, "speakers": 2, "seconds": (0.4, 0.8)}
STEPS = 40
PLAN = {"max_steps": STEPS, "save_interval": 7, "validation_interval": 13, "keep_checkpoints": 2}
PLAN |= {"batch_size": 2, "dropout": 0.1}
ONE_SHAPE = {"pad_to_multiple": 96}


@pytest.fixture(scope="module")
def undisturbed(shared_corpus, tmp_path_factory) -> Path:
    """A run of forty steps, four to a call."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    config = run_config(shared_corpus, folder, **PLAN, **ONE_SHAPE, steps_per_call=4)
    calls, take = [], TrainingLoop._step

    def step(loop, group):
        calls.append(len(group))
        take(loop, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "_step", step)
        assert XTTSTrainer(config).train() == "finished"
    # The last of seven batches is smaller; after 13, 26 and 39 steps a validation is due.
    assert calls[:8] == [4, 2, 1, 4, 2, 1, 4, 2] and max(calls) == 4 and sum(calls) == STEPS
    assert [sum(calls[: at + 1]) for at in range(len(calls))].count(26) == 1
    return folder


def assert_same_run(folder: Path, expected: Path) -> None:
    assert_equal_states(final_state(folder), final_state(expected))
    assert history(folder) == history(expected)
    voices = [run / "voice" / "model.safetensors" for run in (folder, expected)]
    assert voices[0].read_bytes() == voices[1].read_bytes()


def test_it_has_the_bits_of_a_run_of_single_steps(shared_corpus, undisturbed, tmp_path):
    config = run_config(shared_corpus, tmp_path / "run", **PLAN, **ONE_SHAPE)
    assert XTTSTrainer(config).train() == "finished"
    assert_same_run(tmp_path / "run", undisturbed)


@pytest.mark.timeout(900)  # processes that import TensorFlow
def test_stopped_and_killed_within_calls_it_ends_with_the_same_bits(
    shared_corpus, undisturbed, tmp_path
):
    folder, config = tmp_path / "run", tmp_path / "config.yaml"
    settings = run_config(shared_corpus, folder, **PLAN, **ONE_SHAPE, steps_per_call=4)
    save_config(settings, config)
    stopped = train("--config", config, signal_number=signal.SIGTERM, after=8)
    assert stopped.returncode == 130, stopped.stderr
    assert step_of(folder) == 20  # at the end of the eighth call
    killed = train("--config", config, signal_number=signal.SIGKILL, after=0.1)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "step 20, epoch" in killed.stderr
    assert XTTSTrainer(settings, resume=True).train() == "finished"
    assert step_of(folder) == STEPS
    assert_same_run(folder, undisturbed)


def test_batches_of_several_shapes_are_trained_on_in_the_planned_order(
    shared_corpus, tmp_path, monkeypatch
):
    plan = {**PLAN, "max_steps": 12, "pad_to_multiple": 16, "steps_per_call": 3}
    for name in ("run", "single"):
        config = run_config(shared_corpus, tmp_path / name, **plan)
        assert XTTSTrainer(config).train() == "finished"
        monkeypatch.setattr(TrainingRun, "steps_per_call", 1)  # and the same plan
    assert_same_run(tmp_path / "run", tmp_path / "single")


def test_another_number_is_another_order_and_starts_the_epoch_anew(shared_corpus, tmp_path, caplog):
    plan = {**PLAN, "enable_eager_debug": True, "steps_per_call": 2}
    assert XTTSTrainer(run_config(shared_corpus, tmp_path, **{**plan, "max_steps": 2})).train()
    config = run_config(shared_corpus, tmp_path, **{**plan, "max_steps": 3, "steps_per_call": 3})
    assert XTTSTrainer(config, resume=True).train() == "finished"
    assert "(plan changed): resuming with the first batch" in caplog.text


def test_batches_in_parts_are_refused(shared_corpus, tmp_path):
    config = run_config(shared_corpus, tmp_path, **PLAN, steps_per_call=4, micro_batches=2)
    with pytest.raises(UserError, match="--steps-per-call 4 needs batches that one device"):
        XTTSTrainer(config).train()
