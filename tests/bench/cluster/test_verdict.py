from dataclasses import replace

import pytest

from myxtts.bench.cluster.figures import ASSUMED, GIVEN, MEASURED, Figures, Network
from myxtts.bench.cluster.forecast import CHIEF, Cluster, simulate, sweep
from myxtts.bench.cluster.report import describe, verdict
from myxtts.bench.cluster.verdict import FAILURES, IDLE, OVERHEAD, Finding, judge
from tests.helpers.cluster_figures import CLUSTER, FIGURES

FAST_NETWORK = Network(1e12, 1e-9, 1, False)
PLAIN = replace(CLUSTER, val_fraction=0.0)
QUICK = replace(FIGURES, network=FAST_NETWORK, step=replace(FIGURES.step, fixed=0.001))


def judged(figures: Figures, cluster: Cluster) -> list[Finding]:
    return judge(figures, simulate(figures, cluster))


def test_nothing_is_named_where_nothing_takes_much():
    (found,) = judged(QUICK, PLAIN)
    assert str(found).startswith("Nothing takes 5 % of the time from 8 workers, which are 9")
    assert verdict([found]) == f"Verdict\n  {found}"


def test_the_largest_cost_comes_first_with_its_change():
    first, second, *_ = judged(FIGURES, replace(CLUSTER, val_fraction=0.01))
    assert first.what == CHIEF and second.what == "adding up"
    assert "validating 10.5 thousand utterances, which the chief does alone" in str(first)
    assert "hold out fewer (--val-fraction)" in str(first)
    assert "adding up gradients of 100 MB: a faster network (--network-gbps)" in str(second)
    assert first.share > second.share


def test_a_ring_of_many_workers_is_held_back_by_its_messages():
    many = replace(PLAIN, workers=1024, micro_batches=1024, batch_size=4096)
    first = judged(FIGURES, many)[0]
    assert "most of it to 4,092 messages one after the other" in str(first)


def test_saving_often_is_the_chiefs_other_work():
    often = replace(PLAIN, save_interval=10)
    assert "saving, which the others wait for: save less often" in str(judged(QUICK, often)[0])


def test_fixed_costs_and_idle_workers_are_told_apart():
    heavy = replace(QUICK, step=replace(FIGURES.step, fixed=0.5))
    assert judged(heavy, PLAIN)[0].what == OVERHEAD
    small = replace(PLAIN, batch_size=4, micro_batches=8)
    first = judged(QUICK, small)[0]
    assert first.what == IDLE
    assert "a batch has 4 for 8 workers: choose --batch-size and --micro-batches" in str(first)


@pytest.mark.parametrize(
    ("figures", "cluster", "said"),
    [
        (QUICK, {"memory_per_host": 1e9}, "156 thousand utterances fit"),
        (replace(QUICK, map_limit=100), {}, "2,048 files that every worker maps"),
        (replace(QUICK, stored_bytes=1e9), {}, "The cache has 1,049 TB"),
        (QUICK, {"failures_per_worker_hour": 10.0}, "A worker fails every 45.0 s"),
    ],
)
def test_what_no_run_gets_past_comes_first(figures, cluster, said):
    first = judged(figures, replace(PLAIN, **cluster))[0]
    assert first.is_fatal and said in str(first)
    assert verdict([first]).splitlines()[1] == f"  It cannot run: {first}"


def test_failures_name_a_better_interval():
    failing = replace(PLAIN, failures_per_worker_hour=0.2, restart_seconds=1.0)
    first = judged(QUICK, failing)[0]
    assert first.what == FAILURES
    # Young: sqrt(2 x 10 s x 2,250 s) = 212 s, of steps of 0.8112 s.
    assert "save more often (--save-interval 262)" in str(first)


def test_the_report_says_where_every_figure_comes_from():
    figures = replace(FIGURES, sample="made-up recordings").replace(GIVEN, disk_bandwidth=2e9)
    forecasts = sweep(figures, replace(CLUSTER, val_fraction=0.01))
    said = describe(figures, forecasts, judge(figures, forecasts[-1]), {"memory_gb"})
    lines = {line.split("|")[1].strip(): line for line in said.splitlines() if "|" in line}
    assert lines["disk"].endswith(f"{GIVEN} |") and lines["memory per host"].endswith("given |")
    assert lines["a step"].endswith(f"{MEASURED} |") and lines["restart"].endswith(f"{ASSUMED} |")
    assert lines["network between hosts"].endswith("assumed |")
    assert [lines[name].split()[1] for name in ("1", "2", "4", "8")] == ["1", "2", "4", "8"]
    assert "1.05 million utterances on 8 workers need" in said
    assert "\nVerdict\n  Held back first: " in said and "\n  Held back second: " in said
