"""Objects behind a URL: the calls, their patience, and the errors that no patience mends."""

import errno
import logging
import sys
import threading
import time

import pytest

pytest.importorskip("fsspec", reason="object storage needs the extra object-storage")

from myxtts.data.store import remote as remotes
from myxtts.data.store.errors import CacheError
from myxtts.data.store.remote import MissingObject, Remote, in_daemons, is_url
from myxtts.errors import UserError
from tests.helpers.faulty_storage import counted, fresh_storage


@pytest.fixture
def storage():
    with fresh_storage() as storage:
        yield storage


@pytest.fixture(params=["faulty", "file"])
def remote(request, storage, tmp_path) -> Remote:
    where = "bucket/lj" if request.param == "faulty" else str(tmp_path / "bucket" / "lj")
    return Remote(f"{request.param}://{where}")


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """A clock that only sleeping moves; how long was slept each time."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    return slept


def test_a_url_has_a_protocol():
    assert is_url("s3://bucket/lj") and is_url("file:///disk")
    assert not is_url("") and not is_url("./caches") and not is_url("/disk/s3:")


def test_what_is_written_is_listed_and_read(remote, tmp_path):
    assert remote.objects() == {}
    (tmp_path / "column").write_bytes(b"0123456789")
    remote.write("store.json", b"{}")
    (remote / "features-1").upload(tmp_path / "column", "a.mel")
    assert remote.objects() == {"store.json": 2, "features-1/a.mel": 10}
    assert (remote / "features-1").objects() == {"a.mel": 10}
    assert remote.read("features-1/a.mel") == b"0123456789"
    assert remote.read_ranges("features-1/a.mel", [0, 7], [2, 10]) == [b"01", b"789"]


def test_what_is_removed_is_gone_and_may_be_removed_again(remote):
    remote.write("a.index", b"index")
    remote.remove("a.index")
    remote.remove("a.index")
    assert remote.objects() == {}
    with pytest.raises(MissingObject, match="cannot read a.index of"):
        remote.read("a.index")


def test_half_a_file_in_a_folder_is_no_object(tmp_path):
    remote = Remote(f"file://{tmp_path}")
    remote.write("a.index", b"index")
    (tmp_path / "b.index.part").write_bytes(b"ind")
    assert remote.objects() == {"a.index": 5}


def test_an_outage_is_waited_for(storage, pauses, caplog):
    remote = Remote("faulty://bucket/lj")
    remote.write("a.mel", b"mel")
    failures = iter([TimeoutError("no answer"), OSError("connection reset"), ConnectionError("no")])

    def fault(operation, path):
        if error := next(failures, None):
            raise error

    storage.fault = fault
    with caplog.at_level(logging.WARNING):
        assert remote.read("a.mel") == b"mel"
    assert pauses == [0.5, 1.0, 2.0]
    assert "cannot read a.mel of faulty://bucket/lj (no answer): trying again" in caplog.text


def test_patience_ends(storage, pauses):
    def fault(operation, path):
        raise TimeoutError("no answer")

    storage.fault = fault
    with pytest.raises(CacheError, match="no answer for 2.. s"):
        Remote("faulty://bucket/lj").read("a.mel")
    assert 200 < sum(pauses) <= remotes.PATIENCE and max(pauses) == 30
    pauses.clear()
    with pytest.raises(CacheError, match="Run the same command again when it is reachable"):
        Remote("faulty://bucket/lj").objects()
    assert sum(pauses) <= remotes.FIRST_PATIENCE


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError("Forbidden"), "Forbidden. Check the credentials"),
        (FileNotFoundError("The specified bucket does not exist"), "Check the name of the bucket"),
        (type("NoCredentialsError", (Exception,), {})("Unable to locate"), "Check the credentials"),
        (RuntimeError("status code: 403 Forbidden"), "Check the credentials"),
        (
            RuntimeError("status code: 404: NoSuchBucket <Message>No bucket.</Message> and so on"),
            "lj: No bucket. Check the name of the bucket",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "Free some space there"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_waiting_cannot_mend_is_an_error_at_once(storage, pauses, error, message):
    def fault(operation, path):
        raise error

    storage.fault = fault
    with pytest.raises(CacheError, match=message):
        Remote("faulty://bucket/lj").read("a.mel")
    assert pauses == [] and counted(storage) == {"get": 1}


@pytest.mark.parametrize("status", [408, 429, 503])
def test_a_busy_server_is_waited_for(storage, pauses, status):
    failures = iter([RuntimeError(f"status code: {status}")])

    def fault(operation, path):
        if error := next(failures, None):
            raise error

    storage.fault = fault
    Remote("faulty://bucket/lj").write("a.mel", b"mel")
    assert len(pauses) == 1


def test_an_unknown_protocol_is_named():
    with pytest.raises(UserError, match="nonsense://x.*nonsense.*s3://bucket/folder"):
        Remote("nonsense://x").objects()


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[object-storage\]'"):
        Remote("s3://bucket/lj").objects()


def test_without_the_package_of_a_protocol_both_ways_out_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "adlfs", None)
    monkeypatch.setitem(sys.modules, "obstore.fsspec", None)
    with pytest.raises(UserError, match=r"adlfs.*, or pip install 'myxtts\[object-storage\]'"):
        Remote("abfs://container/lj").objects()


def test_threads_do_all_the_work():
    assert sorted(in_daemons(lambda number: number**2, range(9))) == [n**2 for n in range(9)]
    assert list(in_daemons(str, [])) == []


def test_an_error_in_a_thread_is_raised():
    def work(number):
        if number == 3:
            raise CacheError("three")

    with pytest.raises(CacheError, match="three"):
        list(in_daemons(work, range(9)))


def test_leaving_early_waits_for_nothing():
    release, started = threading.Event(), []

    def work(number):
        started.append(number)
        if number:
            release.wait()
        return number

    for _ in in_daemons(work, range(40)):
        break
    assert len(started) <= remotes.PARALLEL + 1
    release.set()
