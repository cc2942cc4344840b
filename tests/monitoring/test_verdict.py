import pytest

from myxtts.monitoring.verdict import (
    Times,
    distribution,
    loading_grade,
    performance_report,
    verdict,
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


@pytest.mark.parametrize(
    ("data_ms", "compute_ms", "begins", "bottleneck"),
    [
        (4.9, 95.1, "Not input-bound, 4.9 % of the step", "is compute (95.1 ms a step)"),
        (5.0, 95.0, "Moderately input-bound, 5.0 % of the step", "is still compute"),
        (20.0, 80.0, "Moderately input-bound, 20.0 % of the step", "is still compute"),
        (20.1, 79.9, "Highly input-bound, 20.1 % of the step", "is loading (20.1 ms a batch)"),
    ],
)
def test_a_verdict_names_the_bottleneck(data_ms, compute_ms, begins, bottleneck):
    sentence = verdict(data_ms, compute_ms)
    assert sentence.startswith(begins) and f"the bottleneck {bottleneck}" in sentence


def test_a_verdict_says_what_to_do():
    assert "mixed precision" in verdict(1, 99)
    assert "--prefetch-buffer-size" in verdict(10, 90)
    assert "--preprocessing-mode precompute" in verdict(50, 50)


def test_a_report_gives_the_figures_and_the_verdict():
    lines = performance_report([10.0, 20.0, 30.0], [60.0, 80.0, 100.0]).splitlines()
    assert lines == [
        "Performance over 3 steps:",
        "  data:    mean 20.0 ms, median 20.0 ms, p99 29.8 ms",
        "  compute: mean 80.0 ms, median 80.0 ms, p99 99.6 ms",
        "  waiting: 20.0 % of the step; loading is good",
        "  " + verdict(20.0, 80.0),
    ]
