"""The hook that reports where the time went, with times that the tests make up."""

import logging

import numpy as np
import pytest

from myxtts.monitoring import monitor
from myxtts.monitoring.timeline import WAIT, StepTimes
from myxtts.training.hooks.performance import PAGE, PerformanceHook
from myxtts.training.loop import StepRecord
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config


@pytest.fixture
def messages(caplog):
    """What the package has logged so far, as a function."""
    caplog.set_level(logging.INFO, "myxtts")
    return lambda: [entry.getMessage() for entry in caplog.records]


def tell(hook: PerformanceHook, step: int, wait=1.0, compute=9.0, **metrics) -> None:
    """What the loop does after a step."""
    idle = {WAIT: wait} if step > 1 else {}
    times = StepTimes(wait_ms=wait, call_ms=compute, device_ms=compute, idle=idle, shape="2 x 32")
    hook.recorder.add(step, times)
    record = StepRecord(step, 0, step - 1, {"loss": 1.0, **metrics}, np.arange(2), times)
    hook.after_step(record)


def test_it_leaves_out_the_first_step_and_reports_every_ten_epochs(messages):
    hook = PerformanceHook()
    for epoch in range(20):
        tell(hook, epoch + 1, compute=5000.0 if epoch == 0 else 9.0)
        hook.after_epoch(epoch, epoch + 1)
        assert len(messages()) == (epoch + 1) // 10
    hook.close()  # nothing new since the report
    first, second = messages()
    assert first.startswith("Performance over 9 steps:\n  data:    mean 1.0 ms")
    assert second.startswith("Performance over 19 steps:")
    assert "compute: mean 9.0 ms, median 9.0 ms, p99 9.0 ms" in second
    assert "device:  busy 90.0 % of the time; waiting for data 10.0 %" in second
    assert "Moderately input-bound: 10.0 % of the time goes to waiting for data" in second
    assert second.endswith("not among them: data 1.0 ms, compute 5000.0 ms")


def test_it_reports_at_the_end(messages):
    hook = PerformanceHook()
    for step in (1, 2, 3):
        tell(hook, step)
    hook.close()
    assert len(messages()) == 1 and messages()[0].startswith("Performance over 2 steps:")


def test_a_single_step_is_not_judged(messages):
    hook = PerformanceHook(epochs_per_report=1)
    tell(hook, 1)
    hook.after_epoch(0, 1)
    hook.close()
    assert messages() == []


def test_the_monitor_of_the_process_hears_of_every_step(monkeypatch):
    monkeypatch.setattr(monitor, "_own", None)
    hook = PerformanceHook()
    for step in (1, 2, 3):
        tell(hook, step)
    found = monitor.get_performance_monitor().get_bottleneck_analysis()
    assert found["data_ms"]["mean"] == pytest.approx(2 / 3)  # nothing was before the first step
    assert found["samples_per_second"] == pytest.approx(6 / 0.029)


def test_a_run_leaves_a_page(tmp_path, messages):
    hook = PerformanceHook(tmp_path)
    hook.start(0)
    for step in range(1, 6):
        tell(hook, step, padding=0.25, mel_loss=1.0 / step)
    hook.close()
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert str(tmp_path) in page and "Moderately input-bound" in page and "2 x 32" in page
    assert messages()[-1] == f"where the time went, step by step: {tmp_path / PAGE}"


def test_a_page_that_cannot_be_written_ends_nothing(tmp_path, messages):
    (tmp_path / "file").write_text("no folder")
    hook = PerformanceHook(tmp_path / "file")
    hook.start(0)
    for step in range(1, 4):
        tell(hook, step)
    hook.close()
    assert str(tmp_path / "file") in messages()[-1] and len(messages()) == 2


def test_a_real_run_writes_its_verdict_and_its_page(tmp_path, messages):
    corpus = make_corpus(tmp_path / "corpus", 12)
    trainer = XTTSTrainer(run_config(corpus, tmp_path / "run", max_steps=5))
    trainer.train()
    recorder = trainer.performance.recorder
    assert recorder.steps.tolist() == [2, 3, 4, 5] and recorder.first.compile_ms > 0
    found = recorder.evidence()
    assert 0.0 < found.utilisation <= 1.0
    assert found.wall_ms == pytest.approx(
        sum(
            np.sum(recorder.series[name])
            for name in ("device", "wait", "copy", "hooks", "host", "compile")
        )
        / 4
    )
    assert {"HistoryHook", "SavingHook", "PerformanceHook"} <= recorder.hooks.keys()
    assert (tmp_path / "run" / PAGE).exists()
    assert any(text.startswith("Performance over 4 steps:") for text in messages())
