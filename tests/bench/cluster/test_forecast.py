import math
from dataclasses import replace

import pytest

from myxtts.bench.cluster.figures import Network, ScaleCost, StepCost
from myxtts.bench.cluster.forecast import (
    ADDING_UP,
    CHIEF,
    COMPUTE,
    DISK,
    PLANNING,
    READING,
    simulate,
    sweep,
)
from tests.helpers.cluster_figures import CLUSTER, FIGURES


def test_a_step_is_the_sum_of_what_does_not_overlap():
    causes = simulate(FIGURES, CLUSTER).causes
    # Two parts of four utterances for each of eight workers.
    assert causes[COMPUTE] == pytest.approx(0.1 + 2 * 0.4)
    assert causes[READING] == pytest.approx(8 * 0.001)
    # 100 MB to and fro but for an eighth, and 2 x 7 messages for each of two sums.
    assert causes[ADDING_UP] == pytest.approx(2 * 7 / 8 * 0.1 + 2 * 7 * 2 * 1e-3)
    # 262,144 utterances are held out, at 20 ms each, every 500 steps.
    assert causes[CHIEF] == pytest.approx(10 / 1000 + 2**18 * 0.02 / 500)
    steps = 2**20 * 0.75 / 64
    assert causes[PLANNING] == pytest.approx(1e-8 * 2**20 * 20 / steps)
    # Of 64 GB the four workers hold 1,600 B an utterance; the rest keeps a part of the cache.
    missing = 1 - (64e9 - 4 * 2**20 * 1600) / (2**20 * 100e3)
    assert causes[DISK] == pytest.approx(missing * 4 * 8 * 100e3 / 1e9)
    forecast = simulate(FIGURES, CLUSTER)
    rest = causes[ADDING_UP] + causes[CHIEF] + causes[PLANNING]
    assert forecast.step_seconds == pytest.approx(causes[COMPUTE] + rest)
    assert forecast.utterances_per_second == pytest.approx(64 / forecast.step_seconds)
    assert forecast.epoch_hours == pytest.approx(steps * forecast.step_seconds / 3600)


def test_workers_that_cost_nothing_together_are_fully_efficient():
    figures = replace(
        FIGURES,
        step=replace(FIGURES.step, fixed=0.0),
        network=Network(math.inf, 0.0, 1, False),
        save_seconds=0.0,
        scale=ScaleCost(0, 0, 0, 0, 0, 0),
    )
    cluster = replace(CLUSTER, val_fraction=0.0)
    assert [one.efficiency for one in sweep(figures, cluster)] == pytest.approx([1, 1, 1, 1])


def test_a_disk_that_is_slower_than_the_step_decides():
    slow = replace(FIGURES, disk_bandwidth=1e5)
    forecast = simulate(slow, CLUSTER)
    assert forecast.causes[DISK] > forecast.causes[COMPUTE]
    rest = sum(forecast.causes[name] for name in (ADDING_UP, CHIEF, PLANNING))
    assert forecast.step_seconds == pytest.approx(forecast.causes[DISK] + rest)


def test_memory_grows_with_the_workers_of_a_host_and_the_cache_does_not():
    forecast = simulate(FIGURES, CLUSTER)
    assert forecast.worker_bytes == 2**20 * 1600
    assert forecast.host_bytes == 4 * 2**20 * 1600
    assert forecast.cache_bytes == 2**20 * 100e3
    assert forecast.mappings == 512 * 4  # shards of 2,048, four files each
    assert forecast.prepare_seconds == pytest.approx(2**20 * 0.05 / (2 * 8))
    assert forecast.start_seconds == pytest.approx(2**20 * (11e-6 + 20e-8))


def test_a_batch_of_fewer_utterances_than_workers_leaves_some_idle():
    small = replace(CLUSTER, batch_size=6, micro_batches=8)
    assert small.own_parts == 1 and small.part_utterances == 1
    # A part of one utterance is a quarter of what was measured.
    assert simulate(FIGURES, small).causes[COMPUTE] == pytest.approx(0.1 + 0.4 / 4)


def test_a_failure_costs_the_restart_the_start_and_half_an_interval():
    failing = replace(CLUSTER, failures_per_worker_hour=0.5, restart_seconds=60.0)
    forecast = simulate(FIGURES, failing)
    assert forecast.between_failures == 3600 / (0.5 * 8)
    lost = 60 + forecast.start_seconds + 500 * forecast.step_seconds
    assert forecast.lost_to_failures == pytest.approx(lost)
    assert forecast.availability == pytest.approx(900 / (900 + lost))
    assert simulate(FIGURES, CLUSTER).availability == 1.0


def test_threads_follow_the_measured_speedup_and_cores_run_out():
    step = StepCost(0.2, 0.4, utterances=4, threads=2, speedup=1.6)
    assert step.seconds(1, threads=1) == pytest.approx(0.6)
    assert step.seconds(1, threads=2) == pytest.approx(0.6 / 1.6)
    figures = replace(FIGURES, step=step, reader_cpu=0.0)
    two_cores = replace(CLUSTER, workers_per_host=8, cores_per_host=2, batch_size=32)
    causes = simulate(figures, replace(two_cores, micro_batches=8)).causes
    # Eight workers with 0.6 s of a core each on two cores.
    assert causes[COMPUTE] == pytest.approx(8 * 0.6 / 2)


def test_only_numbers_of_workers_that_can_share_a_batch_are_shown():
    cluster = replace(CLUSTER, workers=12, micro_batches=24)
    assert [one.cluster.workers for one in sweep(FIGURES, cluster)] == [1, 2, 4, 8, 12]
    cluster = replace(CLUSTER, workers=6, micro_batches=6)
    assert [one.cluster.workers for one in sweep(FIGURES, cluster)] == [1, 2, 6]
    assert [one.cluster.workers for one in sweep(FIGURES, replace(CLUSTER, workers=1))] == [1]
