"""Several steps in a call, and the cache on the device: the bits of single steps from the host."""

import signal
from itertools import product
from pathlib import Path

import pytest
import tensorflow as tf

from myxtts.checkpoints import seeds_of
from myxtts.config.io import save_config
from myxtts.data.batches import resident
from myxtts.errors import UserError
from myxtts.training.loop import TrainingLoop
from myxtts.training.run import TrainingRun
from myxtts.training.steps import CompiledStep
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.resident_cache import copy_at_once
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
    plan = {**PLAN, **ONE_SHAPE, "steps_per_call": 4, "cache_on_device": "on"}
    settings = run_config(shared_corpus, folder, **plan)
    save_config(settings, config)
    stopped = train("--config", config, signal_number=signal.SIGTERM, after=8)
    assert stopped.returncode == 130, stopped.stderr
    assert step_of(folder) == 20  # at the end of the eighth call
    killed = train("--config", config, signal_number=signal.SIGKILL, after=0.1)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "step 20, epoch" in killed.stderr
    assert "GB were copied to CPU:0" in stopped.stderr + killed.stderr
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


# The cache on the device


class Killed(BaseException):
    """What no hook hears of, as it hears of no SIGKILL."""


@pytest.fixture
def copied_at_once(monkeypatch):
    copy_at_once(monkeypatch)


@pytest.mark.timeout(900)  # eight runs that compile
def test_every_reader_residence_and_number_of_steps_goes_on_to_the_bit(
    shared_corpus, undisturbed, tmp_path, monkeypatch, copied_at_once
):
    """One run in eight stretches, each read in another way and killed behind its checkpoint."""
    take = TrainingLoop._step
    monkeypatch.setattr(XTTSTrainer, "_plan_facts", lambda trainer: {"plan": "the same"})
    gathered = []
    gather = resident.ResidentEpoch.gather
    monkeypatch.setattr(
        resident.ResidentEpoch, "gather", lambda *a, **k: gathered.append(a) or gather(*a, **k)
    )
    plan = {**PLAN, **ONE_SHAPE, "save_interval": 5, "prefetch_buffer_size": 1, "steps_per_call": 4}
    ways = list(product([True, False], ["on", "off"], [4, 1]))
    for part, (native, residence, steps) in enumerate(ways, 1):
        until = STEPS // len(ways) * part

        def step(loop, group, until=until):
            if loop.done > until:
                raise Killed
            take(loop, group)

        settings = {"use_tf_native_loading": native, "cache_on_device": residence}
        trainer = XTTSTrainer(run_config(shared_corpus, tmp_path / "run", **plan, **settings))
        gathered.clear()
        with monkeypatch.context() as patch:
            patch.setattr(TrainingRun, "steps_per_call", steps)
            patch.setattr(TrainingLoop, "_step", step)
            if part < len(ways):
                patch.setattr(TrainingLoop, "_finish", lambda loop, reason: None)
                with pytest.raises(Killed):
                    trainer.train()
            else:
                assert trainer.train() == "finished"
        assert bool(gathered) == (residence == "on"), (native, residence, steps)
        # A step that is validated is saved as well.
        assert until <= step_of(tmp_path / "run") <= until + 4
    assert_same_run(tmp_path / "run", undisturbed)


def test_a_step_that_runs_out_of_memory_frees_the_device_and_is_taken_again(
    shared_corpus, undisturbed, tmp_path, monkeypatch, copied_at_once, caplog
):
    take, failed = CompiledStep._take, []
    plan = {**PLAN, **ONE_SHAPE, "prefetch_buffer_size": 1, "cache_on_device": "on"}
    trainer = XTTSTrainer(run_config(shared_corpus, tmp_path / "run", **plan, steps_per_call=4))

    def short(step, given, number):
        if number == 15 and not failed:
            failed.append(number)
            for seed in seeds_of(trainer.model):  # it had begun to draw
                seed.assign(seed + tf.constant([0, 1], seed.dtype))
            raise tf.errors.ResourceExhaustedError(None, None, "no room")
        return take(step, given, number)

    monkeypatch.setattr(CompiledStep, "_take", short)
    monkeypatch.setattr(TrainingRun, "steps_per_call", 1)
    assert trainer.train() == "finished" and failed
    assert "step 15 ran out of memory: the copy of the cache on CPU:0 is freed" in caplog.text
    assert_same_run(tmp_path / "run", undisturbed)
