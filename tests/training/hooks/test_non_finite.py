"""A stop at losses that are not finite."""

from pathlib import Path

import pytest

from myxtts.errors import UserError
from myxtts.training.hooks.non_finite import NonFiniteHook
from myxtts.training.loop import TrainingDiverged
from tests.helpers.step_records import record

BATCH = ("LJ001-0001", "LJ001-0002", "LJ001-0003")


def ids_of(index):
    return [BATCH[position] for position in index]


def test_a_metric_that_is_not_finite_stops_the_run_and_names_everything():
    hook = NonFiniteHook(ids_of, lambda: Path("runs/x/step-10"))
    nan = float("nan")
    metrics = {"loss": nan, "mel_loss": 0.5, "stop_loss": nan, "weighted/stop_loss": nan}
    with pytest.raises(TrainingDiverged) as raised:
        hook.after_step(record(12, metrics, epoch=1, index=(2, 0)))
    message = str(raised.value)
    assert message.startswith(
        "training diverged at step 12 (epoch 2, batch 12): stop_loss=nan, loss=nan; "
        "the batch's utterances: LJ001-0003, LJ001-0001; "
        "the last good checkpoint is runs/x/step-10."
    )
    assert isinstance(raised.value, UserError) and "mel_loss" not in message


def test_infinity_counts_and_a_missing_checkpoint_is_said():
    hook = NonFiniteHook(ids_of, lambda: None)
    with pytest.raises(TrainingDiverged, match="mel_loss=-inf; .*; no checkpoint yet"):
        hook.after_step(record(1, {"mel_loss": float("-inf")}))


def test_a_weighted_term_alone_is_named():
    hook = NonFiniteHook(ids_of, lambda: None)
    with pytest.raises(TrainingDiverged, match="weighted/mel_loss=inf"):
        hook.after_step(record(1, {"mel_loss": 1.0, "weighted/mel_loss": float("inf")}))


def test_finite_and_ignored_metrics_pass():
    asked = []
    hook = NonFiniteHook(asked.append, lambda: asked.append(1), ignored=["gradient_norm"])
    hook.after_step(record(1, {"loss": 1.0, "gradient_norm": float("inf")}))
    assert asked == []
