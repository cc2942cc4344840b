"""Faults injected into the loop of training, on a clock that only they move."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.bench.profiling import (
    CONFIGURED,
    CONSTANT,
    GRAPH,
    IN_MEMORY,
    KEPT,
    Feed,
    compare,
    profile_training,
)
from myxtts.bench.simulated import SimulatedStep
from myxtts.monitoring import timers
from myxtts.monitoring.verdict import COMPILATION, DEVICE, HEALTHY, HOST, LOGGING
from myxtts.training.ending import Ending
from myxtts.training.loop import Hook
from tests.helpers.fake_clock import FakeClock
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config

MS = 1e-3
STEP_MS = 20.0


def batch_of(frames: int = 32) -> dict:
    return {"mel": np.zeros((2, frames, 1)), "index": np.arange(2)}


class World:
    """A clock, a device on it, and feeds that take their time by it."""

    def __init__(self, monkeypatch):
        self.clock = FakeClock()
        monkeypatch.setattr(timers, "stages", timers.StageTimers(self.clock))

    def step(self, step_ms: float = STEP_MS) -> SimulatedStep:
        return SimulatedStep(step_ms, self.clock, self.clock.advance)

    def feed(self, *, frames=lambda number: 32, hooks=(), **stages_ms) -> Feed:
        """Batches that take so many milliseconds of each stage."""

        def make():
            number = 0
            while True:
                for stage, spent in stages_ms.items():
                    with timers.stages.time(stage.replace("_", "-")):
                        self.clock.advance(spent * MS)
                yield 0, number, batch_of(frames(number))
                number += 1

        return Feed(make, hooks)

    def verdict(self, feeds: dict, step=None, steps: int = 40):
        return compare(step or self.step(), feeds, batch_of(), steps, clock=self.clock).verdict


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_an_undisturbed_run_is_healthy(world):
    verdict = world.verdict({CONFIGURED: world.feed(batching=1)})
    assert verdict.stage == HEALTHY and verdict.is_healthy and verdict.change == ""
    assert verdict.utilisation == pytest.approx(1.0, abs=0.01)
    assert verdict.sentence.startswith("Healthy: the device computes 99.9 % of the time (")


@pytest.mark.parametrize(
    ("stages", "named"),
    [
        ({"read": 60, "batching": 1}, timers.READ),
        ({"read": 1, "decode": 70, "features": 9}, timers.DECODE),
        ({"read": 1, "decode": 5, "features": 60}, timers.FEATURES),
        ({"batching": 5, "tokens": 80}, timers.TOKENS),
        ({"batching": 50, "hand_over": 3}, timers.BATCHING),
        ({"batching": 5, "hand_over": 40}, timers.HAND_OVER),
    ],
)
def test_the_slowest_stage_of_the_data_engine_is_named(world, stages, named):
    verdict = world.verdict({CONFIGURED: world.feed(**stages)})
    assert verdict.stage == named
    load = sum(stages.values())
    # A batch takes longer than the step that it hides behind: the rest starves the device.
    assert verdict.share == pytest.approx((load - STEP_MS) / load, abs=0.02)
    assert verdict.gain == pytest.approx(load / STEP_MS, rel=0.03)
    assert f"Highly input-bound ({named})" in verdict.sentence


def test_a_disk_that_hides_behind_a_mapping_shows_by_difference(world):
    """Where no stage reports reading, the difference to memory shows it."""
    feeds = {CONFIGURED: world.feed(batching=90), IN_MEMORY: world.feed(batching=10)}
    verdict = world.verdict(feeds)
    assert verdict.stage == timers.BATCHING  # of 90 ms of work, 80 are reading
    feeds[CONFIGURED] = world.feed(**{"other": 90})
    verdict = world.verdict(feeds)
    assert verdict.stage == timers.READ and verdict.gain == pytest.approx(90 / 20, rel=0.03)


def test_what_another_stage_did_is_not_taken_for_batching(world):
    """A native reader's work is seen by difference only."""
    feeds = {CONFIGURED: world.feed(tokens=60), IN_MEMORY: world.feed(tokens=60)}
    profile = compare(world.step(), feeds, batch_of(), 40, clock=world.clock)
    assert profile.verdict.stage == timers.TOKENS
    assert profile.evidence.stages[timers.BATCHING] == pytest.approx(0.0, abs=1e-6)


def test_a_little_waiting_is_moderate(world):
    verdict = world.verdict({CONFIGURED: world.feed(features=23)})
    assert verdict.share == pytest.approx(3 / 23, abs=0.03)
    assert verdict.sentence.startswith("Moderately input-bound (features)")
    assert "(23.0 of 23.0 ms of work for each batch)" in verdict.sentence


