"""The joined cache: NumPy arrays over all shards, in every way of holding them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from myxtts.audio.threads import single_threaded_blas
from myxtts.data.features import prepare as preparing
from myxtts.data.features.features import compute_features
from myxtts.data.features.keys import keys_of
from myxtts.data.features.prepare import prepare
from myxtts.data.store.errors import CacheError
from myxtts.data.store.packed_cache import memory_cache, open_cache
from myxtts.data.store.shard_writer import Column, Row, hash64
from myxtts.data.store.store import Store, mmap
from myxtts.data.store.view import NOT_CACHED, ColumnData, StoreView
from tests.helpers.tiny_cache import ROOT, TinyCache, locate

COLUMNS = (Column("wave", "float32", 2), Column("count", "int32"))


CORPUS = {"count": 10, "speakers": 2}


@pytest.fixture(scope="module")
def tiny(shared_corpus) -> TinyCache:
    """Ten utterances of two speakers in shards of four."""
    tiny = locate(shared_corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "shard_size", lambda utterances: 4)
        prepare(tiny.utterances, tiny.location, workers=1)
    return tiny


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path / "store", COLUMNS, {})
    made.create()
    return made


def write(store: Store, name: str, length: int, value: int, generation: int = 0):
    arrays = {
        "wave": np.full((length, 2), value, np.float32),
        "count": np.full(length, value, np.int32),
    }
    row = Row(name, value, value, arrays)
    return store.write_shard([row], [(name, value)], generation)


def test_the_cache_opens_without_tensorflow(tiny):
    program = f"""
