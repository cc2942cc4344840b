import math
from dataclasses import replace

import pytest

from myxtts.monitoring.evidence import Evidence, Setup
from myxtts.monitoring.verdict import (
    COMPILATION,
    DEVICE,
    HEALTHY,
    HOST,
    INPUT,
    LAUNCH,
    LEAST_STEPS,
    LOGGING,
    MOST_PREDICTED,
    OVERLAP,
    Times,
    diagnose,
    distribution,
    loading_grade,
    performance_report,
    waiting_share,
)


def test_the_distribution_of_one_to_a_hundred_and_one():
    # Of 101 equally spaced values the 99th percentile is the hundredth.
    assert distribution(list(range(1, 102))) == Times(mean=51.0, median=51.0, p99=100.0)


@pytest.mark.parametrize(
    ("data_ms", "compute_ms", "share"), [(5, 95, 0.05), (0, 10, 0.0), (10, 0, 1.0), (0, 0, 0.0)]
)
def test_the_waiting_share_is_data_over_the_whole_step(data_ms, compute_ms, share):
    assert waiting_share(data_ms, compute_ms) == share


@pytest.mark.parametrize(
    ("ms", "grade"),
    [(0, "good"), (99.9, "good"), (100, "moderate"), (499.9, "moderate"), (500, "slow")],
)
def test_loading_is_graded_by_the_wait_for_a_batch(ms, grade):
    assert loading_grade(ms) == grade


def evidence(**ms) -> Evidence:
    """Of a hundred steps that lose so many milliseconds next to those of the device."""
    parts = {"device_ms": 80.0, **ms}
    named = {n: v for n, v in parts.items() if n in ("device_ms", "compile_ms", *LOSSES)}
    return Evidence(100, sum(named.values()), **parts)


LOSSES = ("wait_ms", "copy_ms", "gather_ms", "hooks_ms", "host_ms")


@pytest.mark.parametrize(
    ("lost", "stage"),
    [
        ({"wait_ms": 20.0}, INPUT),
        ({"wait_ms": 20.0, "stages": {"read": 3.0, "batching": 9.0}}, "batching"),
        ({"copy_ms": 20.0}, "hand-over"),
        ({"hooks_ms": 20.0}, LOGGING),
        ({"host_ms": 20.0}, HOST),
        ({"host_ms": 20.0, "is_async": True}, LAUNCH),
        ({"gather_ms": 20.0}, "gather"),
        # What is copied once keeps nobody waiting for a batch.
        ({"wait_ms": 20.0, "stages": {"transfer": 30.0, "batching": 9.0}}, "batching"),
        ({"compile_ms": 20.0}, COMPILATION),
        ({"slowdown": 2.0, "best_device_ms": 50.0}, DEVICE),
        ({"slowdown": 1.4, "best_device_ms": 50.0}, HEALTHY),  # noise, not another device
        ({"wait_ms": 4.0}, HEALTHY),
        ({"wait_ms": 3.0, "copy_ms": 3.0, "hooks_ms": 3.0}, HEALTHY),
        ({"wait_ms": 9.0, "hooks_ms": 10.0}, LOGGING),
    ],
)
def test_what_costs_most_is_named(lost, stage):
    verdict = diagnose(evidence(**lost))
    assert verdict.stage == stage and verdict.is_healthy == (stage == HEALTHY)
    if stage != HEALTHY:
        assert verdict.change in verdict.sentence and verdict.change


@pytest.mark.parametrize("lost", [{"host_ms": 20.0, "is_async": True}, {"gather_ms": 20.0}])
@pytest.mark.parametrize(("present", "more"), [(1, 16), (4, 16), (16, 64)])
def test_who_takes_several_steps_a_call_already_is_told_to_take_more(lost, present, more):
    verdict = diagnose(evidence(setup=Setup(steps_per_call=present), **lost))
    assert verdict.change.endswith(f"at once (--steps-per-call {more})")


def test_the_thresholds_of_waiting():
    words = {
        wait: diagnose(evidence(device_ms=100.0 - wait, wait_ms=wait)).sentence.partition(" ")[0]
        for wait in (4.9, 5.0, 20.0, 20.1)
    }
    assert words == {4.9: "Healthy:", 5.0: "Moderately", 20.0: "Moderately", 20.1: "Highly"}


def test_a_gain_is_predicted_from_what_is_lost_or_from_the_change_itself():
    assert diagnose(evidence(wait_ms=120.0)).gain == pytest.approx(200 / 80)
    tried = diagnose(evidence(wait_ms=120.0, stages={"read": 9.0}, after={"read": 100.0}))
    assert tried.gain == pytest.approx(200 / 100)
    assert "predicted 2.00 x as fast" in tried.sentence


@pytest.mark.parametrize("also", [{}, {"call_cpu_ms": 75.0}, {"wait_ms": 300.0}])
def test_an_eager_run_is_named_first_with_its_cause_and_without_a_made_up_gain(also):
    setup = Setup(why_eager="--enable-eager-debug")
    verdict = diagnose(evidence(is_eager=True, setup=setup, **also))
    assert verdict.stage == HOST and not verdict.is_healthy and math.isnan(verdict.gain)
    assert "steps run eagerly, because of --enable-eager-debug" in verdict.sentence
    assert verdict.change == "run steps as a graph (remove --enable-eager-debug)"
    assert "`myxtts profile` measures what that gains" in verdict.sentence
    assert "x as fast" not in verdict.sentence
    unknown = diagnose(evidence(is_eager=True))
    assert "enable_graph_mode: true, no --enable-eager-debug" in unknown.sentence


