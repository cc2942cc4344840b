"""Batches of tensors: one set of bits by every reader, and no copy of the cache in memory."""

import logging
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import DataConfig
from myxtts.data.batches import graph_reader, readers
from myxtts.data.batches.graph_reader import Batches, ReaderOptions, cached_batches, native_dataset
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.batches.runtime_reader import runtime_dataset
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.store import workers
from myxtts.data.store.errors import CacheError
from myxtts.data.store.packed_cache import PackedCache
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.store import Store
from tests.data.conftest import configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches

FRAMES = [40, 7, 33, 12, 64, 25, 3, 51, 18, 30, 9, 77, 20]


def plan_of(cache: PackedCache, batch_size: int = 3, epoch: int = 0) -> BatchPlan:
    options = BatchOptions(batch_size=batch_size, multiple=8)
    return plan_epoch(cache.text_lengths, cache.mel_lengths, options, epoch)


def host_options(**changes) -> ReaderOptions:
    return ReaderOptions(native=False, **changes)


# The same bits by every reader


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_native_and_host_readers_give_identical_bits(make_cache, dtype):
    cache = make_cache(FRAMES, dtype).open()
    for epoch in (0, 1):
        plan = plan_of(cache, epoch=epoch)
        expected = arrays_of(readers.host_batches(cache, plan))
        native = cached_batches(cache, plan, ReaderOptions())
        host = cached_batches(cache, plan, host_options())
        assert (native.reader, host.reader) == ("native", "host")
        assert_same_batches(arrays_of(native), expected)
        assert_same_batches(arrays_of(host), expected)
        assert expected[0]["mel"].dtype == dtype


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("changes", [{"overlap": False}, {"prefetch": 1}, {"device": "/CPU:0"}])
def test_how_batches_are_brought_does_not_change_them(make_cache, native, changes):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    batches = cached_batches(cache, plan, ReaderOptions(native=native, **changes))
    assert_same_batches(arrays_of(batches), arrays_of(readers.host_batches(cache, plan)))


def test_a_cache_in_memory_is_read_natively_too(make_cache):
    made = make_cache(FRAMES)
    plan = plan_of(made.open())
    batches = cached_batches(made.open(in_memory=True), plan, ReaderOptions())
    assert batches.reader == "native"
    assert_same_batches(arrays_of(batches), arrays_of(readers.host_batches(made.open(), plan)))


def test_parallel_calls_keep_the_order(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache, batch_size=1)
    dataset = native_dataset(cache, plan, ReaderOptions(), parallel_calls=2)
    assert_same_batches(arrays_of(dataset), arrays_of(readers.host_batches(cache, plan)))


