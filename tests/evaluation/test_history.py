import pytest

from myxtts.checkpoints import save_state
from myxtts.errors import UserError
from myxtts.evaluation.history import read_history
from myxtts.monitoring.history import encode_line, trail_of


def test_curves_skip_values_that_were_not_finite(history):
    found = read_history(history)
    assert found.mel_loss == ((20, 2.0), (40, 1.0))
    assert found.val_mel_loss == ((40, 1.5),)
    assert (found.steps, found.mean_mel_loss) == (40, 1.25)


def test_waiting_is_the_share_of_all_time(history):
    assert read_history(history).waiting == 6.0 / 300.0


def test_missing_values_are_none(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"step": 1, "mel_loss": 3.0}\n')
    found = read_history(path)
    assert (found.val_mel_loss, found.mean_mel_loss, found.waiting) == ((), None, None)


def test_a_missing_history_is_an_error(tmp_path):
    with pytest.raises(UserError, match="has written no history"):
        read_history(tmp_path / "history.jsonl")
    (tmp_path / "history.jsonl").write_text("step,loss\n")
    with pytest.raises(UserError, match="not a history"):
        read_history(tmp_path / "history.jsonl")


def test_a_history_of_another_run_or_a_shorter_one_is_read_with_a_warning(tmp_path, caplog):
    path = tmp_path / "history.jsonl"
    own, other = (
        [encode_line({"step": step, "mel_loss": loss}) for step in (1, 2)] for loss in (3.0, 4.0)
    )
    save_state(tmp_path / "checkpoints", 2, {}, {"history": trail_of(own).facts()})
    later = encode_line({"step": 3, "mel_loss": 1.0})
    for lines, is_own in ((own, True), ([*own, later], True), (own[:1], False), (other, False)):
        path.write_bytes(b"".join(line.text for line in lines))
        read_history(path)
        assert (f"{path} is not the history" in caplog.text) is not is_own
        caplog.clear()
