"""The history of a run, and that restarts keep it consistent."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from myxtts.errors import UserError
from myxtts.monitoring.history import read_lines
from myxtts.training.hooks.history import HistoryHook
from tests.helpers.step_records import FIGURES, record


def lines_of(folder: Path) -> list[dict]:
    return [line.values for line in read_lines(folder / "history.jsonl")]


def test_the_history_has_one_line_per_interval_and_per_validation(tmp_path):
    hook = HistoryHook(tmp_path / "run", log_interval=2)
    hook.start(0)
    for step in range(1, 5):
        hook.after_step(record(step, {"loss": step / 2}, epoch=1))
    hook.record_validation(4, {"mel_loss": 0.75})
    assert lines_of(tmp_path / "run") == [
        {"step": 2, "epoch": 1, "loss": 1.0, **FIGURES},
        {"step": 4, "epoch": 1, "loss": 2.0, **FIGURES},
        {"step": 4, "val/mel_loss": 0.75},
    ]


def test_a_restart_drops_what_was_logged_after_its_step(tmp_path):
    def run(hook, start, end):
        hook.start(start)
        for step in range(start + 1, end + 1):
            hook.after_step(record(step, {"loss": float(step)}))
            if step % 2 == 0:
                hook.record_validation(step, {"loss": float(-step)})

    run(HistoryHook(tmp_path / "broken", 1), 0, 5)
    run(HistoryHook(tmp_path / "broken", 1), 3, 6)
    run(HistoryHook(tmp_path / "whole", 1), 0, 6)
    whole = lines_of(tmp_path / "whole")
    for name in FIGURES:  # the first step of a restart compiles
        del whole[4][name]
    assert lines_of(tmp_path / "broken") == whole
    assert [path.name for path in (tmp_path / "broken").iterdir()] == ["history.jsonl"]


def test_a_restart_drops_a_line_that_a_kill_has_torn(tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    HistoryHook(tmp_path, 1).start(2)
    assert history.read_text() == '{"step": 1, "loss": 2.0}\n'


def test_a_damaged_history_is_an_error_that_names_the_line(tmp_path):
    (tmp_path / "history.jsonl").write_text('{"step": 1}\nnonsense\n{"step": 3}\n')
    with pytest.raises(UserError, match=r"history\.jsonl, line 2, .*'nonsense'"):
        HistoryHook(tmp_path, 1).start(3)


def resumed_at(step: int, hook: HistoryHook) -> SimpleNamespace:
    """A checkpoint that was saved after what a hook has written."""
    return SimpleNamespace(step=step, facts={"history": hook.trail})


def write_steps(folder: Path, last: int) -> HistoryHook:
    hook = HistoryHook(folder, 1)
    hook.start(0)
    for step in range(1, last + 1):
        hook.after_step(record(step, {"loss": float(step)}))
    hook.record_validation(last, {"loss": 0.5})
    return hook


def test_a_history_that_lacks_lines_or_has_others_is_reported_on_resume(tmp_path, messages):
    hook = write_steps(tmp_path, 3)
    path = tmp_path / "history.jsonl"
    whole = path.read_bytes()
    first, *others = whole.splitlines(keepends=True)
    write_steps(tmp_path / "other", 4)
    other = (tmp_path / "other" / "history.jsonl").read_bytes()
    for damaged in (b"", b"".join(others), whole + first, other, None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        HistoryHook(tmp_path, 1, resumed_at(3, hook)).start(3)
        (message,) = messages()
        assert message.startswith(f"{path} is not the history of this run up to step 3: it had 4")
        messages.clear()


def test_lines_after_a_checkpoint_and_those_of_evaluations_are_no_other_history(tmp_path, messages):
    hook = write_steps(tmp_path, 3)
    checkpoint = resumed_at(3, hook)
    hook.record_validation(2, {"cer": 0.25})  # an evaluation's, some steps late
    hook.after_step(record(4))
    resumed = HistoryHook(tmp_path, 1, checkpoint)
    resumed.start(3)
    assert messages() == [] and resumed.trail == checkpoint.facts["history"]
    resumed.record_validation(2, {"cer": 0.125})
    assert lines_of(tmp_path)[-1] == {"step": 2, "val/cer": 0.125}
    assert len(lines_of(tmp_path)) == 5


def test_a_line_that_finds_no_room_leaves_the_history_whole(tmp_path, monkeypatch):
    hook = HistoryHook(tmp_path, 1)
    hook.start(0)
    hook.after_step(record(1))
    whole = (tmp_path / "history.jsonl").read_bytes()
    real = open

    def nearly_full(path, *arguments, **named):
        file = real(path, *arguments, **named)

        class Short:
            def __getattr__(self, name):
                return getattr(file, name)

            def __enter__(self):
                return self

            def __exit__(self, *error):
                file.close()

            def write(self, data):
                return file.write(data[:5])

        return Short()

    monkeypatch.setattr("builtins.open", nearly_full)
    with pytest.raises(UserError, match="no space left while writing .*history.jsonl"):
        hook.after_step(record(2))
    monkeypatch.undo()
    assert (tmp_path / "history.jsonl").read_bytes() == whole


def test_the_history_stays_json_where_a_value_is_not_finite(tmp_path):
    hook = HistoryHook(tmp_path, 1)
    hook.start(0)
    hook.after_step(record(1, {"gradient_norm": float("inf")}))
    assert lines_of(tmp_path)[0]["gradient_norm"] is None
