"""Files are whole or not there, and a disk that refuses is explained."""

import errno
import os
import resource
from contextlib import contextmanager

import pytest

from myxtts import atomic
from myxtts.checkpoints.files import CheckpointError, write_json_atomically
from myxtts.config.config import XTTSConfig
from myxtts.config.fields import ConfigError
from myxtts.config.io import save_config
from myxtts.errors import UserError
from myxtts.training.run_folder import alone_in


@contextmanager
def file_limit(limit: int):
    """As `ulimit -f` sets it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def refuse(monkeypatch):
    """Let every fsync fail, as a disk does that is full or has turned read-only."""

    def refuse_with(number: int) -> None:
        def fsync(descriptor):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    return refuse_with


def test_a_file_larger_than_the_limit_names_file_and_limit_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "a"
    atomic.write(path, b"old")
    with file_limit(1000), pytest.raises(OSError) as caught:
        atomic.write(path, bytes(1001))
    assert caught.value.errno == errno.EFBIG and caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]
    with file_limit(1000):
        assert atomic.explain(path, caught.value) == (
            f"{path} would be larger than 1,000 bytes, the most that this process may write to a "
            "file: raise the limit (ulimit -f unlimited) and run the same command again"
        )
    assert "larger than its file system allows" in atomic.explain(path, caught.value)


def test_a_checkpoint_larger_than_the_limit_names_it(tmp_path):
    with file_limit(1000), pytest.raises(CheckpointError, match="larger than 1,000 bytes.*ulimit"):
        write_json_atomically(tmp_path / "a.json", {"text": "x" * 1001})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "make .* writable")],
)
def test_settings_that_a_disk_refuses_are_explained_and_the_old_ones_stay(
    tmp_path, refuse, number, advice
):
    path = tmp_path / "config.yaml"
    save_config(XTTSConfig(), path)
    before = path.read_bytes()
    refuse(number)
    with pytest.raises(ConfigError, match=rf"not saved: .*config\.yaml .*{advice}"):
        save_config(XTTSConfig(), path, only_differences=True)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["config.yaml"]


def test_a_run_in_a_folder_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    def read_only(path, *arguments, **named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("builtins.open", read_only)
    with pytest.raises(UserError, match=r"\.lock \(Read-only file system\): make .*run a writable"):
        with alone_in(tmp_path / "run"):
            pass


def test_a_replaced_folder_that_cannot_be_removed_is_named_and_its_successor_is_in_place(
    tmp_path, monkeypatch, caplog
):
    target = tmp_path / "voice"

    def save(content: bytes) -> None:
        with atomic.new_folder(target) as draft:
            (draft / "a").write_bytes(content)

    def read_only(path, *arguments, **named):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    save(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", read_only)
        save(b"new")
    assert (target / "a").read_bytes() == b"new"
    aside = atomic.set_aside_of(target)
    assert f"cannot remove {aside} (Read-only file system)" in caplog.text
    save(b"newer")
    assert os.listdir(tmp_path) == ["voice"] and (target / "a").read_bytes() == b"newer"


def test_files_that_belong_together_are_all_written_or_none(tmp_path):
    contents = {tmp_path / "card": b"small", tmp_path / "graph": bytes(1001)}
    with file_limit(1000), pytest.raises(UserError, match="graph would be larger"):
        atomic.write_outputs(contents)
    assert os.listdir(tmp_path) == []
    atomic.write_outputs(contents)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == contents
