"""How far training is, on a terminal and in a log."""

import io
import sys

import numpy as np
import pytest

from myxtts.monitoring.heartbeat import doing
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.loop import StepRecord
from tests.helpers.step_records import record


class Terminal(io.StringIO):
    def isatty(self):
        return True


def losses(mel):
    return {"mel_loss": mel, "stop_loss": 0.5, "voice_similarity_loss": 0.25, "loss": 9.0}


def quiet(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())


def test_progress_is_one_line_per_interval_where_there_is_no_terminal(messages, monkeypatch):
    quiet(monkeypatch)
    moments = iter((90.0, 100.0, 101.0, 102.0, 103.0))
    hook = ProgressHook(1000, log_interval=2, is_compiled=False, clock=lambda: next(moments))
    hook.start(0)
    for step in range(1, 5):
        hook.after_step(record(step, losses(float(step)), data_ms=1.0, compute_ms=3.0, epoch=2))
    hook.close()
    # A second for each step after the first: 998 and 996 more.
    shown = "stop=0.500 voice=0.250 data=1.0ms compute=3.0ms stall=25.0%"
    assert messages() == [
        f"step 2 of 1,000 (epoch 3): mel=1.500 {shown} left=0:16:38",
        f"step 4 of 1,000 (epoch 3): mel=3.500 {shown} left=0:16:36",
    ]
    assert sys.stderr.getvalue() == ""


def test_slow_steps_are_logged_before_their_interval_is_over(messages, monkeypatch):
    quiet(monkeypatch)
    moments = iter((0.0, 20.0, 40.0, 60.0))
    hook = ProgressHook(100, log_interval=50, is_compiled=False, clock=lambda: next(moments))
    hook.start(0)
    for step in range(1, 4):
        hook.after_step(record(step))
    assert [message.partition(" (")[0] for message in messages()] == ["step 2 of 100"]


def test_the_first_step_says_that_it_compiles(messages, monkeypatch):
    quiet(monkeypatch)
    ProgressHook(10, log_interval=1).start(0)
    ProgressHook(10, log_interval=1, is_compiled=False).start(0)
    ProgressHook(10, log_interval=1).start(10)  # nothing is left to do
    assert messages() == ["compiling the step; the following steps are faster"]


def test_the_compute_time_does_not_include_compiling(messages, monkeypatch):
    quiet(monkeypatch)
    hook = ProgressHook(10, log_interval=2, is_compiled=False)
    times = StepTimes(wait_ms=1.0, call_ms=40_000.0, compile_ms=40_000.0)
    hook._recent.append(StepRecord(1, 0, 0, {}, np.array([0]), times))
    assert "data=1.0ms compile=40.0s" in hook.render(80)
    hook.after_step(record(2, {}, data_ms=3.0, compute_ms=9.0))
    assert "data=2.0ms compute=9.0ms" in messages()[0]


def test_progress_leaves_out_losses_that_a_step_does_not_have(messages, monkeypatch):
    quiet(monkeypatch)
    hook = ProgressHook(10, log_interval=1, is_compiled=False)
    hook.start(0)
    hook.after_step(record(1, {"mel_loss": 1.0}, data_ms=0.0))
    assert messages() == ["step 1 of 10 (epoch 1): mel=1.000 data=0.0ms compute=9.0ms stall=0.0%"]


def test_progress_is_a_bar_on_a_terminal(messages, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    terminal, hook = sys.stderr, ProgressHook(100, log_interval=1)
    hook.start(40)
    hook.after_step(record(41, losses(2.0)))
    hook.close()
    hook.close()  # a second time does no harm
    shown = "mel=2.000 stop=0.500 voice=0.250 data=1.0ms compute=9.0ms stall=10.0%"
    assert f"[####------] 41/100 {shown}" in terminal.getvalue()
    assert messages() == [] and sys.stderr is terminal


WHOLE_LINE = (
    "[----------] 1,201/20,000 left=0:31:20 mel=2.788 stop=1.057 voice=0.125 data=0.0ms "
    "compute=99.0ms stall=0.0%"
)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "1,201/20,000 left=0:31:20 mel=2.788"),
        (60, "1,201/20,000 left=0:31:20 mel=2.788 stop=1.057 voice=0.125"),
        (80, "[----------] 1,201/20,000 left=0:31:20 mel=2.788 stop=1.057 voice=0.125"),
        (120, WHOLE_LINE),
        (200, WHOLE_LINE),
    ],
)
def test_the_bar_shows_whole_fields_the_most_important_first(monkeypatch, width, shown):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    moment = [0.0]
    terminal, hook = sys.stderr, ProgressHook(20_000, 1, clock=lambda: moment[0])
    metrics = {"mel_loss": 2.788, "stop_loss": 1.057, "voice_similarity_loss": 0.125}
    hook.start(200)
    hook.after_step(record(201, metrics))
    moment[0] = 100.0
    hook.after_step(record(1201, metrics, data_ms=0.0, compute_ms=99.0))
    hook.close()
    assert hook.render(width) == shown
    lines = terminal.getvalue().replace("\r", "\n").splitlines()
    assert any(line.rstrip().endswith(shown) for line in lines)


def test_the_bar_says_what_goes_on_instead_of_a_step():
    hook = ProgressHook(20, log_interval=1)
    with doing("compiling the step"):
        assert hook.render(80) == "[----------] 0/20 compiling the step (0 s)"
        with doing("validating after step 4"):
            assert hook.render(40) == "0/20 validating after step 4 (0 s)"
    with doing("step 4 of 20"):
        assert hook.render(80) == "[----------] 0/20"
