"""What Weights & Biases gets."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.training.hooks.tensorboard import Boards, TensorBoardHook
from myxtts.training.hooks.wandb import WandbHook
from tests.helpers.step_records import FIGURES, record


@pytest.fixture
def fake_wandb(monkeypatch):
    """A module that notes what it is told, and gives its runs the ids run-1, run-2, ..."""
    module, calls = ModuleType("wandb"), []

    def init(**arguments):
        calls.append(("init", arguments))
        number = sum(name == "init" for name, _ in calls)
        return SimpleNamespace(
            id=arguments["id"] or f"run-{number}",
            log=lambda values, step: calls.append(("log", (step, values))),
            finish=lambda: calls.append(("finish", None)),
        )

    module.init = init
    module.Image = lambda picture: ("image", picture.shape)
    module.Audio = lambda samples, rate: ("audio", samples.dtype.name, len(samples), rate)
    monkeypatch.setitem(sys.modules, "wandb", module)
    return calls


def test_wandb_gets_the_settings_the_scalars_and_the_end(tmp_path, fake_wandb):
    hook = WandbHook("voices", {"seed": 42}, tmp_path / "run", log_interval=2)
    hook.start(0)
    for step in (1, 2):
        hook.after_step(record(step, {"loss": step / 2}))
    hook.record_validation(2, {"loss": 0.75})
    hook.close()
    settings = {"project": "voices", "config": {"seed": 42}, "dir": str(tmp_path / "run")}
    assert fake_wandb == [
        ("init", {**settings, "id": None, "resume": "allow"}),
        ("log", (2, {"epoch": 0, "loss": 1.0, **FIGURES, "utilisation": 0.9})),
        ("log", (2, {"val/loss": 0.75})),
        ("finish", None),
    ]


def test_wandb_that_cannot_start_is_an_error_that_says_what_to_do(
    tmp_path, fake_wandb, monkeypatch
):
    class UsageError(Exception):
        pass

    def init(**arguments):
        raise UsageError("No API key configured")

    monkeypatch.setattr(sys.modules["wandb"], "Error", UsageError, raising=False)
    monkeypatch.setattr(sys.modules["wandb"], "init", init)
    with pytest.raises(UserError, match=r"\(No API key configured\): .*WANDB_MODE=offline"):
        WandbHook("voices", {}, tmp_path, 1).start(0)


def test_scores_that_come_late_name_their_step(tmp_path, fake_wandb):
    hook = WandbHook("voices", {}, tmp_path, log_interval=1)
    hook.start(0)
    hook.after_step(record(7, {}))
    hook.record_validation(3, {"wer": 0.5})
    assert fake_wandb[-1] == ("log", (7, {"val/wer": 0.5, "late/step": 3}))


def test_pictures_and_audio_go_to_every_board_that_is_active(tmp_path, fake_wandb):
    wandb, board = WandbHook("voices", {}, tmp_path, 1), TensorBoardHook(tmp_path / "events", 1)
    boards = Boards([board, wandb])
    assert not boards.is_active
    wandb.start(0)  # TensorBoard is not
    assert boards.is_active
    boards.images(3, "sample/mel", np.ones((5, 7)))
    boards.audio(3, "sample/audio", np.zeros(9), 22050)
    assert fake_wandb[1:] == [
        ("log", (3, {"sample/mel": ("image", (5, 7, 1))})),
        ("log", (3, {"sample/audio": ("audio", "float32", 9, 22050)})),
    ]


@pytest.mark.parametrize(("step", "known"), [(20, "run-1"), (0, None)])
def test_a_restart_goes_on_with_its_wandb_run_unless_it_starts_over(
    tmp_path, fake_wandb, step, known
):
    WandbHook("voices", {}, tmp_path, 1).start(0)
    WandbHook("voices", {}, tmp_path, 1).start(step)
    assert fake_wandb[1][1]["id"] == known


def test_wandb_that_is_asked_for_and_missing_is_an_error_that_names_the_extra(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match=r"myxtts\[wandb\]"):
        WandbHook("voices", {}, tmp_path, 1)