def test_a_slow_logging_hook_is_named(world):
    class FarDisk(Hook):
        def after_step(self, record):
            world.clock.advance(60 * MS)

    verdict = world.verdict({CONFIGURED: world.feed(batching=1, hooks=[FarDisk()])})
    assert verdict.stage == LOGGING and "most of it to FarDisk (6" in verdict.sentence
    assert verdict.share == pytest.approx(41 / 61, abs=0.03)


def test_a_device_that_slows_down_is_named(world):
    class Throttled(SimulatedStep):
        taken = 0

        def __call__(self, batch, number):
            self.taken += 1
            # Two trials of 126 steps from memory come first.
            self.step_seconds = (3 if self.taken > 2 * 126 + 66 else 1) * STEP_MS * MS
            return super().__call__(batch, number)

    step = Throttled(STEP_MS, world.clock, world.clock.advance)
    verdict = world.verdict({CONFIGURED: world.feed(batching=1)}, step, steps=120)
    assert verdict.stage == DEVICE and "3.0 x as long as at its fastest" in verdict.sentence
    assert verdict.gain == pytest.approx(2.0, rel=0.05)  # half of the steps took 60 instead of 20


class CompilingStep(SimulatedStep):
    """Computes in the call; a shape that it has not met takes longer."""

    is_async = False

    def __init__(self, clock):
        self.clock, self.met = clock, set()

    def __call__(self, batch, number):
        shape = batch["mel"].shape
        self.is_new = shape not in self.met
        self.met.add(shape)
        self.clock.advance((500 if self.is_new else STEP_MS) * MS)
        return number

    def read(self, number):
        return {"loss": float(number)}


def test_a_new_shape_every_step_is_named(world):
    frames = iter(range(32, 10_000))
    feed = world.feed(frames=lambda number: next(frames))
    verdict = world.verdict({CONFIGURED: feed}, CompilingStep(world.clock))
    assert verdict.stage == COMPILATION and "compilations for" in verdict.sentence
    assert verdict.share == pytest.approx(480 / 500, abs=0.02)
    assert "pad_to_multiple" in verdict.change


class EagerStep(SimulatedStep):
    """Computes in the call, which takes the caller's own thread."""

    is_async, is_eager = False, True

    def __init__(self, clock, ms: float, eager: bool = True):
        self.clock, self.ms, self.is_eager = clock, ms, eager

    def __call__(self, batch, number):
        self.clock.advance(self.ms * MS)
        return number

    def read(self, number):
        return {"loss": float(number)}


def test_eager_execution_is_named_by_its_difference_to_a_graph(world):
    graph = Feed(world.feed().make, make_step=lambda: EagerStep(world.clock, 20, eager=False))
    feeds = {CONFIGURED: world.feed(batching=1), GRAPH: graph}
    verdict = world.verdict(feeds, EagerStep(world.clock, 100))
    assert verdict.stage == HOST and "enable_graph_mode" in verdict.change
    assert verdict.gain == pytest.approx(101 / 21, rel=0.02)


def test_trials_end_early_where_steps_are_slow(world):
    profile = compare(
        world.step(5000.0), {CONFIGURED: world.feed()}, batch_of(), 40, clock=world.clock
    )
    assert [trial.evidence.steps for trial in profile.trials] == [5, 5, 5]


def test_progress_counts_the_trials(world):
    reported = []
    feeds = {CONFIGURED: world.feed()}
    compare(
        world.step(), feeds, batch_of(), 5, lambda *counts: reported.append(counts), world.clock
    )
    assert reported == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_signal_ends_all_trials(world, monkeypatch):
    step = world.step()
    monkeypatch.setattr("myxtts.training.loop.TrainingLoop.run", lambda self, items: Ending.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="stopped by SIGINT"):
        compare(step, {CONFIGURED: world.feed()}, batch_of(), 5, clock=world.clock)


def test_a_real_run_is_profiled_with_its_own_data(tmp_path):
    corpus = make_corpus(tmp_path / "corpus", 12)
    config = run_config(corpus, tmp_path / "run", preprocessing_mode="precompute")
    profile = profile_training(config, steps=5, simulate_ms=2.0)
    assert [trial.name for trial in profile.trials] == [
        CONSTANT,
        KEPT,
        CONFIGURED,
        IN_MEMORY,
        "recordings",
    ]
    recorded = profile["recordings"].evidence
    assert {"read", "decode", "features"} <= recorded.stages.keys()
    assert recorded.stages["features"] > 0 and profile[CONSTANT].evidence.stages == {}
    assert not (tmp_path / "run").exists()


def test_a_real_step_is_profiled_without_training_anything(tmp_path):
    corpus = make_corpus(tmp_path / "corpus", 12)
    config = run_config(corpus, tmp_path / "run", preprocessing_mode="runtime")
    profile = profile_training(config, steps=5)
    own = profile[CONFIGURED].evidence
    assert not own.is_eager and not own.is_async
    assert own.device_ms > 0 and own.steps == 5 and "recordings" not in profile
    assert tf.config.functions_run_eagerly() is False