import sys
from tests.helpers.tiny_cache import locate, arrays
stored = arrays(locate({str(tiny.root)!r}).location)
assert len(stored) == 10, stored.keys()
print(sorted({{type(array).__module__ for row in stored.values() for array in row.values()}}))
print([name for name in sys.modules if name.partition(".")[0] in ("tensorflow", "keras")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == ["['numpy']", "[]", ""]


def test_an_utterance_is_what_its_recording_and_text_become(tiny):
    cache = open_cache(tiny.location.features, tiny.location.tokens, keys_of(tiny.utterances))
    assert list(cache.ids) == [u.id for u in tiny.utterances]
    assert list(cache.texts) == [u.text for u in tiny.utterances]
    assert cache.speakers == ("speaker0", "speaker1") and cache.languages == ("en",)
    assert cache.speaker.tolist() == [0, 1] * 5 and cache.language.tolist() == [0] * 10
    for position, utterance in enumerate(tiny.utterances):
        stored = cache.utterance(position)
        with single_threaded_blas():  # as whoever stores them does: threads round differently
            expected = compute_features(utterance.audio, tiny.location.settings)
        expected["tokens"] = tiny.location.tokenizer.encode(utterance.text)
        assert stored.keys() == expected.keys() == {"tokens", "mel", "energy", "pitch"}
        assert cache.mel_lengths[position] == len(expected["mel"])
        assert cache.text_lengths[position] == len(expected["tokens"])
        for name, array in expected.items():
            np.testing.assert_array_equal(stored[name], array)
        assert stored["mel"].dtype == np.float16 and stored["mel"].shape[1] == 80


def test_mapped_read_and_in_memory_are_the_same(tiny):
    stores = (tiny.location.features, tiny.location.tokens, keys_of(tiny.utterances))
    mapped = open_cache(*stores)
    in_memory = open_cache(*stores, in_memory=True)
    on_demand = open_cache(*stores, mapped=False)
    assert mapped.columns["mel"].is_mapped
    assert not in_memory.columns["mel"].is_mapped
    assert on_demand.columns["mel"].array is None
    for name, data in mapped.columns.items():
        np.testing.assert_array_equal(data.array, in_memory.columns[name].array)
    for position in range(10):
        first, *others = (c.utterance(position) for c in (mapped, in_memory, on_demand))
        for other in others:
            assert all(np.array_equal(first[name], other[name]) for name in first)


def test_without_keys_the_cache_holds_all_that_is_in_both_stores(tiny, tmp_path):
    empty = Store(tmp_path / "none", tiny.location.features.columns, {})
    empty.create()
    full = open_cache(tiny.location.features, tiny.location.tokens)
    assert sorted(full.ids) == [u.id for u in tiny.utterances]
    assert len(open_cache(empty, tiny.location.tokens)) == 0
    keys = keys_of(tiny.utterances)
    tokens_only = open_cache(empty, tiny.location.tokens, keys)
    assert len(tokens_only) == 10 and not tokens_only.is_cached.any()
    unknown = np.append(keys[:2], np.uint64(hash64("nobody")))
    assert list(open_cache(tiny.location.features, tiny.location.tokens, unknown).ids) == [
        "utt-0000",
        "utt-0001",
    ]


def test_a_selection_is_a_view_in_the_given_order(tiny):
    cache = open_cache(tiny.location.features, tiny.location.tokens, keys_of(tiny.utterances))
    chosen = cache.select(np.array([7, 0]))
    mask = np.zeros(10, bool)
    mask[[0, 7]] = True
    assert list(chosen.ids) == ["utt-0007", "utt-0000"]
    assert list(cache.select(mask).ids) == ["utt-0000", "utt-0007"]
    assert chosen.speaker.tolist() == [1, 0]
    assert chosen.columns["mel"] is cache.columns["mel"]
    for name, array in chosen.utterance(0).items():
        np.testing.assert_array_equal(array, cache.utterance(7)[name])


def test_features_can_be_disregarded_and_tokens_stay(tiny):
    cache = open_cache(tiny.location.features, tiny.location.tokens, keys_of(tiny.utterances))
    missing = np.arange(10) == 3
    without = cache.without_features(missing)
    assert without.is_cached.tolist() == (~missing).tolist()
    assert without.starts["mel"][3] == without.starts["pitch"][3] == NOT_CACHED
    np.testing.assert_array_equal(without.starts["tokens"], cache.starts["tokens"])


@pytest.mark.parametrize("in_memory", [False, True])
def test_shards_lie_behind_one_another_in_one_array(store, in_memory):
    names = [write(store, "a", 3, 7).name, write(store, "b", 2, 9).name]
    view = StoreView(store)
    # A file of a few rows has one unit: 65,536 bytes, 8,192 rows of 8 bytes, 16,384 of 4.
    order = {7: 0, 9: 8192} if names[0] < names[1] else {9: 0, 7: 8192}
    first = {int(v): int(s) for v, s in zip(view.contents, view.starts(COLUMNS[0]), strict=True)}
    assert first == order
    assert sorted(view.starts(COLUMNS[1]).tolist()) == [0, 16384]
    data = ColumnData(view, COLUMNS[0], in_memory=in_memory)
    assert data.array.shape == (16384, 2) and data.rows == 16384
    blocks = data.column.blocks(data.array, 16)
    assert blocks.shape == (1024, 32) and not blocks[-1].any()
    assert data.array.ctypes.data % 64 == 0 and data.array.flags.c_contiguous
    expected = np.zeros((16384, 2), np.float32)
    expected[order[7] : order[7] + 3] = 7
    expected[order[9] : order[9] + 2] = 9
    np.testing.assert_array_equal(data.array, expected)


def test_reading_on_demand_finds_the_right_shard(store):
    write(store, "a", 3, 7), write(store, "b", 2, 9)
    view = StoreView(store)
    data = ColumnData(view, COLUMNS[0], mapped=False)
    for value, length in ((7, 3), (9, 2)):
        (row,) = np.flatnonzero(view.contents == value)
        out = np.zeros((length + 1, 2), np.float32)
        data.copy(int(view.starts(COLUMNS[0])[row]), length, out)
        assert out.tolist() == [[value, value]] * length + [[0, 0]]


def test_newer_rows_supersede_older_ones(store):
    write(store, "a", 3, 1, generation=0)
    write(store, "a", 3, 2, generation=2)
    write(store, "a", 3, 3, generation=1)
    write(store, "b", 3, 4, generation=0)
    view = StoreView(store)
    found = view.find(np.array([hash64("b"), hash64("c"), hash64("a")], np.uint64))
    assert found[1] == -1
    assert view.contents[found[[0, 2]]].tolist() == [4, 2]
    assert sorted(view.contents[view.latest].tolist()) == [2, 4]
    assert len(view) == 4


def test_a_file_of_the_wrong_size_is_never_mapped(store):
    index = write(store, "a", 3, 7)
    view = StoreView(store)
    path = store.column_path(index.name, "wave")
    os.truncate(path, 4096)
    with pytest.raises(CacheError, match="4096 bytes instead of 65536"):
        StoreView(store)
    # One that shrank after it was checked, and one that is gone.
    with pytest.raises(OSError, match="4096 bytes instead of 65536"):
        ColumnData(view, COLUMNS[0])
    with pytest.raises(OSError, match="ends 61440 bytes too early"):
        ColumnData(view, COLUMNS[0], in_memory=True)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        ColumnData(view, COLUMNS[0])


def test_mapped_arrays_can_be_asked_for_ahead(tiny):
    cache = open_cache(tiny.location.features, tiny.location.tokens, keys_of(tiny.utterances))
    cache.read_ahead(np.arange(10))
    cache.columns["mel"].array.sum(dtype=np.float64)
    assert cache.columns["mel"].resident_fraction() == 1.0


def test_no_files_make_an_empty_array():
    assert mmap.map_files([], []).shape == (0,)


def test_a_cache_in_memory_holds_tokens_and_no_features(tiny):
    encoded = [np.array([5, 6, 7], np.int32), np.array([8], np.int32)]
    cache = memory_cache(tiny.utterances[:2], encoded, tiny.location.features.columns)
    assert cache.text_lengths.tolist() == [3, 1] and not cache.is_cached.any()
    assert cache.starts["tokens"].tolist() == [0, 16]
    filled = [5, 6, 7, *[0] * 13, 8, *[0] * 15, *[0] * 16]  # two blocks, and one of zeros
    assert cache.columns["tokens"].array.tolist() == filled
