"""Batches of arrays, and the threads that make them ahead of the step."""

import threading
import time

import numpy as np
import pytest

from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.data.batches.readers import (
    _bundled,
    filling_batches,
    host_batches,
    in_background,
    mapped_ahead,
    reading_ahead,
)
from myxtts.data.store.packed_cache import PackedCache
from myxtts.data.store.view import ColumnData
from tests.helpers.compare_batches import arrays_of, assert_same_batches

FRAMES = [40, 7, 33, 12, 64, 25, 3, 51, 18, 30, 9]
DTYPES = {
    "tokens": "int32",
    "text_lengths": "int32",
    "mel": "float16",
    "mel_lengths": "int32",
    "energy": "float32",
    "pitch": "float32",
    "speaker": "int32",
    "language": "int32",
    "index": "int64",
}


def plan_of(cache: PackedCache, batch_size: int = 4, epoch: int = 0) -> BatchPlan:
    options = BatchOptions(batch_size=batch_size, multiple=8)
    return plan_epoch(cache.text_lengths, cache.mel_lengths, options, epoch)


def expected_batches(arrays: list[dict], speakers: np.ndarray, plan: BatchPlan) -> list[dict]:
    """The batches as NumPy's own padding makes them."""
    batches = []
    for number in range(len(plan)):
        chosen = plan[number]
        batch = {
            "text_lengths": np.array([len(arrays[i]["tokens"]) for i in chosen], np.int32),
            "mel_lengths": np.array([len(arrays[i]["mel"]) for i in chosen], np.int32),
            "speaker": speakers[chosen],
            "language": np.zeros(len(chosen), np.int32),
            "index": chosen.astype(np.int64),
        }
        for name in ("tokens", "mel", "energy", "pitch"):
            width = int(plan.tokens[number] if name == "tokens" else plan.frames[number])
            padded = []
            for i in chosen:
                values = arrays[i][name]
                after = [(0, width - len(values))] + [(0, 0)] * (values.ndim - 1)
                padded.append(np.pad(values, after))
            batch[name] = np.stack(padded)
        batches.append(batch)
    return batches


# The host reader


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_batch_holds_the_stored_bits_padded_with_zeros(make_cache, dtype):
    made = make_cache(FRAMES, dtype)
    cache = made.open()
    plan = plan_of(cache)
    found = list(host_batches(cache, plan))
    assert_same_batches(found, expected_batches(made.arrays, cache.speaker, plan))
    dtypes = DTYPES | {"mel": dtype}
    assert {name: str(value.dtype) for name, value in found[0].items()} == dtypes


@pytest.mark.parametrize("how", [{"mapped": False}, {"in_memory": True}])
def test_files_give_the_same_batches_mapped_or_read(make_cache, how):
    made = make_cache(FRAMES)
    plan = plan_of(made.open())
    expected = arrays_of(host_batches(made.open(), plan))
    assert_same_batches(arrays_of(host_batches(made.open(**how), plan)), expected)


