import io
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.monitoring.heartbeat import doing
from myxtts.monitoring.history import read_lines
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.hooks.records import (
    HistoryHook,
    LogHook,
    NonFiniteHook,
)
from myxtts.training.hooks.tensorboard import Boards, TensorBoardHook, grey
from myxtts.training.hooks.wandb import WandbHook
from myxtts.training.loop import StepRecord, TrainingDiverged


def record(step, metrics=None, *, epoch=0, data_ms=1.0, compute_ms=9.0, index=(0, 1)):
    metrics = {"loss": 1.0} if metrics is None else metrics
    times = StepTimes(
        wait_ms=data_ms, call_ms=compute_ms, device_ms=compute_ms, idle={"wait": data_ms}
    )
    return StepRecord(step, epoch, step - 1, metrics, np.array(index), times)


# The times of such a record, as they are logged.
FIGURES = {
    **{"data_ms": 1.0, "compute_ms": 9.0, "device_ms": 9.0},
    **{"stall_ms": 1.0, "compile_ms": 0.0},
}


@pytest.fixture
def messages(caplog):
    """What the package has logged so far, as a function."""
    caplog.set_level(logging.INFO, "myxtts")

    def read() -> list[str]:
        return [entry.getMessage() for entry in caplog.records]

    read.clear = caplog.clear
    return read


# The log


def test_the_weights_are_logged_once_at_the_start(messages):
    hook = LogHook({"duration_loss": 0.3, "stop_loss": 0.2, "mel_loss": 1.0})
    hook.start(0)
    hook.after_step(record(1))
    assert messages() == ["Loss weights: mel_loss=1, stop_loss=0.2, duration_loss=0.3"]


def test_an_epoch_ends_with_its_mean_losses_raw_and_weighted(messages):
    hook = LogHook({})
    for step, mel, stop in ((1, 1.0, 0.5), (2, 2.0, 0.25)):
        terms = {"voice_similarity_loss": 0.5, "stop_loss": stop, "mel_loss": mel}
        weighted = {"weighted/stop_loss": 2 * stop, "weighted/mel_loss": mel}
        hook.after_step(
            record(step, {"loss": mel + 2 * stop, **terms, **weighted, "learning_rate": 1e-3})
        )
    hook.after_epoch(0, 2)
    assert messages() == [
        "Train loss components: mel_loss=1.5, stop_loss=0.375, voice_similarity_loss=0.5",
        "Train loss components, weighted: mel_loss=1.5, stop_loss=0.75, loss=2.25",
    ]


def test_the_means_of_an_epoch_forget_the_one_before_and_skip_what_a_step_lacks(messages):
    hook = LogHook({})
    hook.after_step(record(1, {"mel_loss": 8.0}))
    hook.after_epoch(0, 1)
    hook.after_step(record(2, {"mel_loss": 2.0}))
    hook.after_step(record(3, {"mel_loss": 4.0, "pitch_loss": 6.0}))
    hook.after_epoch(1, 3)
    assert messages()[1] == "Train loss components: mel_loss=3, pitch_loss=6"


def test_an_epoch_without_steps_logs_nothing(messages):
    LogHook({}).after_epoch(0, 0)
    assert messages() == []


# The history


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


# Not a number

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


# Progress


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


# TensorBoard


def events(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    return found


def scalars(found, tag):
    from tensorboard.util import tensor_util

    return [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in found.Tensors(tag)]


def strings(found, tag) -> list[bytes]:
    return list(found.Tensors(tag)[0].tensor_proto.string_val)


@pytest.fixture
def board(tmp_path):
    hook = TensorBoardHook(tmp_path / "events", log_interval=2)
    hook.start(0)
    return hook


def test_tensorboard_gets_the_scalars_of_every_interval(board):
    for step in range(1, 5):
        terms = {"mel_loss": step / 2, "weighted/mel_loss": float(step), "learning_rate": 0.5}
        board.after_step(record(step, {**terms, "gradient_norm": 0.25}))
    board.record_validation(4, {"mel_loss": 0.75})
    board.close()
    found = events(board.folder)
    assert scalars(found, "train/mel_loss") == [(2, 1.0), (4, 2.0)]
    assert scalars(found, "weighted/mel_loss") == [(2, 2.0), (4, 4.0)]
    assert scalars(found, "train/learning_rate") == [(2, 0.5), (4, 0.5)]
    assert scalars(found, "train/gradient_norm") == [(2, 0.25), (4, 0.25)]
    assert scalars(found, "time/data_ms") == [(2, 1.0), (4, 1.0)]
    assert scalars(found, "time/compute_ms") == [(2, 9.0), (4, 9.0)]
    assert scalars(found, "val/mel_loss") == [(4, 0.75)]


def test_tensorboard_gets_a_matrix_as_a_picture(board):
    from PIL import Image

    board.images(7, "mel", np.array([[-2.0, 0.0, 2.0]]))
    board.close()
    width, height, png = strings(events(board.folder), "mel")
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    # The middle is 127.5, which may be rounded either way.
    assert (width, height) == (b"3", b"1")
    assert pixels[0, 0] == 0 and pixels[0, 1] in (127, 128) and pixels[0, 2] == 255


def test_tensorboard_keeps_the_colours_of_a_picture(board):
    from PIL import Image

    picture = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
    board.images(7, "alignment", picture)
    board.close()
    _, _, png = strings(events(board.folder), "alignment")
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), picture)


def test_a_constant_matrix_becomes_black():
    np.testing.assert_array_equal(grey(np.full((2, 3), -4.0)), np.zeros((2, 3, 1)))


def test_tensorboard_gets_audio(board):
    import soundfile

    samples = np.array([0.0, 0.5, -0.5, 0.25])
    board.audio(3, "sample", samples, 22050)
    board.close()
    heard, rate = soundfile.read(io.BytesIO(strings(events(board.folder), "sample")[0]))
    assert rate == 22050
    np.testing.assert_allclose(heard, samples, atol=1 / 32768)


def test_without_tensorboard_one_line_names_the_extra_and_nothing_is_written(
    tmp_path, messages, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    hook = TensorBoardHook(tmp_path / "events", log_interval=1)
    hook.start(0)
    hook.after_step(record(1))
    hook.record_validation(1, {"loss": 1.0})
    hook.images(1, "mel", np.zeros((2, 2)))
    hook.audio(1, "sample", np.zeros(4), 22050)
    hook.close()
    assert len(messages()) == 1 and "myxtts[tensorboard]" in messages()[0]
    assert not (tmp_path / "events").exists()


# Weights & Biases


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
