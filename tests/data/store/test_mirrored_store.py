"""A store on object storage and its mirror: what is uploaded, fetched, checked and forgotten."""

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fsspec", reason="object storage needs the extra object-storage")

from myxtts.data.store import remote as remotes
from myxtts.data.store.errors import CacheError
from myxtts.data.store.integrity import find_damage
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.remote import Remote
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.store import Store
from myxtts.data.store.view import ColumnData, StoreView
from tests.helpers.faulty_storage import counted, flip_object, fresh_storage, objects
from tests.helpers.tiny_cache import contents, flip_bit

COLUMNS = (Column("mel", "float16", 5), Column("pitch", "float32"))
BELOW = "/bucket/features"
SHARD = sum(column.padded_bytes(4 * 32) for column in COLUMNS)  # bytes of a shard's columns


@pytest.fixture
def storage():
    with fresh_storage() as storage:
        yield storage


@pytest.fixture
def mirror(storage, tmp_path) -> Callable[..., MirroredStore]:
    """Make a mirror of the one store there is, in a folder of the given name."""

    def make(name: str = "mirror", budget: int = 0) -> MirroredStore:
        remote = Remote("faulty://bucket/features")
        return MirroredStore(tmp_path / name, COLUMNS, {"a": 1}, remote=remote, budget=budget)

    return make


@pytest.fixture
def filled(mirror, storage) -> MirroredStore:
    """Three shards of four utterances, there and here."""
    store = mirror()
    fill(store)
    counted(storage)
    return store


def rows(number: int) -> list[Row]:
    rng = np.random.default_rng(number)
    return [
        Row(
            f"{number}-{i}",
            0,
            0,
            {
                "mel": rng.normal(size=(20 + i, 5)).astype(np.float16),
                "pitch": rng.uniform(80, 300, 20 + i).astype(np.float32),
            },
        )
        for i in range(4)
    ]


def fill(store: Store, shards: int = 3) -> None:
    store.create()
    for number in range(shards):
        part = rows(number)
        store.write_shard(part, [(row.id, 0) for row in part])


def pulled(store: MirroredStore) -> MirroredStore:
    store.pull(store.remote.objects())
    return store


def arrays(store: Store) -> dict[str, list[np.ndarray]]:
    """The arrays of every utterance, from the mapped columns."""
    view = StoreView(store)
    found: dict[str, list[np.ndarray]] = {name: [] for name in view.ids}
    for column in COLUMNS:
        data = ColumnData(view, column).array
        for name, start, length in zip(view.ids, view.starts(column), view.lengths, strict=True):
            found[name].append(np.array(data[start : start + length]))
    return found


def expected_arrays(shards: int = 3) -> dict[str, list[np.ndarray]]:
    return {
        row.id: [row.arrays[column.name] for column in COLUMNS]
        for number in range(shards)
        for row in rows(number)
    }


