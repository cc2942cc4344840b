from types import SimpleNamespace

import numpy as np
import pytest

from myxtts.bench.modes import (
    AUTO,
    AUTO_AFTERWARDS,
    MODES,
    PRECOMPUTE,
    RUNTIME,
    ModeResult,
    ModeRun,
    bench_modes,
    train_through,
)
from myxtts.bench.simulated import SimulatedStep
from myxtts.config.config import XTTSConfig
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.gpus import GpuSample
from myxtts.monitoring.system import SystemSampler
from tests.helpers.make_corpus import make_corpus


class Clock:
    """Time that passes only while somebody sleeps."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def batches(clock: Clock, *seconds: float):
    """Batches of three, of which each takes so long to come."""
    for wait in seconds:
        clock.sleep(wait)
        yield {"mel": np.zeros((3, 8, 2))}


def test_a_run_counts_what_the_device_waits_for():
    clock = Clock()
    step = SimulatedStep(500, clock, clock.sleep)
    # Start-up takes 2 s. The second batch comes during the first step, the third 0.75 s late:
    # when it is requested, the second step has just begun.
    source = batches(clock, 2.0, 0.25, 1.25)
    run = train_through(source, step, 3, preparation_seconds=4.0, clock=clock)
    assert (run.preparation_seconds, run.first_batch_seconds) == (4.0, 2.0)
    assert (run.busy_seconds, run.idle_seconds, run.wait_seconds) == (1.5, 0.75, 1.5)
    assert run.seconds == 2.25  # from the first step to the end of the last
    assert (run.batches, run.samples, run.gpu_percent) == (3, 9, None)


def test_no_batch_is_read_that_is_not_needed():
    clock = Clock()
    source = batches(clock, 0.0, 0.0, 99.0)
    assert train_through(source, SimulatedStep(1, clock, clock.sleep), 2, clock=clock).batches == 2
    assert clock.now == pytest.approx(0.002)


def test_the_gpu_is_sampled_while_steps_run():
    def watch():
        gpus = {"gpus": lambda: tuple(GpuSample(i, "L4", load) for i, load in ((0, 75), (1, 0)))}
        return SystemSampler(0.001, sources=gpus)

    run = train_through(batches(Clock(), *10 * [0.0]), SimulatedStep(20), 10, watch=watch)
    assert run.gpu_percent == 75.0  # of the busier one


def make_run(**changes) -> ModeRun:
    numbers = {
        "preparation_seconds": 1.0,
        "first_batch_seconds": 0.5,
        "seconds": 4.0,
        "busy_seconds": 3.0,
        "idle_seconds": 1.0,
        "wait_seconds": 1.0,
        "cpu_seconds": 2.0,
        "batches": 11,
        "samples": 80,
    }
    return ModeRun(**numbers | changes)


def test_rounds_are_taken_together():
    other = make_run(seconds=6.0, busy_seconds=6.0, idle_seconds=0.0, preparation_seconds=3.0)
    mode = ModeResult("precompute", (make_run(), other))
    assert mode.utilisation == 0.9
    assert mode.samples_per_second == 16
    assert mode.ms_per_batch == pytest.approx(10_000 / 22)
    assert mode.wait_ms == 100  # of 20 batches: the first ones of both rounds are start-up
    assert mode.cpu_percent == 40 / available_cores()
    assert (mode.preparation_seconds, mode.whole_seconds) == (2.0, 2.0 + 0.5 + 5.0)
    assert mode.gpu_percent is None
    watched = ModeResult("precompute", (make_run(gpu_percent=60.0), make_run(gpu_percent=80.0)))
    assert watched.gpu_percent == 70


def test_every_mode_is_measured_and_only_auto_fills_its_cache(tmp_path):
    make_corpus(tmp_path / "corpus", count=10, seconds=(0.4, 0.8))
    config = XTTSConfig(
        data_path=str(tmp_path / "corpus"),
        batch_size=3,
        num_workers=1,
        with_pitch=False,
        preprocessing_mode="runtime",
    )
    reported, seen = [], []

    def make_step(data, planned):
        seen.append(SimpleNamespace(mode=data.train.mode, is_complete=data.train.is_complete))
        return SimulatedStep(1)

    folder = tmp_path / "caches"
    found = bench_modes(
        *(config, make_step, "a device of 1 ms", folder),
        batches=1,
        rounds=2,
        progress=lambda done, total: reported.append((done, total)),
    )
    assert [mode.name for mode in found.modes] == [PRECOMPUTE, AUTO, AUTO_AFTERWARDS, RUNTIME]
    # In every round anew: what auto finds is nothing at first, and everything afterwards.
    round_ = [("precompute", True), ("auto", False), ("auto", True), ("runtime", False)]
    assert [(one.mode, one.is_complete) for one in seen] == 2 * round_
    epoch = -(-found.utterances // 3)
    for mode in found.modes:
        assert [run.batches for run in mode.runs] == 2 * [2 * epoch]
        assert [run.samples for run in mode.runs] == 2 * [2 * found.utterances]
        assert 0 < mode.utilisation <= 1 and mode.cpu_percent > 0
        assert mode.name in str(found)
    total = 2 * len(MODES) * 2 * epoch
    assert reported == [(number, total) for number in range(1, total + 1)]
    assert {path.name for path in folder.iterdir()} == {"precompute", "auto"}
    assert not (tmp_path / "corpus" / "cached_features").exists()
    assert "a device of 1 ms" in str(found) and found["runtime"].name == RUNTIME