def test_a_batch_is_its_own_memory(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    expected = arrays_of(host_batches(cache, plan))
    kept = list(host_batches(cache, plan))
    assert_same_batches(kept, expected)
    kept[0]["mel"][:] = 7
    kept[0]["tokens"][:] = 7
    assert_same_batches(kept[1:], expected[1:])
    assert_same_batches(arrays_of(host_batches(cache, plan)), expected)


def test_arrays_start_where_tensorflow_takes_them_without_a_copy(make_cache):
    cache = make_cache(FRAMES).open()
    for batch in host_batches(cache, plan_of(cache)):
        for name in ("mel", "energy", "pitch", "tokens"):
            assert batch[name].ctypes.data % 64 == 0


def test_a_plan_that_is_skipped_into_gives_the_tail(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache, batch_size=2)
    expected = arrays_of(host_batches(cache, plan))
    for start in range(len(plan) + 1):
        assert_same_batches(arrays_of(host_batches(cache, plan.skip(start))), expected[start:])


# The reader that computes what is not stored


def partly_stored(made, missing: list[int]) -> PackedCache:
    """The cache as if some features had never been computed; the plan's lengths are known."""
    mask = np.isin(np.arange(len(made.arrays)), missing)
    return made.open().without_features(mask)


def test_computed_features_make_the_batches_that_cached_ones_make(make_cache):
    made = make_cache(FRAMES)
    plan = plan_of(made.open())
    expected = arrays_of(host_batches(made.open(), plan))
    for missing in ([], [2, 5, 7], list(range(len(FRAMES)))):
        asked = []

        def look_up(position, asked=asked):
            asked.append(position)
            return {k: v for k, v in made.arrays[position].items() if k != "tokens"}

        found = filling_batches(partly_stored(made, missing), plan, look_up, workers=2, ahead=1)
        assert_same_batches(arrays_of(found), expected)
        assert sorted(asked) == missing


def test_a_computed_length_that_differs_from_the_planned_one_is_the_true_one(make_cache):
    made = make_cache([20, 24], shard=2)
    plan = plan_of(made.open())
    cache = partly_stored(made, [0, 1])
    cut = {k: v[:13] for k, v in made.arrays[0].items() if k != "tokens"}
    whole = {k: v for k, v in made.arrays[1].items() if k != "tokens"}
    (batch,) = filling_batches(cache, plan, [cut, whole].__getitem__, 1, 0)
    row = batch["index"].tolist().index(0)
    assert batch["mel"].shape[1] == plan.frames[0] == 24
    assert batch["mel_lengths"][row] == 13
    np.testing.assert_array_equal(batch["mel"][row, :13], cut["mel"])
    assert not batch["mel"][row, 13:].any() and not batch["pitch"][row, 13:].any()


def test_what_cannot_be_computed_leaves_its_batch_smaller(make_cache):
    made = make_cache(FRAMES)
    plan = plan_of(made.open(), batch_size=2)
    expected = arrays_of(host_batches(made.open(), plan))
    lost = plan[1][0]
    found = arrays_of(filling_batches(partly_stored(made, [lost]), plan, lambda i: None, 2, 2))
    assert [len(batch["index"]) for batch in found] == [2, 1, 2, 2, 2, 1]
    assert found[1]["index"].tolist() == [plan[1][1]]
    assert found[1]["mel"].tobytes() == expected[1]["mel"][1:].tobytes()
    assert_same_batches([found[0], *found[2:]], [expected[0], *expected[2:]])


def test_a_batch_of_which_nothing_can_be_computed_is_empty(make_cache):
    made = make_cache(FRAMES)
    plan = plan_of(made.open(), batch_size=2)
    expected = arrays_of(host_batches(made.open(), plan))
    cache = partly_stored(made, plan[3].tolist())
    found = arrays_of(filling_batches(cache, plan, lambda i: None, 2, 2))
    assert len(found[3]["index"]) == 0 and found[3]["mel"].shape[0] == 0
    assert_same_batches(found[:3] + found[4:], expected[:3] + expected[4:])


# Working ahead


# The background thread


def batch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "batches"]


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_the_background_hands_over_everything_in_order(ahead, count):
    assert list(in_background(range(count), ahead)) == list(range(count))
    assert not batch_threads()


def test_the_background_works_in_another_thread():
    (worker,) = in_background((threading.current_thread() for _ in range(1)), 2)
    assert worker is not threading.current_thread()


def test_an_error_of_the_producer_is_raised_after_what_came_before_it():
    def produce():
        yield 1
        yield 2
        raise ZeroDivisionError("third")

    items = in_background(produce(), 4)
    assert next(items) == 1 and next(items) == 2
    with pytest.raises(ZeroDivisionError, match="third"):
        next(items)
    assert not batch_threads()


def test_stopping_early_ends_the_thread_and_closes_the_source():
    closed = []

    def endless():
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            closed.append(True)

    items = in_background(endless(), 2)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    assert len(batch_threads()) == 1
    items.close()
    assert closed == [True]
    assert not batch_threads()


