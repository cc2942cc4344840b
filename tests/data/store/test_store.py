"""The packed store: what is written comes back, in known bytes, whole or not at all."""

import errno
import os
import resource
import threading

import numpy as np
import pytest

from myxtts.data.store import store as storing
from myxtts.data.store.errors import CacheError
from myxtts.data.store.shard_index import Strings
from myxtts.data.store.shard_writer import Column, Row, ShardDraft, hash64
from myxtts.data.store.store import Store, fingerprint, shard_name
from tests.helpers.held_store import held_elsewhere

COLUMNS = (Column("wave", "float16", 3), Column("count", "int32"))


def make_row(number: int, length: int, reason: str = "") -> Row:
    """A row whose every value tells where it belongs."""
    count = np.arange(length, dtype=np.int32) + 1000 * (number + 1)
    wave = (np.arange(3 * length).reshape(length, 3) + number).astype(np.float16)
    arrays = {} if reason else {"wave": wave, "count": count}
    notes = {"text": f"سلام {number}"}
    return Row(f"utt-{number}", 10 + number, 20 + number, arrays, notes, reason)


def write(store: Store, rows: list[Row], generation: int = 0):
    return store.write_shard(rows, [(row.id, row.signature) for row in rows], generation)


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path / "store", COLUMNS, {"kind": "test"})
    made.create()
    return made


def rows_of_file(store: Store, shard: str, column: Column) -> np.ndarray:
    return np.fromfile(store.column_path(shard, column.name), column.dtype)


# A row of 80 float16 has 160 bytes; the least multiple of 160 and 65,536 is 327,680 = 2,048 rows.
@pytest.mark.parametrize(
    ("column", "rows", "size"),
    [
        (Column("mel", "float16", 80), 0, 327_680),
        (Column("mel", "float16", 80), 2032, 327_680),
        (Column("mel", "float16", 80), 2048, 655_360),
        (Column("pitch", "float32"), 16_368, 65_536),
        (Column("pitch", "float32"), 16_384, 131_072),
    ],
)
def test_a_file_is_whole_pages_with_room_for_a_block_of_zeros(column, rows, size):
    assert column.padded_bytes(rows) == size
    assert size % 65_536 == 0 and size % column.row_bytes == 0


def test_rows_come_back_with_all_that_is_known_of_them(store):
    rows = [make_row(0, 4), make_row(1, 0, "silent: no sound"), make_row(2, 7)]
    write(store, rows, generation=3)
    (index,) = store.shards()
    assert index.name == shard_name([("utt-0", 10), ("utt-1", 11), ("utt-2", 12)])
    assert (index.generation, index.rows, len(index)) == (3, 32, 3)
    assert list(index.ids) == ["utt-0", "utt-1", "utt-2"]
    assert list(index.notes["text"]) == ["سلام 0", "سلام 1", "سلام 2"]
    assert list(index.notes["reason"]) == ["", "silent: no sound", ""]
    assert index.keys.tolist() == [hash64("utt-0"), hash64("utt-1"), hash64("utt-2")]
    assert index.signatures.tolist() == [10, 11, 12]
    assert index.contents.tolist() == [20, 21, 22]
    assert index.starts.tolist() == [0, 16, 16]  # each on a block
    assert index.lengths.tolist() == [4, 0, 7]
    count = rows_of_file(store, index.name, COLUMNS[1])
    expected = [1000, 1001, 1002, 1003, *[0] * 12, *range(3000, 3007), *[0] * 9]
    assert count[:32].tolist() == expected
    wave = rows_of_file(store, index.name, COLUMNS[0]).reshape(-1, 3)
    np.testing.assert_array_equal(wave[:4], rows[0].arrays["wave"])
    np.testing.assert_array_equal(wave[16:23], rows[2].arrays["wave"])


def test_files_end_with_zeros(store):
    index = write(store, [make_row(0, 5)])
    for column in COLUMNS:
        path = store.column_path(index.name, column.name)
        padding = path.read_bytes()[5 * column.row_bytes :]
        assert path.stat().st_size == index.sizes[column.name] == column.padded_bytes(5)
        assert len(padding) >= column.row_bytes and not any(padding)


