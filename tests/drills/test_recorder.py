"""The drill's recorder finds what a kill and a cut of the power can leave."""

import os
from pathlib import Path

import pytest

from benchmarks.drills.recorder import Recording, record
from myxtts.checkpoints.files import write_json_atomically


@pytest.fixture
def recorded(tmp_path):
    """Record what a function does in a folder that holds a file from before."""

    def run(function) -> Recording:
        folder = tmp_path / "watched"
        folder.mkdir()
        (folder / "state").write_text("old")
        with record(folder, tmp_path / "blobs") as recording:
            function(folder)
        return recording

    return run


def texts(recording: Recording, states, name: str = "state") -> set[str | None]:
    """Every content that a file has in some of the states; None where it is not there."""
    found = set()
    for _, tree in states:
        blob = tree.entries.get(name)
        found.add(None if blob is None else (recording.blobs / blob).read_text())
    return found


def replace(folder: Path, syncs_file: bool) -> None:
    draft = folder / "draft"
    with open(draft, "w") as file:
        file.write("new!")
        file.flush()
        if syncs_file:
            os.fsync(file.fileno())
    os.replace(draft, folder / "state")


def test_a_kill_leaves_what_was_there_before_an_operation_or_half_of_a_write(recorded):
    recording = recorded(lambda folder: replace(folder, syncs_file=False))
    assert texts(recording, recording.kills()) == {"old", "new!"}
    assert texts(recording, recording.kills(), "draft") == {None, "", "ne", "new!"}


def test_a_file_that_is_overwritten_in_place_can_be_lost_to_a_kill(recorded):
    recording = recorded(lambda folder: (folder / "state").write_text("new!"))
    assert "ne" in texts(recording, recording.kills())


def test_a_rename_of_what_was_not_synced_can_leave_nothing_after_a_power_cut(recorded):
    recording = recorded(lambda folder: replace(folder, syncs_file=False))
    assert "" in texts(recording, recording.cuts(0))


def test_a_rename_of_what_was_synced_leaves_the_old_or_the_new(recorded):
    recording = recorded(lambda folder: replace(folder, syncs_file=True))
    assert texts(recording, recording.cuts(0)) == {"old", "new!"}


def test_a_rename_is_sure_only_once_its_folder_is_synced(recorded):
    def change(folder: Path) -> None:
        write_json_atomically(folder / "state", {"a": 1})
        (folder / "later").touch()

    recording = recorded(change)
    states = recording.cuts(0)
    assert texts(recording, states) == {"old", '{\n "a": 1\n}\n'}
    # After the folder was synced, only the new content is left.
    assert texts(recording, [one for one in states if "later" in one[1].entries]) == {
        '{\n "a": 1\n}\n'
    }


def test_two_renames_in_a_folder_that_is_not_synced_between_can_change_places(recorded):
    def change(folder: Path) -> None:
        for name in ("first", "second"):
            (folder / f"{name}.tmp").write_text(name)
            descriptor = os.open(folder / f"{name}.tmp", os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            os.rename(folder / f"{name}.tmp", folder / name)

    found = [tree.entries.keys() for _, tree in recorded(change).cuts(0, per_moment=20)]
    assert any("second" in names and "first" not in names for names in found)


def test_a_state_is_written_as_it_was(recorded, tmp_path):
    def change(folder: Path) -> None:
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "file").write_bytes(b"\0\1")

    recording = recorded(change)
    last = next(tree for label, tree in reversed(recording.kills()) if "torn" not in label)
    last.write_to(tmp_path / "again", recording.blobs)
    assert (tmp_path / "again" / "state").read_text() == "old"
    assert (tmp_path / "again" / "deep" / "er" / "file").read_bytes() == b"\0\1"