def assert_same(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_objects_have_the_bytes_of_a_local_store(filled, storage, tmp_path):
    local = Store(tmp_path / "local", COLUMNS, {"a": 1})
    fill(local)
    (local.folder / ".lock").unlink(missing_ok=True)
    assert objects(storage, BELOW) == contents(local.folder)


def test_a_shard_is_uploaded_with_its_index_last(mirror, storage):
    store = mirror()
    store.create()
    counted(storage)
    index = store.write_shard(rows(0), [("0", 0)])
    put = [path for operation, path in storage.asked if operation == "put"]
    assert put == [f"{BELOW}/{index.name}.{kind}" for kind in ("mel", "pitch", "index")]


def test_a_shard_that_was_not_uploaded_exists_nowhere(mirror, storage):
    store = mirror()
    store.create()

    def fault(operation, path):
        if path.endswith(".index"):
            raise PermissionError("Forbidden")

    storage.fault = fault
    with pytest.raises(CacheError, match="Forbidden"):
        store.write_shard(rows(0), [("0", 0)])
    storage.fault = None
    assert store.index_files() == [] and pulled(mirror("other")).index_files() == []
    assert len(store.remove_leftovers()) == 2  # the columns
    store.write_shard(rows(0), [("0", 0)])
    assert_same(arrays(pulled(mirror("other"))), expected_arrays(1))


def test_indexes_come_first_and_columns_when_they_are_opened(filled, mirror, storage):
    other = pulled(mirror("other"))
    assert counted(storage) == {"list": 1, "get": 4}  # three indexes and the manifest
    assert len(StoreView(other)) == 12 and not list(other.folder.glob("*.mel"))
    assert_same(arrays(other), expected_arrays())
    assert counted(storage) == {"get": 6}


def test_nothing_is_fetched_twice(filled, mirror, storage):
    arrays(pulled(mirror("other")))
    counted(storage)
    again = mirror("other")
    assert_same(arrays(pulled(again)), expected_arrays())
    assert counted(storage) == {"list": 1}


def test_processes_that_want_the_same_fetch_it_once(filled, mirror, storage):
    stores = [pulled(mirror("other")) for _ in range(4)]
    shards = stores[0].shards()
    counted(storage)
    threads = [threading.Thread(target=store.make_local, args=(shards,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(storage) == {"get": 6}


def test_a_shard_that_is_gone_there_is_forgotten_here(filled, mirror, storage):
    other = pulled(mirror("other"))
    gone = filled.shards()[0].name
    filled.drop(gone)
    asked = [path for operation, path in storage.asked if operation == "delete"]
    assert asked[0].endswith(".index")
    pulled(other)
    assert len(other.shards()) == 2 and not list(other.folder.glob(f"{gone}.*"))


def test_an_index_that_has_lost_rows_is_fetched_again(filled, mirror):
    other = pulled(mirror("other"))
    index = filled.shards()[0]
    filled.drop_rows(index, [index.ids[0]])
    assert len(StoreView(pulled(other))) == 11
    assert index.ids[0] not in arrays(other)


@pytest.mark.parametrize("kind", ["mel", "pitch"])
def test_a_bit_that_flips_on_the_way_is_fetched_again(filled, mirror, storage, kind, caplog):
    flips = iter([True])

    def fault(operation, path):
        if path.endswith(kind) and next(flips, False):
            return lambda data: bytes([data[0] ^ 1]) + data[1:]

    other = pulled(mirror("other"))
    storage.fault = fault
    assert_same(arrays(other), expected_arrays())
    assert "arrived damaged (damaged utterances): attempt 1 of 3" in caplog.text


@pytest.mark.parametrize("at", [0, -1])
def test_a_bit_that_is_flipped_there_is_an_error_that_names_the_object(filled, mirror, storage, at):
    name = filled.shards()[1].name
    flip_object(storage, f"{BELOW}/{name}.mel", at)
    other = pulled(mirror("other"))
    counted(storage)
    with pytest.raises(CacheError, match=f"faulty://bucket/features/{name}.mel: damaged"):
        arrays(other)
    tried = [path for operation, path in storage.asked if path == f"{BELOW}/{name}.mel"]
    assert len(tried) == 3 and not (other.folder / f"{name}.mel").exists()


def test_an_object_that_ends_too_early_is_refused(filled, mirror, storage):
    def fault(operation, path):
        return (lambda data: data[:-1]) if path.endswith(".pitch") else None

    other = pulled(mirror("other"))
    storage.fault = fault
    with pytest.raises(CacheError, match="has 65535 bytes instead of 65536"):
        arrays(other)


def test_a_damaged_index_is_named_and_its_utterances_are_missing(filled, mirror, storage, caplog):
    name = filled.shards()[2].name
    flip_object(storage, f"{BELOW}/{name}.index", 100)
    assert len(StoreView(pulled(mirror("other")))) == 8
    assert f"faulty://bucket/features/{name}.index is damaged" in caplog.text


def test_damage_on_this_disk_is_fetched_again(filled, storage, caplog):
    flip_bit(sorted(filled.folder.glob("*.mel"))[0], 7)
    assert find_damage(filled) == []
    assert "it will be fetched again" in caplog.text
    assert_same(arrays(filled), expected_arrays())
    assert counted(storage) == {"get": 2}  # the columns of one shard


@pytest.mark.parametrize("kind", ["index", "json"])
def test_damage_of_small_files_on_this_disk_changes_nothing_there(filled, storage, kind):
    before = objects(storage, BELOW)
    flip_bit(sorted(filled.folder.glob(f"*.{kind}"))[0], 90)
    assert find_damage(filled) == []
    filled.create()
    assert_same(arrays(filled), expected_arrays())
    assert objects(storage, BELOW) == before and "delete" not in counted(storage)
    assert filled.verify() == []


def test_verify_reads_what_lies_there(filled, storage):
    assert filled.verify() == []
    assert counted(storage) == {"list": 1, "get": 10}
    damaged, lost, cut = (index.name for index in filled.shards())
    flip_object(storage, f"{BELOW}/{damaged}.mel", 3)
    flip_object(storage, f"{BELOW}/{cut}.index", 40)
    del storage.store[f"{BELOW}/{lost}.pitch"]
    found = {problem.file: problem for problem in filled.verify()}
    assert found.keys() == {f"{damaged}.mel", f"{lost}.pitch", f"{cut}.index"}
    assert len(found[f"{damaged}.mel"].ids) == 1
    assert found[f"{lost}.pitch"].what == "missing" and found[f"{cut}.index"].shard == cut
    del storage.store[f"{BELOW}/store.json"]
    assert "store.json" in {problem.file for problem in filled.verify()}


def test_a_manifest_that_differs_is_written_again(filled, mirror, storage):
    flip_object(storage, f"{BELOW}/store.json", 5)
    other = pulled(mirror("other"))
    other.create()
    assert other.verify() == []
    assert objects(storage, BELOW)["store.json"] == (filled.folder / "store.json").read_bytes()


def test_a_budget_keeps_what_was_used_last(filled, mirror, storage):
    other = pulled(mirror("other", budget=2 * SHARD))
    first, second, third = other.shards()
    for index in (first, second, first, third):
        other.make_local([index])
    here = {path.stem for path in other.folder.glob("*.mel")}
    assert here == {first.name, third.name}
    counted(storage)
    other.make_local([second], keep=[first.name])
    assert {path.stem for path in other.folder.glob("*.mel")} == {first.name, second.name}
    assert counted(storage) == {"get": 2}


def test_preparing_keeps_no_more_than_the_budget(mirror, storage):
    store = mirror(budget=SHARD)
    fill(store)
    assert len(list(store.folder.glob("*.mel"))) == len(list(store.folder.glob("*.pitch"))) == 1
    assert store.exceeds_disk(store.shards()) and store.local_share(10**9) == SHARD
    assert_same(arrays(pulled(mirror("other"))), expected_arrays())


def test_what_is_mapped_stays_when_it_is_forgotten(filled, mirror):
    other = pulled(mirror("other"))
    view = StoreView(other)
    data = ColumnData(view, COLUMNS[0]).array
    before = data.copy()
    for index in other.shards():
        other.shelf.forget(index.name)
    np.testing.assert_array_equal(data, before)


def test_a_disk_that_is_too_small_is_named_before_anything_is_fetched(
    filled, mirror, storage, monkeypatch
):
    other = pulled(mirror("other"))
    counted(storage)
    usage = shutil.disk_usage(other.folder)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(CacheError, match="--local-cache-dir, or limit what is kept"):
        arrays(other)
    assert counted(storage) == {}


def test_what_a_killed_process_left_is_no_shard(filled, mirror):
    other = pulled(mirror("other"))
    (other.folder / ".incoming" / "1-half.mel").write_bytes(b"half")
    other.make_local(other.shards())
    assert list((other.folder / ".incoming").iterdir()) == []
    assert other._leftovers() == []


def test_nothing_is_written_here_where_nothing_lies_there(mirror, tmp_path):
    pulled(mirror("other"))
    assert not (tmp_path / "other").exists()


def test_some_utterances_are_read_without_their_shards(filled, mirror, storage):
    other = pulled(mirror("other"))
    index = other.shards()[0]
    expected = expected_arrays()
    counted(storage)
    found = other.read_rows(index, np.array([3, 1]))
    for name, values in zip((index.ids[3], index.ids[1]), found, strict=True):
        np.testing.assert_array_equal(values["mel"], expected[name][0])
        np.testing.assert_array_equal(values["pitch"], expected[name][1])
    assert counted(storage) == {"range": 4} and not list(other.folder.glob("*.mel"))
    failures = iter([TimeoutError("no answer")])

    def fault(operation, path):
        if error := next(failures, None):
            raise error

    storage.fault = fault
    assert len(other.read_rows(index, np.array([3, 1]))) == 2
    flip_object(storage, f"{BELOW}/{index.name}.pitch")
    with pytest.raises(CacheError, match=f"{index.name}.pitch is damaged"):
        other.read_rows(index, np.array([0]))


def test_an_outage_in_the_middle_delays_and_loses_nothing(
    filled, mirror, storage, monkeypatch, caplog
):
    monkeypatch.setattr(remotes.time, "sleep", lambda seconds: None)
    silent = iter(range(5))

    def fault(operation, path):
        if path.endswith(".pitch") and next(silent, None) is not None:
            raise TimeoutError("no answer")

    other = pulled(mirror("other"))
    storage.fault = fault
    with caplog.at_level(logging.WARNING):
        assert_same(arrays(other), expected_arrays())
    assert caplog.text.count("(no answer): trying again") == 5


def test_a_store_goes_to_a_worker_process(filled, tmp_path: Path):
    import pickle

    copy = pickle.loads(pickle.dumps(filled))
    assert (copy.remote, copy.folder, copy.place) == (filled.remote, filled.folder, filled.place)
