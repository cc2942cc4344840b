"""The cache on the device: the bits of the other readers, also while it changes hands."""

import logging
import weakref
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from myxtts.data.batches import readers, resident, tenancy
from myxtts.data.batches.device_memory import driver_numbers, shortage
from myxtts.data.batches.graph_reader import Batches, ReaderOptions, cached_batches
from myxtts.data.batches.parts import Share
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.batches.residence import Residence
from myxtts.data.batches.resident import ResidentBatch, resident_batches, stacked
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.store.packed_cache import Embeddings, PackedCache
from tests.data.conftest import configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches
from tests.helpers.resident_cache import copy_at_once

CPU = "/CPU:0"
FRAMES = [40, 7, 33, 12, 64, 25, 3, 51, 18, 30, 9, 77, 20]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces smaller than a column, so that there are several."""
    monkeypatch.setattr("myxtts.data.batches.residence.PIECE_BYTES", 1000)


@pytest.fixture
def at_once(monkeypatch):
    copy_at_once(monkeypatch)


def plan_of(cache: PackedCache, epoch: int = 0, **more) -> BatchPlan:
    options = BatchOptions(**{"batch_size": 3, "multiple": 8, **more})
    return plan_epoch(cache.text_lengths, cache.mel_lengths, options, epoch)


def filled(cache: PackedCache, **more) -> Residence:
    """A residence that was asked to hold a cache."""
    residence = Residence(resident.arrays_of(cache), CPU, **more)
    residence.count()
    residence.wait()
    return residence


def batches_of(cache: PackedCache, plan: BatchPlan, residence: Residence, native=True) -> Batches:
    options = ReaderOptions(native=native)
    return resident_batches(
        residence,
        plan,
        lambda rest: cached_batches(cache, rest, options),
        lambda *rest: resident.utterance_epoch(cache, options, *rest),
    )


def expected_of(cache: PackedCache, plan: BatchPlan) -> list[dict]:
    return arrays_of(readers.host_batches(cache, plan))


@pytest.mark.parametrize(("dtype", "has_voices"), [("float16", True), ("float32", False)])
def test_a_batch_from_the_device_has_the_bits_of_one_from_the_host(make_cache, dtype, has_voices):
    cache = make_cache(FRAMES, dtype).open()
    if has_voices:
        rng = np.random.default_rng(0)
        array = rng.normal(size=(len(cache) + 3, 6)).astype(np.float32)
        rows = rng.permutation(len(array))[: len(cache)].astype(np.int32)
        cache = replace(cache, embeddings=Embeddings(array, rows))
    residence = filled(cache)
    assert residence.is_ready
    for epoch in (0, 1):
        plan = plan_of(cache, epoch)
        found = batches_of(cache, plan, residence)
        assert found.reader == "resident"
        assert all(isinstance(batch, ResidentBatch) for batch in found)
        expected = expected_of(cache, plan)
        assert ("embedding" in expected[0]) == has_voices
        assert_same_batches(arrays_of(found), expected)


@pytest.mark.parametrize("native", [True, False])
def test_batches_change_hands_in_mid_epoch_and_stay_the_same(make_cache, native):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    residence = Residence(resident.arrays_of(cache), CPU)
    found, from_device = [], []
    for batch in batches_of(cache, plan, residence, native):
        from_device.append(isinstance(batch, ResidentBatch))
        found += arrays_of([batch])
        residence.wait()
        if len(found) == 4:
            residence.drop()  # the last one is the host's again
    # The copy began with the first batch, and was waited for in the second.
    assert from_device == [False, False, True, True, False]
    assert_same_batches(found, expected_of(cache, plan))


def test_batches_of_one_shape_are_gathered_together(make_cache):
    cache = make_cache([9, 10, 11, 12, 13, 14, 15, 16]).open()
    plan = plan_of(cache, batch_size=2, multiple=16)
    batches = list(batches_of(cache, plan, filled(cache)))
    assert len({batch.shape for batch in batches}) == 1
    together = stacked(batches[1:])
    for at, expected in enumerate(expected_of(cache, plan)[1:]):
        one = {name: values[at] for name, values in together.items()}
        assert_same_batches(arrays_of([one]), [expected])
    # In another order than the plan's, and from the host, one by one: the same.
    assert_same_batches(
        arrays_of([stacked(batches[:0:-1])]),
        arrays_of([{name: values[::-1] for name, values in together.items()}]),
    )
    batches[0].epoch.residence.drop()
    assert_same_batches(arrays_of([stacked(batches[1:])]), arrays_of([together]))


def test_integers_travel_as_other_numbers_of_the_same_bits(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    for number, batch in enumerate(batches_of(cache, plan, filled(cache))):
        (expected,) = expected_of(cache, plan.part(number, number + 1))
        found = batch.tensors(is_carried=True)
        assert {x.dtype for x in found.values()} == {tf.float16, tf.float32, tf.int64}
        for name, values in found.items():
            assert values.numpy().tobytes() == expected[name].tobytes()


def test_a_batch_knows_its_utterances_and_its_shape_without_being_gathered(make_cache, monkeypatch):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache).skip(2)
    batches = list(batches_of(cache, plan, filled(cache)))
    monkeypatch.setattr(resident.ResidentEpoch, "gather", None)
    for number, batch in enumerate(batches):
        assert batch["index"].tolist() == plan[number].tolist()
        assert batch.shape == (len(plan[number]), plan.frames[number], plan.tokens[number])


def test_memory_that_runs_short_in_a_gather_leaves_the_rest_to_the_host(make_cache, caplog):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    residence = filled(cache)
    batches = list(batches_of(cache, plan, residence))

    def fail(*arguments):
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    epoch = replace(batches[1].epoch, gather_rows=fail)
    assert_same_batches(arrays_of([ResidentBatch(epoch, 1)]), expected_of(cache, plan)[1:2])
    assert residence.is_over and not residence.is_ready
    assert "gathering a batch ran out of memory: the copy of the cache on CPU:0" in caplog.text
    # Those that were planned for the device as well.
    assert_same_batches(arrays_of(batches), expected_of(cache, plan))


def test_what_is_given_up_is_freed_also_after_it_was_gathered_from(make_cache):
    cache = make_cache(FRAMES).open()
    residence = filled(cache)
    batches = list(batches_of(cache, plan_of(cache), residence))
    assert batches[0]["mel"].shape[0] and stacked(batches[1:2])["mel"].shape[0] == 1
    held = [weakref.ref(tensor) for tensor in residence._held.values()]
    assert residence.drop()
    assert [one() for one in held] == [None] * len(held)


def test_a_cache_without_room_is_not_copied(make_cache, caplog):
    cache = make_cache(FRAMES).open()
    residence = filled(cache, shortage=lambda size: f"{size} bytes are too many")
    assert residence.is_over and not residence.is_ready
    assert f"off: {residence.bytes} bytes are too many; the host reads on" in caplog.text
    plan = plan_of(cache)
    assert_same_batches(arrays_of(batches_of(cache, plan, residence)), expected_of(cache, plan))


def test_memory_that_runs_short_while_copying_leaves_it_to_the_host(
    make_cache, caplog, monkeypatch
):
    def fail(residence, array):
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    monkeypatch.setattr(Residence, "_copied", fail)
    residence = filled(make_cache(FRAMES).open())
    assert residence.is_over and not residence.drop()
    assert "CPU:0 has no room for" in caplog.text


def test_what_is_dropped_while_it_is_copied_is_never_used(make_cache, monkeypatch):
    cache = make_cache(FRAMES).open()
    residence = Residence(resident.arrays_of(cache), CPU)
    copy = Residence._copied

    def dropped(own, array):
        own.is_over = True  # as another thread does
        return copy(own, array)

    monkeypatch.setattr(Residence, "_copied", dropped)
    residence.count()
    residence.wait()
    assert not residence.is_ready


# A corpus


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("overlap", [True, False])
def test_the_epochs_of_a_corpus_are_the_same(prepared_path, at_once, native, overlap):
    toggles = {"use_tf_native_loading": native, "optimize_cpu_gpu_overlap": overlap}
    toggles |= {"prefetch_buffer_size": 1}
    data = TrainingData(configured(prepared_path, cache_on_device="on", **toggles))
    plain = TrainingData(configured(prepared_path))
    items, expected = data.stream(0, 2), plain.stream(0, 2)
    from_device = 0
    for _ in range(12):
        epoch, number, batch = next(items)
        assert (epoch, number) == (found := next(expected))[:2]
        assert_same_batches(arrays_of([batch]), arrays_of([found[2]]))
        from_device += isinstance(batch, ResidentBatch)
    assert from_device >= 8
    items.close()
    expected.close()
    assert data.release() and not data.release()


def test_a_replica_gathers_its_own_parts(prepared_path, at_once):
    settings = {"prefetch_buffer_size": 1, "batch_size": 6}
    for rank in (0, 1):
        data = TrainingData(configured(prepared_path, cache_on_device="on", **settings))
        plain = TrainingData(configured(prepared_path, **settings))
        data.share = plain.share = Share(4, rank, 2)
        items, expected = data.stream(), plain.stream()
        found = [next(items)[2] for _ in range(8)]
        assert isinstance(found[-1], ResidentBatch) and "part" in found[-1]
        assert_same_batches(arrays_of(found), arrays_of([next(expected)[2] for _ in range(8)]))
        items.close()
        expected.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"preprocessing_mode": "runtime"}, "the mode runtime stores no features"),
        ({"enable_memory_mapping": False, "use_tf_native_loading": False}, "neither mapped nor"),
    ],
)
def test_what_cannot_lie_on_a_device_is_said_and_read_by_the_host(
    prepared_path, caplog, settings, said
):
    data = TrainingData(configured(prepared_path, cache_on_device="on", **settings))
    items = data.stream()
    next(items)
    items.close()
    assert [r.levelno for r in caplog.records if said in r.message] == [logging.WARNING]


def test_without_a_gpu_auto_leaves_it_off(prepared_path):
    data = TrainingData(configured(prepared_path))
    assert data.tenancy.of_split(data.train, data.config.data) is None
    asked = configured(prepared_path, cache_on_device="on").data
    assert data.tenancy.of_split(data.train, asked).device == CPU


def test_a_gpu_is_the_first_choice(monkeypatch):
    monkeypatch.setattr("myxtts.runtime.gpus", lambda: ["GPU:0", "GPU:1"])
    assert [tenancy._device(choice) for choice in ("auto", "on")] == ["GPU:0", "GPU:0"]


def test_the_share_of_free_memory_is_kept():
    assert shortage(CPU, 1000, 0.5) == ""
    assert "1000000.000 GB are more than cache_on_device_share = 0.5 of the" in shortage(
        CPU, 10**15, 0.5
    )


@pytest.mark.parametrize(
    ("shown", "places", "numbers"),
    [
        (None, [0, 1], [0]),
        (None, [2], [2]),  # of several workers, the third
        ("3,1", [0, 1], [3]),
        ("3,1", [1], [1]),
        ("GPU-8932f937", [0], [0, 1, 2, 3]),  # any of them
        ("", [], [0, 1, 2, 3]),
    ],
)
def test_the_drivers_number_of_a_gpu(shown, places, numbers):
    assert driver_numbers(4, shown, places) == numbers