def test_datasets_of_both_readers_have_one_signature_and_the_same_batches(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    native = native_dataset(cache, plan, ReaderOptions())
    make = lambda: readers.host_batches(cache, plan)  # noqa: E731
    host = graph_reader.host_dataset(make, cache, host_options())
    assert native.element_spec == host.element_spec
    assert native.element_spec["mel"] == tf.TensorSpec([None, None, 5], tf.float16)
    assert_same_batches(arrays_of(native), arrays_of(host))


def test_padding_is_zero_and_lengths_are_true(make_cache):
    made = make_cache(FRAMES)
    cache = made.open()
    for batch in arrays_of(cached_batches(cache, plan_of(cache), ReaderOptions())):
        for row, position in enumerate(batch["index"].tolist()):
            length = len(made.arrays[position]["mel"])
            assert batch["mel_lengths"][row] == length
            assert batch["text_lengths"][row] == len(made.arrays[position]["tokens"])
            assert not batch["mel"][row, length:].any()
            assert not batch["tokens"][row, batch["text_lengths"][row] :].any()
            assert batch["mel"][row, :length].tobytes() == made.arrays[position]["mel"].tobytes()


def test_native_loading_of_a_cache_that_is_neither_mapped_nor_in_memory_is_refused(make_cache):
    cache = make_cache(FRAMES).open(mapped=False)
    with pytest.raises(CacheError, match="enable_memory_mapping or memory_cache"):
        native_dataset(cache, plan_of(cache), ReaderOptions())


# What the graph holds


def operations(dataset: tf.data.Dataset) -> set[str]:
    """Every kind of operation in a dataset's graph and in its functions."""
    graph = tf.compat.v1.GraphDef.FromString(dataset._as_serialized_graph().numpy())
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return {node.op for node in nodes}


def test_the_native_graph_calls_no_python(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    found = operations(native_dataset(cache, plan, ReaderOptions()))
    assert "GatherV2" in found
    assert not {op for op in found if "PyFunc" in op or op == "GeneratorDataset"}
    assert any("PrefetchDataset" in op for op in found)
    waiting = operations(native_dataset(cache, plan, ReaderOptions(overlap=False)))
    assert not any("PrefetchDataset" in op for op in waiting)
    make = lambda: readers.host_batches(cache, plan)  # noqa: E731
    assert "GeneratorDataset" in operations(graph_reader.host_dataset(make, cache, host_options()))


def test_all_shapes_go_through_one_trace(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    dataset = native_dataset(cache, plan, ReaderOptions())
    traces = []

    @tf.function(input_signature=[dataset.element_spec])
    def step(batch):
        traces.append(batch)
        return tf.reduce_sum(tf.cast(batch["mel"], tf.float32))

    for native in (True, False):
        batches = cached_batches(cache, plan, ReaderOptions(native=native))
        sums = [float(step(batch)) for batch in batches]
        expected = [
            batch["mel"].sum(dtype=np.float64) for batch in readers.host_batches(cache, plan)
        ]
        np.testing.assert_allclose(sums, expected, rtol=1e-3, atol=1e-3)
    assert len(plan.shapes()) > 2
    assert len(traces) == 1


def test_a_stage_does_the_same_mapped_and_eager(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)

    def masked_mean(batch):
        mask = tf.sequence_mask(batch["mel_lengths"], tf.shape(batch["mel"])[1], tf.float32)
        total = tf.reduce_sum(tf.cast(batch["mel"], tf.float32) * mask[..., None])
        return {"mean": total / tf.reduce_sum(mask), "index": batch["index"]}

    eager = [masked_mean(batch) for batch in cached_batches(cache, plan, ReaderOptions())]
    mapped = native_dataset(cache, plan, ReaderOptions()).map(masked_mean)
    for one, other in zip(arrays_of(eager), arrays_of(mapped), strict=True):
        np.testing.assert_allclose(one["mean"], other["mean"], rtol=1e-6)
        np.testing.assert_array_equal(one["index"], other["index"])


# An epoch as an object


@pytest.mark.parametrize("native", [True, False])
def test_an_epoch_can_be_read_twice_and_times_every_batch(make_cache, native):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    batches = cached_batches(cache, plan, ReaderOptions(native=native))
    assert len(batches) == len(plan) == 5
    assert batches.data_ms == []
    first = arrays_of(batches)
    assert len(batches.data_ms) == 5
    assert_same_batches(arrays_of(batches), first)
    assert len(batches.data_ms) == 5
    assert all(0 <= waited < 60_000 for waited in batches.data_ms)


def test_the_wait_for_a_batch_is_what_the_producer_takes():
    def slow():
        for pause in (0.0, 0.06, 0.0):
            threading.Event().wait(pause)
            yield {"index": np.zeros(1)}

    batches = Batches(slow, plan=None, reader="")
    assert len(list(batches)) == 3
    assert len(batches.data_ms) == 3 and batches.data_ms[1] >= 60


@pytest.mark.parametrize("native", [True, False])
def test_stopping_in_the_middle_leaves_no_thread_behind(make_cache, native):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache, batch_size=1)
    batches = iter(cached_batches(cache, plan, ReaderOptions(native=native)))
    next(batches), next(batches)
    batches.close()
    assert "batches" not in {thread.name for thread in threading.enumerate()}


def test_an_error_of_the_host_reader_reaches_the_step(make_cache):
    made = make_cache(FRAMES)
    cache = made.open(mapped=False)
    Path(cache.columns["mel"].paths[0]).unlink()
    with pytest.raises(FileNotFoundError):
        list(cached_batches(cache, plan_of(cache), host_options()))


@pytest.mark.parametrize("native", [True, False])
def test_going_on_in_the_middle_gives_the_tail(make_cache, native):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    options = ReaderOptions(native=native)
    expected = arrays_of(cached_batches(cache, plan, options))
    for start in (1, 3, len(plan)):
        rest = cached_batches(cache, plan.skip(start), options)
        assert len(rest) == len(plan) - start
        assert_same_batches(arrays_of(rest), expected[start:])


# What a configuration asks for


def test_without_memory_mapping_the_host_reader_is_used_and_the_log_says_so(caplog):
    options = graph_reader.reader_options(DataConfig(enable_memory_mapping=False))
    assert not options.native
    assert "enable_memory_mapping" in caplog.text and "host reader" in caplog.text
    caplog.clear()
    kept = DataConfig(enable_memory_mapping=False, memory_cache=True)
    assert graph_reader.reader_options(kept).native
    assert not caplog.records


def test_prefetching_to_a_gpu_without_one_says_that_it_is_inactive(caplog, monkeypatch):
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [])
    graph_reader._gpu.cache_clear()
    with caplog.at_level(logging.INFO, logger="myxtts"):
        assert graph_reader.reader_options(DataConfig()).device == ""
        assert "prefetch_to_gpu: inactive: no GPU" in caplog.text
        caplog.clear()
        assert graph_reader.reader_options(DataConfig(prefetch_to_gpu=False)).device == ""
        assert "GPU" not in caplog.text
    graph_reader._gpu.cache_clear()


def test_with_a_gpu_batches_go_to_it_unless_that_is_switched_off(monkeypatch):
    monkeypatch.setattr(graph_reader, "gpus", lambda: ["/GPU:0"])
    graph_reader._gpu.cache_clear()
    assert graph_reader.reader_options(DataConfig()).device == "/GPU:0"
    assert graph_reader.reader_options(DataConfig(enhanced_gpu_prefetch=False)).device == ""
    assert graph_reader.reader_options(DataConfig(optimize_cpu_gpu_overlap=False)).device == ""
    graph_reader._gpu.cache_clear()


def test_every_switch_of_the_configuration_reaches_the_reader(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 3)
    data = DataConfig(
        use_tf_native_loading=False,
        prefetch_buffer_size=7,
        optimize_cpu_gpu_overlap=False,
        num_workers=16,
    )
    expected = ReaderOptions(native=False, prefetch=7, overlap=False, device="", workers=3)
    assert graph_reader.reader_options(data) == expected


# Features computed in the graph


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_runtime_features_are_the_cached_ones_up_to_rounding(corpus, dtype):
    settings = {"cache_dtype": dtype}
    runtime = TrainingData(configured(corpus, preprocessing_mode="runtime", **settings))
    found = arrays_of(runtime.train_batches(0))
    cached = TrainingData(configured(corpus, preprocessing_mode="precompute", **settings))
    expected = arrays_of(cached.train_batches(0))
    assert runtime.train_batches(0).reader == "runtime"
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"mel", "energy", "pitch"}:
            np.testing.assert_array_equal(one[name], other[name])
        assert one["mel"].dtype == other["mel"].dtype == dtype
        mel, reference = one["mel"].astype(np.float64), other["mel"].astype(np.float64)
        rounding = np.spacing(np.abs(other["mel"])).astype(np.float64) if dtype == "float16" else 0
        assert (np.abs(mel - reference) <= 1e-3 + rounding).all()
        np.testing.assert_allclose(one["energy"], other["energy"], rtol=1e-3, atol=1e-3)
        assert np.mean(np.abs(one["pitch"] - other["pitch"]) > 1) < 0.01


