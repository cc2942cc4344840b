"""Recordings that become clips, in one go, in several, and twice."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio.io import SILENT, TOO_SHORT
from myxtts.audio.slice_options import SliceOptions
from myxtts.errors import UserError
from myxtts.workflows import slice_plans, slices
from myxtts.workflows.slices import slice_recordings
from tests.helpers.long_recording import make_recording
from tests.helpers.stand_in_detector import stand_in_detector

RATE = 16000


def record(path: Path, *parts: float, hz: float = 220.0, channels: int = 1) -> Path:
    """Tones of so many seconds, and pauses of so many where the number is negative."""
    rng = np.random.default_rng(0)
    pieces = []
    for seconds in parts:
        time = np.arange(round(abs(seconds) * RATE)) / RATE
        pieces.append(np.sin(2 * np.pi * hz * time) * (0.3 if seconds > 0 else 0.0))
    samples = np.concatenate(pieces)
    samples += 0.0003 * rng.standard_normal(len(samples))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.stack([samples] * channels, axis=1), RATE)
    return path


@pytest.fixture
def long(tmp_path) -> Path:
    return record(tmp_path / "long.wav", -0.5, 2.0, -1.0, 3.0, -2.0, 0.3, -2.0, 1.5, -0.5)


@pytest.fixture
def corpus(tmp_path) -> Path:
    return tmp_path / "corpus"


def table(corpus: Path) -> list[dict[str, str]]:
    with open(corpus / "slices.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def content(corpus: Path) -> dict[str, bytes]:
    files = (path for path in corpus.rglob("*") if path.is_file())
    return {str(path.relative_to(corpus)): path.read_bytes() for path in files}


def clips(corpus: Path) -> list[str]:
    return sorted(path.name for path in (corpus / "wavs").iterdir())


def test_clips_are_the_parts_that_the_table_names(long, corpus):
    done = slice_recordings([long], corpus)
    assert done.written == 3
    assert clips(corpus) == ["long-0001.flac", "long-0002.flac", "long-0003.flac"]
    rows = table(corpus)
    assert [row["clip"] for row in rows] == ["long-0001", "long-0002", "", "long-0003"]
    assert [row["dropped"] for row in rows] == ["", "", TOO_SHORT, ""]
    assert (rows[0]["start"], rows[0]["end"], rows[0]["seconds"]) == ("0.350", "2.650", "2.300")
    assert {row["source"] for row in rows} == {str(long)}
    whole, _ = soundfile.read(long, dtype="int16")
    clip, rate = soundfile.read(corpus / "wavs" / "long-0001.flac", dtype="int16")
    assert rate == RATE
    np.testing.assert_array_equal(clip, whole[round(0.35 * RATE) : round(2.65 * RATE)])
    assert not (corpus / "metadata.csv").exists()


def test_the_summary_accounts_for_every_second(long, corpus):
    done = slice_recordings([long], corpus)
    lines = done.summary().splitlines()
    assert lines[0].endswith(
        "3 clips, 7.4 s of 12.8 s in 1 recording (3 written now, 0 were there)"
    )
    assert lines[1].split() == ["pauses", "4.8", "s"]
    assert lines[2].split() == ["dropped:", "too", "short", "1", "parts,", "0.6", "s"]


def test_a_second_call_writes_nothing(long, corpus, monkeypatch):
    slice_recordings([long], corpus)
    before = content(corpus)
    monkeypatch.setattr(slices, "measure_levels", None)  # nor does it decode anything
    monkeypatch.setattr(slices, "cut", None)
    assert slice_recordings([long], corpus).written == 0
    assert content(corpus) == before


@pytest.mark.parametrize("dies_at", range(5))
def test_an_interrupted_run_ends_with_the_same_bytes(long, corpus, tmp_path, monkeypatch, dies_at):
    whole = tmp_path / "whole"
    slice_recordings([long], whole)
    calls = []

    def mortal(path, bytes):
        calls.append(path)
        if len(calls) > dies_at:
            raise KeyboardInterrupt
        real(path, bytes)

    with monkeypatch.context() as patch:
        real = slice_plans.write_part
        for module in (slices, slice_plans):
            patch.setattr(module, "write_part", mortal)
        with pytest.raises(KeyboardInterrupt):
            slice_recordings([long], corpus)
    done = slice_recordings([long], corpus)
    assert done.written == 3 - max(0, dies_at - 2)  # the plan and the table come first
    assert content(corpus) == content(whole)


def test_a_damaged_clip_is_written_again(long, corpus):
    slice_recordings([long], corpus)
    before = content(corpus)
    (corpus / "wavs" / "long-0001.flac").write_bytes(b"fLaC")
    (corpus / "wavs" / "long-0002.flac").unlink()
    assert slice_recordings([long], corpus).written == 2
    assert content(corpus) == before


def test_folders_are_searched_and_the_corpus_inside_is_not(tmp_path):
    home = tmp_path / "home"
    record(home / "b" / "two.flac", 2.0, -1.0)
    record(home / "a.OGG", 2.0, -1.0, hz=330.0)
    (home / "notes.txt").write_text("not a recording")
    record(home / ".trash" / "old.wav", 2.0)
    for _ in range(2):
        done = slice_recordings([home], home / "corpus")
        assert [plan.name for plan in done.plans] == ["a", "two"]
    assert clips(home / "corpus") == ["a-0001.flac", "two-0001.flac"]


def test_a_corpus_grows(long, corpus, tmp_path):
    slice_recordings([long], corpus)
    other = record(tmp_path / "other.wav", 2.0, -1.0, hz=330.0)
    assert slice_recordings([other], corpus).written == 1
    assert [row["clip"] for row in table(corpus) if row["clip"]] == [
        *("long-0001", "long-0002", "long-0003"),
        "other-0001",
    ]


def test_names_are_made_unique_and_fit_for_a_table(tmp_path, corpus):
    first = record(tmp_path / "a" / "day 1|x.wav", 2.0, -1.0)
    second = record(tmp_path / "b" / "day 1|x.wav", 2.0, -1.0, hz=330.0)
    slice_recordings([first, second], corpus)
    assert clips(corpus) == ["day-1-x-0001.flac", "day-1-x-2-0001.flac"]


def test_the_same_bytes_twice_are_one_recording(long, corpus, tmp_path):
    copy = Path(shutil.copy(long, tmp_path / "copy.wav"))
    done = slice_recordings([long, copy], corpus)
    assert (len(done.plans), done.repeated) == (1, (str(copy),))
    assert len(clips(corpus)) == 3
    assert "copy.wav: the same recording again" in done.summary()


def test_a_recording_that_was_moved_is_known(long, corpus, tmp_path):
    slice_recordings([long], corpus)
    moved = long.rename(tmp_path / "elsewhere.wav")
    (corpus / "wavs" / "long-0002.flac").unlink()
    assert slice_recordings([moved], corpus).written == 1
    assert len(clips(corpus)) == 3
    assert {row["source"] for row in table(corpus)} == {str(moved)}


def test_wav_and_other_limits(long, corpus):
    slice_recordings([long], corpus, SliceOptions(shortest=0.2), "wav")
    assert clips(corpus) == [f"long-000{number}.wav" for number in (1, 2, 3, 4)]


def test_other_options_are_no_clips_under_the_same_names(long, corpus):
    slice_recordings([long], corpus)
    before = content(corpus)
    with pytest.raises(UserError, match=r"longest 12.0 \(now 8.0\), format flac \(now wav\)"):
        slice_recordings([long], corpus, SliceOptions(longest=8.0), "wav")
    assert content(corpus) == before


def test_a_recording_that_has_changed_is_named(long, corpus):
    slice_recordings([long], corpus)
    before = content(corpus)
    record(long, 2.0, -1.0)
    with pytest.raises(UserError, match="long.wav has changed since it was cut"):
        slice_recordings([long], corpus)
    assert content(corpus) == before


def test_an_unreadable_recording_is_named_and_the_others_are_cut(long, corpus, tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"RIFF and nothing else")
    done = slice_recordings([tmp_path], corpus)
    assert len(clips(corpus)) == 3
    assert [error.path.name for error in done.failed] == ["bad.wav"]


def test_an_unreadable_recording_alone_is_an_error(corpus, tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"RIFF and nothing else")
    with pytest.raises(UserError, match="bad.wav: unreadable recording"):
        slice_recordings([tmp_path / "bad.wav"], corpus)
    assert not corpus.exists()


def test_silence_is_in_the_table(corpus, tmp_path):
    done = slice_recordings([record(tmp_path / "silent.wav", -3.0)], corpus)
    assert done.dropped() == {SILENT: (1, 3.0)}
    assert [row["dropped"] for row in table(corpus)] == [SILENT]


def test_nothing_is_written_into_other_folders(long, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        slice_recordings([long], other)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    with pytest.raises(UserError, match="is a file"):
        slice_recordings([long], long)


@pytest.mark.parametrize(
    "name, complaint", [("gone.wav", "no recording"), ("empty", "no recording")]
)
def test_no_recording_is_an_error(tmp_path, corpus, name, complaint):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=complaint):
        slice_recordings([tmp_path / name], corpus)
    assert not corpus.exists()


@pytest.mark.parametrize("damage", ["{", "[]", '{"name": "long"}', "../../long"])
def test_a_damaged_plan_is_named(long, corpus, damage):
    slice_recordings([long], corpus)
    plan = corpus / "slices" / "long.json"
    if damage.startswith(".."):
        damage = json.dumps({**json.loads(plan.read_text()), "name": damage})
    plan.write_text(damage)
    with pytest.raises(UserError, match="long.json"):
        slice_recordings([long], corpus)


def noisy(path: Path) -> Path:
    """Speech-like sentences with pauses, under noise that is hardly quieter."""
    samples, rate = soundfile.read(make_recording(path, sentences=6))
    noise = 0.15 * np.random.default_rng(0).standard_normal(len(samples))
    soundfile.write(path, 0.5 * (samples + noise), rate)
    return path


def test_the_voice_detector_helps_where_noise_hides_the_pauses(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(slices, "has_detector", lambda: True)
    monkeypatch.setitem(sys.modules, "webrtcvad", stand_in_detector)
    path = noisy(tmp_path / "tape.wav")
    by_level = slice_recordings([path], tmp_path / "level", SliceOptions(pauses_by="level"))
    assert [one.dropped for one in by_level.plans[0].slices] == ["no pause to cut at"]
    assert len(slice_recordings([path], corpus).plans[0].clips()) == 6
    assert slice_recordings([path], corpus).written == 0  # the plan holds
    with pytest.raises(UserError, match="pauses_by auto"):
        slice_recordings([path], corpus, SliceOptions(pauses_by="voice"))


def test_without_the_detector_it_is_named(tmp_path, corpus, monkeypatch, caplog):
    path = noisy(tmp_path / "tape.wav")
    monkeypatch.setattr(slices, "has_detector", lambda: False)
    found = slice_recordings([path], corpus)
    assert [one.dropped for one in found.plans[0].slices] == ["no pause to cut at"]
    assert "myxtts[speakers]" in caplog.text
    monkeypatch.setitem(sys.modules, "webrtcvad", None)
    with pytest.raises(UserError, match="not installed"):
        slice_recordings([path], tmp_path / "voice", SliceOptions(pauses_by="voice"))


@pytest.mark.parametrize("options", [{"pauses_by": "ear"}, {"pauses_by": "voice", "threshold": -9}])
def test_what_tells_a_pause_is_checked(options):
    with pytest.raises(UserError, match="pauses_by|threshold"):
        SliceOptions(**options)
