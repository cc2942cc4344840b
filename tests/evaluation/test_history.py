import pytest

from myxtts.errors import UserError
from myxtts.evaluation.history import read_history


def test_curves_skip_what_was_not_finite(history):
    found = read_history(history)
    assert found.mel_loss == ((20, 2.0), (40, 1.0))
    assert found.val_mel_loss == ((40, 1.5),)
    assert (found.steps, found.mean_mel_loss) == (40, 1.25)


def test_waiting_is_the_share_of_all_time(history):
    assert read_history(history).waiting == 6.0 / 300.0


def test_what_was_not_written_down_is_none(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"step": 1, "mel_loss": 3.0}\n')
    found = read_history(path)
    assert (found.val_mel_loss, found.mean_mel_loss, found.waiting) == ((), None, None)


def test_no_history_is_said_plainly(tmp_path):
    with pytest.raises(UserError, match="has written no history"):
        read_history(tmp_path / "history.jsonl")
    (tmp_path / "history.jsonl").write_text("step,loss\n")
    with pytest.raises(UserError, match="not a history"):
        read_history(tmp_path / "history.jsonl")