def test_bytes_depend_on_the_rows_alone(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        store = Store(folder, COLUMNS, {"kind": "test"})
        store.create()
        write(store, [make_row(0, 3), make_row(1, 2)])
        write(store, [make_row(2, 5)])
    first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
    assert first == second
    assert sorted(name.partition(".")[2] for name in first) == sorted(
        ["lock", "json", *2 * ["index"], *2 * ["wave"], *2 * ["count"]]
    )


def test_flipped_bits_all_over_an_index_are_noticed(store):
    write(store, [make_row(0, 3), make_row(1, 2)])
    (path,) = store.index_files()
    content = path.read_bytes()
    assert len(store.read_index(path)) == 2
    for at in [*range(0, len(content), 11), -4, -1]:
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(CacheError, match="cache fix"):
            store.read_index(path)


def test_a_truncated_index_is_noticed(store):
    write(store, [make_row(0, 3)])
    (path,) = store.index_files()
    content = path.read_bytes()
    for size in [*range(20), *range(20, len(content), 23), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(CacheError, match="is damaged"):
            store.read_index(path)


def test_an_index_under_another_name_is_refused(store):
    index = write(store, [make_row(0, 3)])
    for suffix in ("wave", "count", "index"):
        source = store.column_path(index.name, suffix)
        source.rename(store.folder / f"other.{suffix}")
    with pytest.raises(CacheError, match="describes another shard"):
        store.shards()


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_size_is_refused(store, change):
    index = write(store, [make_row(0, 3)])
    path = store.column_path(index.name, "wave")
    os.truncate(path, index.sizes["wave"] + change)
    size = index.sizes["wave"]
    with pytest.raises(CacheError, match=f"wave has {size + change} bytes instead of {size}"):
        store.shards()


def test_dropping_a_shard_removes_its_files_alone(store):
    gone, kept = write(store, [make_row(0, 3)]), write(store, [make_row(1, 4)])
    store.drop(gone.name)
    assert [shard.name for shard in store.shards()] == [kept.name]
    names = sorted(path.name for path in store.folder.iterdir())
    files = [f"{kept.name}.{suffix}" for suffix in ("count", "index", "wave")]
    assert names == sorted([".lock", "store.json", *files])


def test_dropping_rows_keeps_the_others_in_their_place(store):
    index = write(store, [make_row(0, 3), make_row(1, 4), make_row(2, 5)])
    before = store.column_path(index.name, "wave").read_bytes()
    store.drop_rows(index, ["utt-1"])
    (kept,) = store.shards()
    assert list(kept.ids) == ["utt-0", "utt-2"]
    assert list(kept.notes["text"]) == ["سلام 0", "سلام 2"]
    assert kept.starts.tolist() == [0, 32] and kept.lengths.tolist() == [3, 5]
    assert kept.rows == 48
    assert store.column_path(index.name, "wave").read_bytes() == before
    assert store.verify() == []


def test_dropping_all_rows_drops_the_shard(store):
    index = write(store, [make_row(0, 3), make_row(1, 4)])
    store.drop_rows(index, ["utt-0", "utt-1"])
    assert sorted(path.name for path in store.folder.iterdir()) == [".lock", "store.json"]


def test_damage_names_the_utterances_that_it_costs(store):
    index = write(store, [make_row(0, 3), make_row(1, 4), make_row(2, 5)])
    path = store.column_path(index.name, "wave")
    content = bytearray(path.read_bytes())
    content[16 * 6] ^= 1  # the first byte of utt-1
    content[48 * 6 - 1] ^= 128  # the last of the zeros that fill up utt-2
    path.write_bytes(content)
    (problem,) = store.verify()
    assert problem.file == path.name and problem.shard == index.name
    assert problem.ids == ("utt-1", "utt-2")
    assert str(problem) == f"{path.name}: damaged utterances (2: utt-1, utt-2)"


def test_only_whole_shards_exist_wherever_writing_stops(store, monkeypatch):
    whole = write(store, [make_row(0, 3)])
    replace, calls = os.replace, []

    def stop_at(number: int):
        def stopping(source, target):
            calls.append(target)
            if len(calls) == number:
                raise KeyboardInterrupt
            replace(source, target)

        return stopping

    for number in (1, 2, 3):  # two columns and the index
        calls.clear()
        monkeypatch.setattr(storing.os, "replace", stop_at(number))
        with pytest.raises(KeyboardInterrupt):
            write(store, [make_row(1, 4), make_row(2, 5)])
        assert [shard.name for shard in store.shards()] == [whole.name]
        assert not list(store.folder.glob("*.tmp"))
        assert len(store.remove_leftovers()) == number - 1
    monkeypatch.setattr(storing.os, "replace", replace)
    assert len(write(store, [make_row(1, 4), make_row(2, 5)])) == 2


def test_files_are_synced_before_they_get_their_names_and_the_index_comes_last(store, monkeypatch):
    events = []
    replace, fsync = os.replace, os.fsync

    def record_sync(descriptor):
        events.append("sync")
        fsync(descriptor)

    def record_replace(source, target):
        events.append(target.suffix)
        replace(source, target)

    monkeypatch.setattr(storing.os, "fsync", record_sync)
    monkeypatch.setattr(storing.os, "replace", record_replace)
    write(store, [make_row(0, 3)])
    assert events == ["sync", "sync", ".wave", ".count", "sync", "sync", ".index", "sync"]


def test_a_row_that_fails_leaves_nothing_behind(store):
    before = sorted(path.name for path in store.folder.iterdir())
    bad = Row("bad", 1, 1, {"wave": np.zeros((4, 2), np.float16), "count": np.zeros(4, np.int32)})
    with pytest.raises(ValueError, match=r"bad: wave is \(4, 2\), not \(4, 3\)"):
        write(store, [make_row(0, 3), bad])
    assert sorted(path.name for path in store.folder.iterdir()) == before


def test_a_store_is_written_by_one_at_a_time(store):
    with store.lock():
        with store.try_lock() as held:
            assert not held
    with store.try_lock() as held:
        assert held


def test_a_store_that_is_shared_is_shared_again_but_held_by_nobody_alone(store):
    with store.share(), store.share():
        with store.try_lock() as held:
            assert not held
        with pytest.raises(CacheError, match="this program is filling"), store.lock():
            pass
    with store.lock():
        with pytest.raises(CacheError, match="this program is filling"), store.share():
            pass
        assert store.is_held_here and not store.is_shared_here


def test_whoever_wants_a_store_alone_waits_for_all_that_share_it(store, caplog):
    with held_elsewhere(store.folder, shared=True) as other:
        with store.share(), store.try_lock() as held:
            assert not held
        threading.Timer(0.3, other.kill).start()
        with store.lock():
            assert other.wait(5) < 0
    assert "is being written by another process: waiting" in caplog.text


def test_whoever_shares_a_store_waits_for_the_one_that_holds_it_alone(store, caplog):
    with held_elsewhere(store.folder, shared=False) as other:
        threading.Timer(0.3, other.kill).start()
        with store.share():
            assert other.wait(5) < 0
    assert "is being written by another process: waiting" in caplog.text


def test_a_manifest_is_written_next_to_those_who_share_the_store(store):
    written = (store.folder / "store.json").read_bytes()
    (store.folder / "store.json").unlink()
    with held_elsewhere(store.folder, shared=True):
        store.create()
    assert (store.folder / "store.json").read_bytes() == written


def test_files_that_others_are_writing_are_no_problems(store):
    (store.folder / "0123.wave.77.tmp").write_bytes(b"half")
    with held_elsewhere(store.folder, shared=True):
        assert store.verify() == []
    assert [problem.file for problem in store.verify()] == ["0123.wave.77.tmp"]


def test_two_who_write_the_same_shard_do_not_meet(store):
    rows = [make_row(0, 4), make_row(1, 5)]
    first, second = (ShardDraft(store.folder, COLUMNS, "00ff", 0) for _ in range(2))
    with first, second:
        for row in rows:
            first.add(row)
            second.add(row)
        store._publish(first.write_columns())
        before = {path.name: path.read_bytes() for path in store.folder.iterdir()}
        before = {name: content for name, content in before.items() if ".tmp" not in name}
        store._publish(second.write_columns())
    assert {path.name: path.read_bytes() for path in store.folder.iterdir()} == before
    assert store.verify() == []


def test_a_draft_that_another_process_deleted_is_explained(store):
    with ShardDraft(store.folder, COLUMNS, "00ff", 0) as draft:
        draft.add(make_row(0, 4))
        store.remove_leftovers()
        with pytest.raises(CacheError, match=r"00ff\.wave.* was deleted .* flock between hosts"):
            draft.write_columns()
    assert store.verify() == []


def test_a_lock_that_finds_no_room_is_explained(store, monkeypatch):
    real = os.open

    def over_quota(path, *arguments):
        if str(path).endswith(".lock"):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", over_quota)
    with pytest.raises(CacheError, match="no space left .* free some space"), store.lock():
        pass


def test_a_shard_larger_than_the_file_limit_names_file_and_limit(store):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limit[1]))
    try:
        with pytest.raises(CacheError, match=r"\.wave would be larger than 50,000 bytes.*ulimit"):
            write(store, [make_row(0, 20_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert store.shards() == [] and store.verify() == []


def test_a_store_that_is_there_is_opened_while_others_write(store):
    with store.lock():
        store.create()
    assert store.verify() == []


def test_a_manifest_is_written_once_and_mended(store):
    path = store.folder / "store.json"
    written, times = path.read_bytes(), path.stat().st_mtime_ns
    store.create()
    assert path.stat().st_mtime_ns == times
    for damage in (b"{}", b"\xff" + written[1:], b""):
        path.write_bytes(damage)
        assert [problem.file for problem in store.verify()] == ["store.json"]
        store.create()
        assert path.read_bytes() == written


def test_files_beside_the_shards_are_checked_and_mended(tmp_path):
    store = Store(tmp_path / "store", COLUMNS, {}, {"table.json": "[1]\n"})
    store.create()
    path = store.folder / "table.json"
    assert path.read_text() == "[1]\n" and store.verify() == []
    path.write_text("[3]\n")
    assert [(p.file, p.shard) for p in store.verify()] == [("table.json", "")]
    path.unlink()
    assert [(p.file, p.what) for p in store.verify()] == [("table.json", "missing")]
    store.create()
    assert path.read_text() == "[1]\n" and store.verify() == []


def test_leftovers_are_found_and_removed(store):
    index = write(store, [make_row(0, 3)])
    strangers = ["notes.txt", "lost.wave", f"{index.name}.wave.77.tmp", f"{index.name}.other"]
    for name in strangers:
        (store.folder / name).write_bytes(b"?")
    (store.folder / "folder").mkdir()
    (store.folder / "folder" / "file").write_bytes(b"?")
    expected = sorted([*strangers, "folder"])
    assert sorted(problem.file for problem in store.verify()) == expected
    assert sorted(store.remove_leftovers()) == expected
    assert store.verify() == [] and len(store.shards()) == 1


def test_everything_that_determines_the_bytes_changes_the_fingerprint():
    keys = {
        fingerprint(COLUMNS, {"rate": 22050}),
        fingerprint(COLUMNS, {"rate": 24000}),
        fingerprint(COLUMNS[:1], {"rate": 22050}),
        fingerprint((Column("wave", "float32", 3), COLUMNS[1]), {"rate": 22050}),
    }
    assert len(keys) == 4
    assert fingerprint(COLUMNS, {"a": 1, "b": 2}) == fingerprint(COLUMNS, {"b": 2, "a": 1})


def test_strings_are_packed_selected_and_joined():
    strings = Strings.pack(["سلام", "", "abc", "é"])
    assert len(strings) == 4 and list(strings) == ["سلام", "", "abc", "é"]
    assert strings[0] == "سلام" and strings[3] == "é"
    assert list(strings.select(np.array([3, 0]))) == ["é", "سلام"]
    assert list(strings.select(np.array([False, True, True, False]))) == ["", "abc"]
    joined = Strings.concatenate([strings.select(np.array([2])), Strings.pack(["x"])])
    assert list(joined) == ["abc", "x"]
    assert list(Strings.concatenate([])) == [] and list(Strings.pack([])) == []
