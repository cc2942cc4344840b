"""Tuning where the cache lives and how many steps a call takes, and runs that keep both."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from myxtts.bench import pacing, tuning, tuning_choices
from myxtts.bench.simulated import SimulatedStep
from myxtts.bench.tuning import FILE, Tuning, settle_run, tune
from myxtts.bench.tuning_choices import (
    BUDGET,
    CALLS,
    DEPTH,
    READER,
    RESIDENCE,
    SIZE,
    Choice,
    Circumstances,
    Pace,
    candidates,
    choose_calls,
    choose_residence,
    reason_to_stay,
)
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.data.batches.residence import Residence
from myxtts.training.loop import OutOfMemory
from tests.helpers.runs import run_config

GPU = Circumstances(is_stored=True, has_gpu=True)
HOST = Circumstances(is_stored=True)
OTHERS = dict.fromkeys((SIZE, BUDGET, READER, DEPTH), "file x.yaml")


def pace(*step_ms: float, cpu: float = 1.0) -> Pace:
    return Pace(step_ms, (cpu,) * len(step_ms))


def reasons(choice: Choice) -> dict:
    return {other.value: other.why for other in choice.alternatives}


def test_the_cache_goes_where_steps_take_less_whatever_that_costs():
    found = {"off": pace(3.0, 3.1, 3.0), "auto": pace(2.0, 2.1, 2.0, cpu=9.0)}
    choice = choose_residence(found, "auto")
    assert (choice.setting, choice.value) == (RESIDENCE, "auto")
    assert (choice.measured, choice.why) == (
        "a step takes 2.00 ms, 9.00 CPU-ms",
        "a step takes less",
    )
    assert reasons(choice) == {"off": "a step takes longer"}
    slow = {"off": pace(2.0, 2.1, 2.0), "auto": pace(3.0, 3.1, 3.0)}
    assert choose_residence(slow, "auto").value == "off"


def test_where_steps_take_the_same_the_cache_goes_where_they_cost_less_or_stays():
    found = {"off": pace(2.0, 2.1, 2.0, cpu=3.0), "auto": pace(2.0, 2.0, 2.1)}
    assert choose_residence(found, "auto").why == "it costs less"
    noisy = {"off": pace(2.0, 2.6, 1.5), "on": pace(2.1, 2.4, 2.0)}
    choice = choose_residence(noisy, "on")
    assert (choice.value, choice.why) == ("on", "no difference: it stays")
    assert reasons(choice) == {"off": "no measurable difference"}


def test_the_fewest_steps_a_call_within_the_margin_are_chosen():
    found = {1: pace(4.0, 4.1, 4.0), 4: pace(2.08, 2.0, 2.08), 16: pace(2.0, 2.0, 2.0)}
    choice = choose_calls(found)
    assert (choice.value, choice.measured) == (4, "a step takes 2.08 ms, 1.00 CPU-ms")
    assert choice.why == "the least with which a step takes no longer than with any"
    assert reasons(choice) == {1: "a step takes longer", 16: "gains nothing over 4"}


@pytest.mark.parametrize(
    "many",
    [
        pace(1.95, 1.94, 1.95),  # within the margin
        pace(1.0, 2.5, 1.6),  # beyond it, but for a round that disagrees
    ],
)
def test_gains_that_are_small_or_noise_leave_single_steps(many):
    assert choose_calls({1: pace(2.0, 2.0, 2.0), 16: many}).value == 1


@pytest.mark.parametrize(
    ("setting", "settings", "seen", "word"),
    [
        (RESIDENCE, {}, HOST, "not used here: without a GPU auto is off"),
        (RESIDENCE, {"cache_on_device": "off"}, GPU, "not to be on the device"),
        (RESIDENCE, {}, Circumstances(False, has_gpu=True), "not everything is stored"),
        (RESIDENCE, {}, Circumstances(True, has_gpu=True, obstacle="too big"), "here: too big"),
        (RESIDENCE, {}, Circumstances(True, True, has_gpu=True), "gathers nothing"),
        (RESIDENCE, {}, Circumstances(True, given={RESIDENCE: "flag -x"}), "given by flag -x"),
        (CALLS, {"micro_batches": 4}, HOST, "batches are cut into 4 parts"),
        (CALLS, {"exact_sums": True}, HOST, "batches are cut into 8 parts"),
        (CALLS, {}, Circumstances(True, is_eager=True), "steps run eagerly"),
        (CALLS, {}, Circumstances(True, is_simulated=True), "simulated step needs no call"),
        (CALLS, {}, Circumstances(True, given={CALLS: "flag -x"}), "given by flag -x"),
    ],
)
def test_what_cannot_change_stays_and_says_why(setting, settings, seen, word):
    assert word in reason_to_stay(setting, XTTSConfig(**settings), seen)


def test_what_is_tried():
    tried = partial(candidates, cores=2, utterances=20)
    assert reason_to_stay(RESIDENCE, XTTSConfig(), GPU) == ""
    assert tried(RESIDENCE, XTTSConfig()) == ["off", "auto"]
    assert reason_to_stay(RESIDENCE, XTTSConfig(cache_on_device="on"), HOST) == ""
    assert tried(RESIDENCE, XTTSConfig(cache_on_device="on")) == ["off", "on"]
    assert reason_to_stay(CALLS, XTTSConfig(micro_batches=1), HOST) == ""
    assert tried(CALLS, XTTSConfig(steps_per_call=8)) == [1, 4, 8, 16]


def test_the_pace_is_that_of_whole_calls_behind_the_first(monkeypatch):
    """By a clock on which every step takes 3 ms, and CPU time of a third of that."""
    taken = []

    class Steps(SimulatedStep):
        is_async = False

        def take_all(self, batches, first):
            taken.append(len(batches))
            return super().take_all(batches, first)

    class Data:
        def stream(self):
            batch = {"mel": np.zeros((2, 8, 4)), "index": np.arange(2)}
            yield from ((0, number, batch) for number in range(100))

    monkeypatch.setattr(pacing.time, "perf_counter", lambda: 3e-3 * sum(taken))
    monkeypatch.setattr(pacing.timing, "cpu_seconds", lambda: 1e-3 * sum(taken))
    assert pacing.pace_of(Steps(1e-6), Data(), 4, 4, 8) == pytest.approx((3.0, 1.0))
    assert taken == [4, 4, 4]


CORPUS = {"count": 15, "speakers": 2, "seconds": (0.4, 0.8)}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(tuning, "TRIAL_SECONDS", 0.01)
    monkeypatch.setattr(tuning, "LONG_STEP_MS", float("inf"))
    monkeypatch.setattr(tuning_choices, "STEPS_PER_CALL", (1, 2))


@pytest.fixture
def make_config(shared_corpus, tmp_path, quick):
    return partial(run_config, shared_corpus, tmp_path / "run", preprocessing_mode="precompute")


@pytest.fixture
def measured(monkeypatch):
    """Stands for the measuring: what was asked for, and invented figures by its settings."""
    asked, figures = [], {}

    def pace_of(step, data, steps_per_call, first, counted):
        own = data.config
        asked.append((own.data.cache_on_device, own.training.steps_per_call, steps_per_call))
        assert first % steps_per_call == counted % steps_per_call == 0
        figure = figures[own.data.cache_on_device, steps_per_call]
        if isinstance(figure, Exception):
            raise figure
        return figure

    monkeypatch.setattr(pacing, "pace_of", pace_of)
    monkeypatch.setattr(tuning._Tuner, "step", SimulatedStep(1.0))
    monkeypatch.setattr(tuning._Tuner, "_time_of_a_step", lambda tuner: 1e-3)
    monkeypatch.setattr(tuning._Tuner, "_step_of", lambda tuner, calls: SimulatedStep(1.0))
    return asked, figures


def test_both_are_chosen_by_what_steps_take_and_calls_with_the_chosen_residence(
    make_config, measured, tmp_path
):
    asked, figures = measured
    figures |= {("off", 1): (4.0, 2.0), ("on", 1): (3.0, 2.0), ("on", 2): (2.0, 1.0)}
    found = tune(make_config(cache_on_device="on"), given=OTHERS, rounds=2)
    assert (found[RESIDENCE].value, found[CALLS].value) == ("on", 2)
    assert found.config.training.steps_per_call == 2
    # One round is not counted; and all numbers of steps a call share one order of batches.
    assert asked[:6] == [("off", 1, 1), ("on", 1, 1)] * 3
    assert asked[6:] == [("on", 2, 1), ("on", 2, 2)] * 3
    assert "steps_per_call: 2" in found.as_yaml() and "cache_on_device: 'on'" in found.as_yaml()
    assert "a step takes 3.00 ms, 2.00 CPU-ms" in str(found)
    found.write(tmp_path / "t.yaml")
    assert load_config(tmp_path / "t.yaml") == found.config


def test_a_copy_without_room_is_not_measured_and_the_policy_stays(
    make_config, measured, monkeypatch
):
    asked, figures = measured
    figures |= {("off", 1): (4.0, 2.0), ("on", 1): (2.0, 2.0), ("on", 2): (2.0, 2.0)}
    config = make_config(cache_on_device="on", cache_on_device_share=0.0)
    found = tune(config, given=OTHERS, rounds=2)
    assert found[RESIDENCE].value == "on"
    assert "not measured:" in found[RESIDENCE].why
    assert "cache_on_device_share = 0 of the" in found[RESIDENCE].why
    assert asked[0] == ("off", 1, 1) and asked[1][1] == 2


def test_steps_that_have_no_memory_beside_the_copy_leave_it_to_the_host(make_config, measured):
    _, figures = measured
    figures |= {("off", 1): (4.0, 2.0), ("on", 1): OutOfMemory("none left"), ("off", 2): (4.0, 2.0)}
    found = tune(make_config(cache_on_device="on"), given=OTHERS, rounds=1)
    assert found[RESIDENCE].value == "off" and "ran out of memory" in found[RESIDENCE].why
    assert found[CALLS].value == 1


@pytest.mark.parametrize(
    "error", [OutOfMemory("none left"), tf.errors.ResourceExhaustedError(None, None, "OOM")]
)
def test_several_steps_that_have_no_memory_leave_single_ones(make_config, measured, error):
    _, figures = measured
    figures |= {("auto", 1): (4.0, 2.0), ("auto", 2): error}
    found = tune(make_config(), given=OTHERS, rounds=1)
    assert found[CALLS].value == 1 and "ran out of memory" in found[CALLS].why


def test_next_to_long_steps_calls_are_not_measured(make_config, measured, monkeypatch):
    monkeypatch.setattr(tuning, "LONG_STEP_MS", 0.5)
    asked, _ = measured
    found = tune(make_config(), given=OTHERS, rounds=1)
    assert found[CALLS].value == 1 and "a step takes 1 ms, next to which" in found[CALLS].why
    assert not asked


def test_both_are_really_measured_on_a_copy_in_the_cpu_s_memory(make_config, monkeypatch):
    gathered, dropped = [], []
    gather, drop = tuning.pacing.pace_of, Residence.drop

    def counted(step, data, *lengths):
        found = gather(step, data, *lengths)
        residence = data.tenancy._residence
        gathered.append((data.config.data.cache_on_device, bool(residence and residence.is_ready)))
        return found

    monkeypatch.setattr(pacing, "pace_of", counted)
    monkeypatch.setattr(
        Residence, "drop", lambda self, why="": dropped.append(1) or drop(self, why)
    )
    found = tune(make_config(cache_on_device="on"), given=OTHERS, rounds=1)
    assert {found[RESIDENCE].value, *reasons(found[RESIDENCE])} == {"off", "on"}
    assert {found[CALLS].value, *reasons(found[CALLS])} == {1, 2}
    assert gathered[:4] == [("off", False), ("on", True)] * 2
    assert dropped  # nothing stays on the device


# A run that keeps what was chosen


def chosen(config: XTTSConfig, **settings) -> Tuning:
    return Tuning((), config.replace(**settings, auto_tune=False))


def never(config: XTTSConfig) -> Tuning:
    raise AssertionError("measured again")


def test_a_resumed_run_keeps_its_steps_per_call_and_residence(make_config, tmp_path):
    config = make_config(auto_tune=True)
    choices = {"steps_per_call": 4, "cache_on_device": "off"}
    settle_run(config, None, {}, partial(chosen, **choices))
    (tmp_path / "run/checkpoints/step-00000004").mkdir(parents=True)
    again = settle_run(config, None, {}, never)
    assert (again.training.steps_per_call, again.data.cache_on_device) == (4, "off")
    given = settle_run(config, None, {CALLS: "flag --steps-per-call"}, never)
    assert given.training.steps_per_call == 1


def test_a_run_of_before_keeps_the_steps_per_call_that_it_was_given(make_config, tmp_path):
    """Its file has the settings of its time, which named neither of the two as chosen."""
    config = make_config(auto_tune=True)
    settle_run(config.replace(steps_per_call=4), None, {}, partial(chosen, batch_size=3))
    assert load_config(tmp_path / "run" / FILE).training.steps_per_call == 4
    (tmp_path / "run/checkpoints/step-00000004").mkdir(parents=True)
    assert settle_run(config, None, {}, never).training.steps_per_call == 4


def test_a_run_that_began_untuned_keeps_single_steps(make_config, tmp_path):
    (tmp_path / "run/checkpoints/step-00000004").mkdir(parents=True)
    assert settle_run(make_config(auto_tune=True), None, {}, never).training.steps_per_call == 1