def test_the_runtime_graph_computes_the_features(corpus):
    data = TrainingData(configured(corpus, preprocessing_mode="runtime"))
    plan = data.train.plan(data.batch_options)
    settings = data.train.location.settings
    dataset = runtime_dataset(data.train.cache, plan, settings, ReaderOptions())
    assert "RFFT" in operations(dataset)
    assert dataset.element_spec["mel"].dtype == tf.float16
    assert set(dataset.element_spec) == set(next(iter(dataset)))


_DROP_EARLY = """
import sys
from tests.data.conftest import configured
from myxtts.data.batches.training_data import TrainingData

if __name__ == "__main__":
    data = TrainingData(configured(sys.argv[1], preprocessing_mode="runtime"))
    for _ in range(8):
        batches = iter(data.train_batches())
        next(batches)
        del batches
    held = iter(data.train_batches())
    next(held)
    print("done", flush=True)  # and one is still open when the process ends
"""


def test_batches_from_recordings_can_be_dropped_midway(corpus):
    """In a process of its own: a deadlock with Python's lock in hand can be ended by none of its
    own threads."""
    result = subprocess.run(
        [sys.executable, "-c", _DROP_EARLY, str(corpus)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=Path(__file__).parents[3],
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


# Memory

_READ_ALL = """
import sys
from pathlib import Path
from myxtts.data.batches.plan import BatchOptions, plan_epoch
from myxtts.data.store.packed_cache import open_cache
from myxtts.data.batches.graph_reader import ReaderOptions, cached_batches
from tests.data.batches.test_graph_reader import large_stores

def anonymous_mb():
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024

def read(folder):
    cache = open_cache(*large_stores(Path(folder)))
    plan = plan_epoch(cache.text_lengths, cache.mel_lengths, BatchOptions(batch_size=8))
    before, most, seen = anonymous_mb(), 0.0, 0
    for batch in cached_batches(cache, plan, ReaderOptions(prefetch=2)):
        most, seen = max(most, anonymous_mb()), seen + len(batch["index"])
    return seen, sum(data.array.nbytes for data in cache.columns.values()) // 2**20, most - before

read(sys.argv[1])  # what TensorFlow itself takes is taken here
print(*read(sys.argv[2]))
"""


def large_stores(folder: Path) -> tuple[Store, Store]:
    columns = (Column("mel", "float16", 80), Column("energy", "float32"))
    return (
        Store(folder / "features", columns, {}),
        Store(folder / "tokens", (Column("tokens", "int32"),), {}),
    )


def fill_large_stores(folder: Path, count: int, frames: int = 1250) -> None:
    """About 0.2 MB of features for each utterance."""
    rng = np.random.default_rng(0)
    values = {
        "mel": rng.normal(size=(frames, 80)).astype(np.float16),
        "energy": np.ones(frames, np.float32),
        "tokens": np.ones(50, np.int32),
    }
    notes = {"text": "", "speaker": "", "language": "en"}
    for store in large_stores(folder):
        store.create()
        arrays = {column.name: values[column.name] for column in store.columns}
        rows = [Row(str(number), 0, 0, arrays, notes) for number in range(count)]
        store.write_shard(rows, [(row.id, 0) for row in rows])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_native_reader_does_not_copy_the_cache_into_memory(tmp_path):
    fill_large_stores(tmp_path / "small", count=16)
    fill_large_stores(tmp_path / "large", count=1000)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", _READ_ALL, str(tmp_path / "small"), str(tmp_path / "large")]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    seen, size, growth = result.stdout.split()
    assert (int(seen), int(size)) == (1000, 198)
    assert float(growth) < 60, f"reading {size} MB took {growth} MB of anonymous memory"
