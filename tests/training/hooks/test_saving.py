"""What is saved when, which is the best, and what is kept."""

import json
import os

import keras
import numpy as np
import pytest

from myxtts.checkpoints import best_state, load_state, saved_states
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.saving import Saved, SavingHook, Scores
from myxtts.training.loop import StepRecord


class Scored:
    """A validation whose scores are known beforehand."""

    def __init__(self, **losses: float):
        self.scored = {int(name[1:]): {"loss": value} for name, value in losses.items()}


@pytest.fixture
def make_hook(tmp_path):
    def make(validation=None, interval=2, keep=2, since=0) -> SavingHook:
        variable = keras.Variable(np.zeros(2, np.float32), name="weight")
        exported: list[str] = []
        saved = Saved(
            tmp_path,
            {"model/weight": variable},
            {"utterances": 3},
            lambda folder: exported.append(folder.name),
            interval,
            keep,
        )
        hook = SavingHook(saved, Scores(validation, since=since))
        hook.exported = exported
        hook.variable = variable
        return hook

    return make


def run(hook: SavingHook, *steps: int, start: int = 0) -> None:
    """Steps of two batches an epoch, after each of which the weight is the step."""
    hook.start(start)
    for step in steps:
        hook.variable.assign([step, step])
        epoch, number = divmod(step - 1, 2)
        hook.after_step(StepRecord(step, epoch, number, {}, np.array([0]), StepTimes()))


def kept(hook: SavingHook) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in saved_states(hook.states)]


def test_every_interval_is_saved_with_its_place_in_the_plan(make_hook):
    hook = make_hook()
    run(hook, 1, 2, 3, 4, 5)
    assert kept(hook) == [2, 4]
    state = load_state(hook.last)
    known = {"scores": None, "has_spoken": None, "best": None}
    assert state.step == 4
    assert state.facts == {"utterances": 3, "epoch": 1, "number": 2, "known": known}
    np.testing.assert_array_equal(state.arrays["model/weight"], [4, 4])
    assert hook.exported == ["voice", "voice"]


def test_a_loss_from_before_the_objective_changed_is_not_the_best(make_hook):
    hook = make_hook(Scored(s2=1.0, s4=3.0, s6=2.0, s8=2.5), since=3)
    run(hook, *range(1, 9))
    best = best_state(hook.states)
    assert (best.step, best.value) == (6, 2.0)
    # A run that resumes decides the same, whichever of the two it finds first.
    later = make_hook(Scored(), since=3)
    run(later, 9, start=8)
    assert best_state(later.states).step == 6


def test_only_the_last_few_are_kept_beside_the_best(make_hook):
    hook = make_hook(Scored(s2=1.0, s4=3.0, s6=2.0))
    run(hook, *range(1, 9))
    assert kept(hook) == [2, 6, 8]
    best = best_state(hook.states)
    assert (best.step, best.value) == (2, 1.0)


def test_the_best_is_really_written_at_any_step_and_as_a_voice(make_hook):
    """Once it was logged and never written."""
    hook = make_hook(Scored(s1=2.0, s3=1.5), interval=100)
    run(hook, 1, 2, 3, 4)
    assert best_state(hook.states).step == 3
    assert json.loads((hook.states / "best.json").read_text())["value"] == 1.5
    np.testing.assert_array_equal(
        load_state(hook.states / "step-00000003").arrays["model/weight"], 3
    )
    assert hook.exported == ["voice", "voice-best"] * 2


@pytest.mark.parametrize("reason", ["finished", "SIGTERM"])
def test_the_end_is_saved(make_hook, reason):
    hook = make_hook(interval=100)
    run(hook, 1, 2, 3)
    hook.finish(3, reason)
    assert kept(hook) == [3]
    hook.finish(3, reason)
    assert hook.exported == ["voice"]  # it was there already


def test_a_failure_saves_nothing(make_hook):
    hook = make_hook(interval=100)
    run(hook, 1, 2, 3)
    hook.finish(3, "failed")
    assert kept(hook) == []


def test_a_last_validation_that_is_the_best_is_marked_though_the_step_was_saved(make_hook):
    hook = make_hook(Scored())
    run(hook, 1, 2)
    hook.validation.scored[2] = {"loss": 1.0}
    hook.finish(2, "finished")
    assert best_state(hook.states).step == 2


def test_going_on_it_knows_the_last_checkpoint_and_the_best_before(make_hook):
    run(make_hook(Scored(s2=1.0)), 1, 2)
    hook = make_hook(Scored(s4=1.5))
    hook.start(2)
    assert hook.last.name == "step-00000002"
    run(hook, 3, 4, start=2)
    assert best_state(hook.states).step == 2
    hook.finish(4, "finished")
    assert kept(hook) == [2, 4]


def test_where_nothing_was_done_nothing_is_saved(make_hook):
    hook = make_hook()
    hook.start(0)
    hook.finish(0, "SIGTERM")
    assert hook.last is None and kept(hook) == []


def test_the_history_is_on_the_disk_before_the_checkpoint(make_hook, tmp_path, monkeypatch):
    events: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watch_sync(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def watch_rename(old, new):
        events.append(f"to {new}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", watch_sync)
    monkeypatch.setattr(os, "rename", watch_rename)
    history = tmp_path / "history.jsonl"
    history.write_text('{"step": 1}\n')
    hook = make_hook(interval=1)
    hook.start(0)
    hook.after_step(StepRecord(1, 0, 0, {}, np.arange(1), StepTimes()))
    state = f"to {tmp_path / 'checkpoints' / 'step-00000001'}"
    assert events.index(str(history)) < events.index(str(tmp_path)) < events.index(state)
