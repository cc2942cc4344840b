import threading
from pathlib import Path

import pytest

from myxtts.bench import checks
from myxtts.bench.checks import (
    Check,
    busy_percent,
    describe,
    judged,
    reaches,
    same_batches,
)
from myxtts.cli import programs
from myxtts.errors import UserError
from myxtts.monitoring.evidence import Evidence
from myxtts.monitoring.gpus import GpuReader, GpuSample
from myxtts.monitoring.system import SystemSample
from myxtts.training.hooks.performance import PerformanceHook

SETTINGS = Path(__file__).parents[2] / "config_gpu_bottleneck_fix.yaml"


def verdicts(out: str) -> dict[str, str]:
    """The last word of each row by its first one."""
    return {text.split("  ")[0]: text.split("  ")[-1].strip() for text in out.splitlines()[2:]}


def test_the_shipped_settings_are_in_force(capsys):
    assert programs.bottleneck_fix(SETTINGS, []) == 0
    found = verdicts(capsys.readouterr().out)
    assert found.pop("prefetching to the GPU") in ("ok", "not here")
    assert len(found) == 7 and set(found.values()) == {"ok"}


def test_settings_that_turn_it_off_fail(capsys, tmp_path):
    path = tmp_path / "slow.yaml"
    path.write_text(
        "data:\n  preprocessing_mode: auto\n  use_tf_native_loading: false\n"
        "  optimize_cpu_gpu_overlap: false\n"
    )
    assert programs.bottleneck_fix(path, []) == 1
    out = capsys.readouterr().out
    assert "off: use_tf_native_loading, optimize_cpu_gpu_overlap" in out
    failed = {name for name, verdict in verdicts(out).items() if verdict == "FAILED"}
    assert failed == {
        "slow.yaml loads",
        "features are made before the first step",
        "native loading",
        "overlap",
        "calls of Python per utterance",
    }