def test_an_eager_run_is_judged_by_a_graph_where_one_was_tried():
    eager = {"is_eager": True, "call_cpu_ms": 75.0}
    tried = diagnose(evidence(**eager, graph_ms=20.0))
    assert tried.stage == HOST and tried.gain == pytest.approx(4.0)
    assert diagnose(evidence(**eager, graph_ms=79.0)).is_healthy


def test_too_few_steps_predict_no_gain():
    for steps, is_predicted in ((LEAST_STEPS - 1, False), (LEAST_STEPS, True)):
        verdict = diagnose(replace(evidence(wait_ms=120.0), steps=steps))
        assert verdict.stage == INPUT
        assert ("predicted 2.50 x as fast" in verdict.sentence) == is_predicted
        assert math.isnan(verdict.gain) != is_predicted
    few = diagnose(replace(evidence(wait_ms=120.0), steps=2)).sentence
    assert few.endswith(
        "2 steps are too few to predict the gain, `myxtts profile` measures what that gains."
    )


def test_a_gain_beyond_the_cap_is_given_in_words_unless_a_trial_measured_it():
    verdict = diagnose(evidence(device_ms=4.0, wait_ms=96.0))  # 25 x, if nothing else held it up
    assert verdict.gain == MOST_PREDICTED
    assert "predicted more than 10 x as fast" in verdict.sentence
    tried = diagnose(evidence(device_ms=4.0, wait_ms=96.0, after={INPUT: 5.0}))
    assert "predicted 20.00 x as fast" in tried.sentence


def test_nothing_is_predicted_from_steps_that_only_compiled():
    # The first calls of each shape: what the device takes without compiling was never seen.
    verdict = diagnose(evidence(device_ms=0.01, compile_ms=12233.3))
    assert verdict.stage == COMPILATION and math.isnan(verdict.gain)
    assert "x as fast" not in verdict.sentence


def test_overlap_that_is_off_is_to_be_switched_on_and_not_the_mode_changed():
    off = Setup(mode="precompute", overlaps=False)
    verdict = diagnose(evidence(device_ms=50.0, wait_ms=150.0, setup=off))
    assert verdict.stage == OVERLAP and verdict.gain == pytest.approx(200 / 150)
    assert "no --disable-cpu-gpu-overlap" in verdict.change
    assert "--preprocessing-mode" not in verdict.sentence
    # Where features are computed for each batch and take longer than the step, that comes first.
    runtime = Setup(mode="runtime", overlaps=False)
    lost = {"device_ms": 50.0, "wait_ms": 150.0, "stages": {"features": 140.0}}
    assert diagnose(evidence(**lost, setup=runtime)).stage == "features"


def test_where_all_features_are_stored_storing_them_is_no_advice():
    for mode, is_advised in (("precompute", False), ("runtime", True), ("", True)):
        change = diagnose(evidence(wait_ms=40.0, setup=Setup(mode=mode))).change
        assert ("--preprocessing-mode precompute" in change) == is_advised


@pytest.mark.parametrize(
    ("share", "grade", "word"),
    [(4.9, "good", "Healthy"), (5.1, "moderate", "Moderately"), (33.0, "slow", "Highly")],
)
def test_loading_is_graded_by_what_the_verdict_is_given_for(share, grade, word):
    found = evidence(device_ms=100.0 - share, wait_ms=share)
    lines = performance_report([share], [100.0 - share], found).splitlines()
    assert lines[-2] == f"  loading is {grade}"
    assert lines[-1].startswith(f"  {word}")


def test_the_slowest_hook_is_named():
    verdict = diagnose(evidence(hooks_ms=40.0, hooks={"LogHook": 3.0, "FarDisk": 37.0}))
    assert "most of it to FarDisk (37.0 ms a step)" in verdict.sentence
    assert verdict.change == "do it less often (log_interval)"
    verdict = diagnose(evidence(hooks_ms=40.0, hooks={"LogHook": 3.0, "ValidationHook": 37.0}))
    assert verdict.change == "do it less often (--validation-interval)"


def test_utilisation_is_compute_over_compute_and_wait():
    assert evidence(wait_ms=20.0).utilisation == pytest.approx(0.8)
    assert Evidence(0, 0.0, 0.0).utilisation == 0.0


def test_a_report_gives_the_figures_and_the_verdict():
    found = evidence(wait_ms=20.0)
    lines = performance_report([10.0, 20.0, 30.0], [60.0, 80.0, 100.0], found).splitlines()
    assert lines == [
        "Performance over 3 steps:",
        "  data:    mean 20.0 ms, median 20.0 ms, p99 29.8 ms",
        "  compute: mean 80.0 ms, median 80.0 ms, p99 99.6 ms",
        "  device:  busy 80.0 % of the time; waiting for data 20.0 %, for copies 0.0 %, for "
        "logging 0.0 %, for the host 0.0 %; compiling 0.0 %",
        "  loading is moderate",
        f"  {diagnose(found)}",
    ]
