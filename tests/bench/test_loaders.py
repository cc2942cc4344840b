import importlib
import time
from pathlib import Path

import numpy as np
import pytest

from myxtts.bench import synthetic_cache as synthetic
from myxtts.bench import timing
from myxtts.bench.loaders import NAIVE, RESIDENT, TOGGLES, bench_data
from myxtts.bench.timing import Cost, Stall, Target
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.readers import host_batches
from myxtts.data.store.packed_cache import open_cache
from myxtts.monitoring.verdict import loading_grade
from tests.helpers.make_corpus import make_corpus

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark_module(monkeypatch):
    """Import a benchmark as its own folder sees it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_costs_and_stalls_are_worked_out_from_their_numbers():
    cost = Cost(utterances=2000, batches=40, cpu_seconds=0.5, wall_seconds=4.0)
    assert (cost.cpu_per_1000, cost.samples_per_second, cost.ms_per_batch) == (0.25, 500, 100)
    stall = Stall(compute_seconds=3.0, waits=(0.5,) * 2)
    assert stall.utilisation == 0.75
    assert timing.pooled([stall, Stall(1.0, (0.0,))]).utilisation == 0.8
    assert stall.p99_ms == pytest.approx(500)


def test_ratio_is_the_median_over_rounds_that_ran_side_by_side():
    slow = [Cost(1000, 1, cpu, 1.0) for cpu in (2.0, 30.0, 8.0)]
    fast = [Cost(1000, 1, cpu, 1.0) for cpu in (1.0, 10.0, 2.0)]
    assert timing.cpu_ratio(slow, fast) == 3
    assert timing.median_cost(slow).cpu_seconds == 8


def test_bar_says_whether_it_is_met():
    assert str(Target("a over b", 1.25, 1.4)) == (
        "target: a over b, at most 1.4 x: measured 1.25 x: met"
    )
    assert str(Target("busy", 96.5, 97, at_most=False, unit="%")) == (
        "target: busy, at least 97 %: measured 96.5 %: NOT met"
    )


def test_variants_take_turns():
    order = []
    variants = {name: lambda name=name: order.append(name) or name for name in "ab"}
    assert timing.interleaved(variants, 2) == {"a": ["a", "a"], "b": ["b", "b"]}
    assert order == ["a", "b", "a", "b"]


def test_simulated_accelerator_waits_for_a_slow_loader_only():
    def slow():
        for number in range(4):
            time.sleep(0.02)
            yield number

    awaited = timing.simulate(slow, 0.001)
    assert len(awaited.waits) == 3  # the first batch is start-up
    assert min(awaited.waits) >= 0.02 and awaited.compute_seconds >= 0.003
    assert awaited.utilisation < timing.simulate(lambda: range(4), 0.001).utilisation
    with pytest.raises(ValueError, match="two batches"):
        timing.simulate(lambda: [1], 0.001)


def test_cpu_time_counts_work_and_not_sleep():
    slept = timing.measure(lambda: (time.sleep(0.05) for _ in range(2)), 1)
    assert slept.cpu_seconds < slept.wall_seconds / 2
    worked = timing.measure(lambda: (sum(range(300_000)) for _ in range(3)), 1)
    assert worked.cpu_seconds > 0 and worked.batches == 3


def test_table_is_aligned():
    assert timing.table(("name", "n"), [("a", "1"), ("bc", "23")]).splitlines() == [
        "| name |  n |",
        "| ---- | -: |",
        "| a    |  1 |",
        "| bc   | 23 |",
    ]


def test_bench_of_a_small_corpus_has_every_loader(tmp_path):
    make_corpus(tmp_path / "corpus", count=8, seconds=(0.4, 0.8))
    config = XTTSConfig(
        data_path=str(tmp_path / "corpus"),
        cache_dir=str(tmp_path / "cache"),
        batch_size=4,
        num_workers=1,
        with_pitch=False,
    )
    report = bench_data(config, batches=5, rounds=1, step_ms=(1,))
    assert {loader.name for loader in report.loaders} == {*TOGGLES, *RESIDENT, "runtime", NAIVE}
    assert report.utterances == 8 and report.dtype == "float16"
    for loader in report.loaders:
        expected = (3, 12) if loader.name == "runtime" else (5, 20)
        assert (loader.cost.batches, loader.cost.utterances) == expected
        assert 0 < loader.stalls[1].utilisation <= 1
        assert loader.cost.cpu_seconds > 0 and loader.megabytes >= 0
        assert loader.name in str(report)
    assert report.verdict in str(report)
    assert report.verdict.startswith(
        f"Loading is {loading_grade(report['cached, native'].cost.ms_per_batch)}"
    )


def test_synthetic_cache_has_the_lengths_of_ljspeech(tmp_path):
    seconds = synthetic.utterance_frames(13_100) * 256 / 22050
    assert seconds.mean() == pytest.approx(6.57, abs=0.05)
    assert seconds.min() > 1.05 and seconds.max() < 10.15
    stores = synthetic.make_stores(tmp_path, 5, "float16")
    cache = open_cache(*stores)
    frames = dict(
        zip(map(synthetic.utterance_id, range(5)), synthetic.utterance_frames(5), strict=True)
    )
    assert {name: frames[name] for name in cache.ids} == frames
    assert [frames[name] for name in cache.ids] == cache.mel_lengths.tolist()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mel")}
    synthetic.make_stores(tmp_path, 5, "float16")
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mel")}


def test_memcpy_moves_as_many_bytes_as_the_batches_have(benchmark_module, tmp_path):
    pipeline = benchmark_module("input_pipeline")
    cache = open_cache(*synthetic.make_stores(tmp_path, 6, "float32"))
    options = pipeline.BatchOptions(batch_size=4)
    plan = pipeline.plan_epoch(cache.text_lengths, cache.mel_lengths, options)
    batches = list(host_batches(cache, plan))
    moved = [sum(batch[name].nbytes for name in cache.columns) for batch in batches]
    assert [len(copy) for copy in pipeline.memcpy(cache, plan)] == moved


def test_shards_of_a_scaled_store_share_their_data(tmp_path):
    count = 2 * synthetic.SHARD
    cache = open_cache(
        *synthetic.make_index(tmp_path / "two", tmp_path / "template", count, "float16")
    )
    assert len(set(cache.ids)) == len(cache) == count
    inodes = {path.stat().st_ino for path in tmp_path.rglob("*.mel")}
    assert len(inodes) == 1
    mel = cache.columns["mel"].array
    starts = np.sort(cache.starts["mel"])
    assert np.array_equal(mel[starts[0]], mel[starts[synthetic.SHARD]])