def test_settings_that_do_not_load_are_an_error(capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text("data:\n  batch_sise: 3\n")
    assert programs.bottleneck_fix(tmp_path / "bad.yaml", []) == 2
    assert "batch_size" in capsys.readouterr().err


def test_calls_of_python_are_found_in_a_graph():
    import tensorflow as tf

    numbers = tf.data.Dataset.range(4)
    naive = numbers.map(lambda n: tf.numpy_function(lambda m: m + 1, [n], tf.int64))
    assert checks.python_calls(naive) == 1
    assert checks.python_calls(numbers.map(lambda n: n + 1)) == 0


def test_batches_are_compared_bit_by_bit():
    assert same_batches([{"mel": [1.0, 2.0]}], [{"mel": [1.0, 2.0]}])
    assert not same_batches([{"mel": [1.0, 2.0]}], [{"mel": [1.0, 2.5]}])
    assert not same_batches([{"mel": [0.0]}], [{"mel": [-0.0]}])
    assert not same_batches([{"mel": [1.0]}], [{"mel": [1.0]}, {"mel": [1.0]}])
    assert not same_batches([{"mel": [1.0]}], [{"energy": [1.0]}])


def test_without_a_gpu_a_simulated_accelerator_is_checked(capsys, monkeypatch):
    monkeypatch.setattr(checks.GpuReader, "open", lambda: GpuReader(None, "no driver answers"))
    monkeypatch.setattr(checks, "STEPS", 5)
    monkeypatch.setattr(checks, "TARGET_PERCENT", 0.0)  # how busy it is depends on the machine
    assert programs.gpu_utilization([]) == 0
    out = capsys.readouterr().out
    assert "a simulated accelerator, 20 ms a step" in out
    assert "cannot be measured here: no driver answers" in out
    assert list(verdicts(out).values()) == ["ok", "not here"]


def test_too_little_utilisation_fails(capsys, monkeypatch):
    monkeypatch.setattr(checks.GpuReader, "open", lambda: GpuReader(None, "no driver answers"))
    monkeypatch.setattr(checks, "STEPS", 3)
    monkeypatch.setattr(checks, "TARGET_PERCENT", 100.1)
    monkeypatch.setattr(checks, "OTHERS_PERCENT", 101.0)  # whatever else runs here
    assert programs.gpu_utilization([]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out and "20 ms a step: verdict: " in out
    assert out.endswith("1 failed, 0 inconclusive: exit code 1\n")


BUSY = [SystemSample(n, cpu_percent=99.0, others_percent=61.0) for n in (1.0, 2.0)]
IDLE = [SystemSample(n, cpu_percent=40.0, others_percent=30.0) for n in (1.0, 2.0)]


@pytest.mark.parametrize(
    ("samples", "word", "code"), [(BUSY, "inconclusive", 0), (IDLE, "FAILED", 1), ([], "FAILED", 1)]
)
def test_a_low_utilisation_is_inconclusive_where_others_took_the_cpu(
    samples, word, code, monkeypatch, capsys
):
    found = Evidence(10, 100.0, 39.0, wait_ms=61.0, load_ms=61.0, stages={"batching": 50.0})
    check = judged(reaches("a simulated accelerator", 39.0), samples, found)
    assert check.verdict == word
    assert "Highly input-bound (batching): 61.0 % of the time" in check.details[-1]
    cause = "other processes took 61 % of this machine's CPU, which was 99 % busy"
    assert any(cause in detail for detail in check.details) == (samples is BUSY)
    monkeypatch.setattr(checks, "check_utilisation", lambda folder: [check])
    assert programs.gpu_utilization([]) == code
    said = f"{code} failed, {1 - code} inconclusive: exit code {code}\n"
    assert capsys.readouterr().out.endswith(said)


def test_a_check_that_holds_is_not_doubted_on_a_busy_machine():
    check = reaches("a simulated accelerator", 71.0)
    assert judged(check, BUSY, None) is check


@pytest.mark.parametrize(("percent", "holds"), [(69.9, False), (70.0, True), (99.0, True)])
def test_the_target_is_that_of_the_documents(percent, holds):
    check = reaches("GPU", percent)
    assert check.holds is holds and check.result == f"{percent:.1f} % (at least 70 %)"


def sample(*percents):
    gpus = tuple(GpuSample(index, "L4", percent) for index, percent in enumerate(percents))
    return SystemSample(0.0, gpus=gpus)


def test_the_busiest_gpu_counts_once_everything_is_compiled():
    assert busy_percent([sample(0, 0), sample(0, 0), sample(10, 80), sample(20, None)]) == 80.0
    with pytest.raises(UserError, match="does not report how busy"):
        busy_percent([sample(None), sample(None)])


def test_with_a_gpu_its_driver_is_sampled_while_a_model_trains(capsys, monkeypatch):
    sampled, trained = threading.Event(), []

    class Reader(GpuReader):
        def read(self):
            sampled.set()
            return (GpuSample(0, "NVIDIA L4", utilisation=91),)

    class Trainer:
        performance = PerformanceHook()

        def __init__(self, config):
            trained.append(config)

        def train(self):
            for _ in range(3):  # the first reading makes no sample yet
                sampled.clear()
                assert sampled.wait(60)

    monkeypatch.setattr(checks.GpuReader, "open", lambda: Reader(None))
    monkeypatch.setattr("myxtts.runtime.gpus", lambda: ["GPU:0"])
    monkeypatch.setattr("myxtts.training.trainer.XTTSTrainer", Trainer)
    monkeypatch.setattr(checks, "STEPS", 3)
    monkeypatch.setattr(checks, "INTERVAL", 0.01)
    programs.gpu_utilization([])
    assert "91.0 % (at least 70 %)" in capsys.readouterr().out
    (config,) = trained
    assert (config.model.model_size, config.data.batch_size) == ("normal", 48)
    assert config.training.max_steps == checks.GPU_STEPS


def test_the_table_has_a_verdict_for_each():
    rows = describe([Check("a", "b", True), Check("long", "c", False), Check("d", "e", None)])
    assert rows.splitlines() == [
        "check  result",
        "a      b       ok",
        "long   c       FAILED",
        "d      e       not here",
        "1 failed, 0 inconclusive: exit code 1",
    ]