def test_the_background_is_never_further_ahead_than_asked():
    made = []

    def produce():
        for number in range(20):
            made.append(number)
            yield number

    items = in_background(produce(), 3)
    for number in items:
        deadline = time.monotonic() + 0.02
        while time.monotonic() < deadline:
            # Taken, waiting in the queue, and one in the hand of the thread.
            assert len(made) <= number + 1 + 3 + 1
            time.sleep(0.005)
    assert len(made) == 20


def test_the_thread_frees_what_was_used_and_holds_two_beside_the_queue():
    freed_by = []

    class Item:
        def __del__(self):
            freed_by.append(threading.current_thread().name)

    items = in_background((Item() for _ in range(20)), 2)
    for number, item in enumerate(items):
        del item
        deadline = time.monotonic() + 10
        while len(freed_by) < min(number - 1, 20 - 4) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(freed_by) >= min(number - 1, 20 - 4)
    assert freed_by.count("batches") >= 14


# Reading ahead


def test_the_kernel_is_asked_for_the_batches_to_come(make_cache, monkeypatch):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache, batch_size=2)
    asked = []
    monkeypatch.setattr(ColumnData, "resident_fraction", lambda self: 0.5)
    monkeypatch.setattr(PackedCache, "read_ahead", lambda self, chosen: asked.append(chosen))
    advance = reading_ahead(cache, plan, 2)
    for taken in range(len(plan)):
        advance(taken)
    assert [chosen.tolist() for chosen in asked] == [plan[i].tolist() for i in range(6)]


def test_nothing_is_asked_where_the_cache_is_in_memory(make_cache, monkeypatch):
    made = make_cache(FRAMES)
    monkeypatch.setattr(ColumnData, "read_ahead", lambda *args: pytest.fail("asked"))
    cache = made.open(in_memory=True)
    assert reading_ahead(cache, plan_of(cache), 2) is None
    monkeypatch.setattr(ColumnData, "resident_fraction", lambda self: 1.0)
    cache = made.open()
    assert reading_ahead(cache, plan_of(cache), 2) is None


def test_asking_the_kernel_changes_nothing(make_cache):
    cache = make_cache(FRAMES).open()
    plan = plan_of(cache)
    expected = arrays_of(host_batches(cache, plan))
    cache.read_ahead(np.arange(len(cache)))
    assert_same_batches(arrays_of(host_batches(cache, plan)), expected)


def test_labels_follow_the_utterance_when_some_are_selected(make_cache):
    cache = make_cache(FRAMES).open()
    chosen = np.array([8, 2, 5])
    part = cache.select(chosen)
    (batch,) = host_batches(part, plan_of(part))
    order = chosen[batch["index"]]
    np.testing.assert_array_equal(batch["speaker"], cache.speaker[order])
    np.testing.assert_array_equal(batch["mel_lengths"], cache.mel_lengths[order])
    np.testing.assert_array_equal(batch["text_lengths"], cache.text_lengths[order])


# Working on items ahead


def test_work_ahead_keeps_the_order_and_closes_its_source():
    closed, begun = [], []

    def items():
        try:
            for number in range(100):
                begun.append(number)
                yield number
        finally:
            closed.append(True)

    found = mapped_ahead(items(), lambda number: number * 10, workers=2)
    assert [next(found) for _ in range(3)] == [0, 10, 20]
    assert len(begun) <= 6  # two ahead, and no more
    found.close()
    assert closed == [True]
    assert list(mapped_ahead(iter(range(5)), str, 2)) == ["0", "1", "2", "3", "4"]


def test_what_work_ahead_raises_is_raised_in_its_turn():
    found = mapped_ahead(iter([1, 0, 2]), lambda number: 6 // number, workers=1)
    assert next(found) == 6
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_light_items_are_handed_over_together_in_their_order():
    items = ["a", 1, 2, "b", *range(40), "c"]
    assert list(in_background(items, 2, lambda item: isinstance(item, int))) == items
    awaited = iter([True, False, False] + [False] * 40)
    bundles = list(_bundled(items, lambda item: isinstance(item, int), lambda: next(awaited)))
    assert [len(bundle) for bundle in bundles] == [1, 1, 1, 1, 16, 16, 8, 1]
    assert [item for bundle in bundles for item in bundle] == items
