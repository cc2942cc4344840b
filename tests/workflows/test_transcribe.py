"""Texts for clips: written once, and never over what a person wrote."""

import csv
from pathlib import Path

import pytest

from myxtts.errors import UserError
from myxtts.evaluation import asr
from myxtts.workflows.transcribe import (
    HEARD_OTHERWISE,
    NOTHING_HEARD,
    TOO_FAST,
    TOO_SLOW,
    agreement,
    read_heard,
    transcribe_corpus,
)
from tests.helpers.make_corpus import make_corpus

CORPUS = {"count": 10, "seconds": (1.0, 1.2)}


class Ear:
    """Hears the number of a call, or what `texts` say; may die."""

    name, identity, at_once, sample_rate = "a fake ear", "a fake ear, version 1", 3, 16000
    texts: dict[int, str] = {}
    dies_at = -1
    hears_faster = False
    calls = 0

    def transcribe_many(self, recordings, progress=None):
        heard = []
        for samples, rate in recordings:
            assert len(samples) >= rate * (0.9 if self.hears_faster else 1)  # a second or more
            number, Ear.calls = Ear.calls, Ear.calls + 1
            if number == self.dies_at:
                raise KeyboardInterrupt
            heard.append(self.texts.get(number, f"Said {number:04d}."))
        return heard


@pytest.fixture(autouse=True)
def ear(monkeypatch):
    monkeypatch.setitem(asr.ASRS, "en", Ear)
    monkeypatch.delenv(asr.WHISPER_FOLDER, raising=False)
    for name, value in (("texts", {}), ("dies_at", -1), ("calls", 0), ("hears_faster", False)):
        monkeypatch.setattr(Ear, name, value)
    return Ear


@pytest.fixture
def clips(corpus) -> Path:
    """A corpus without texts."""
    (corpus / "metadata.csv").unlink()
    return corpus


def metadata(corpus: Path) -> list[str]:
    return (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()


def table(corpus: Path) -> dict[str, dict[str, str]]:
    with open(corpus / "transcription.csv", encoding="utf-8", newline="") as file:
        return {row["clip"]: row for row in csv.DictReader(file)}


def test_every_clip_gets_a_text(clips):
    done = transcribe_corpus(clips)
    assert (done.clips, done.written, done.kept) == (10, 10, 0)
    assert metadata(clips) == [f"utt-{n:04d}|Said {n:04d}.|Said {n:04d}." for n in range(10)]
    row = table(clips)["utt-0003"]
    assert (row["text"], row["recogniser"], row["suspicious"]) == ("Said 0003.", "a fake ear", "")
    rate = 10 / float(row["seconds"])  # "Said 0003." has ten characters
    assert float(row["characters_per_second"]) == pytest.approx(rate, abs=0.01)


def test_a_second_call_hears_nothing_and_changes_nothing(clips, ear):
    transcribe_corpus(clips)
    before = [(clips / name).read_bytes() for name in ("metadata.csv", "transcription.csv")]
    done = transcribe_corpus(clips)
    assert (ear.calls, done.written, done.kept) == (10, 0, 10)
    assert [(clips / name).read_bytes() for name in ("metadata.csv", "transcription.csv")] == before


def test_ctrl_c_keeps_what_was_heard(clips, ear, monkeypatch):
    monkeypatch.setattr(ear, "dies_at", 7)
    with pytest.raises(KeyboardInterrupt):
        transcribe_corpus(clips)
    assert len(metadata(clips)) == 6  # two batches of three
    done = transcribe_corpus(clips)
    assert (done.written, done.kept) == (4, 6)
    assert [line.split("|")[0] for line in metadata(clips)] == [f"utt-{n:04d}" for n in range(10)]


def test_texts_are_saved_on_the_way(clips, ear):
    seen = []

    def clock() -> float:
        seen.append(len(metadata(clips)) if (clips / "metadata.csv").exists() else 0)
        return 6.0 * len(seen)

    transcribe_corpus(clips, clock=clock)
    assert {3, 6, 9} <= set(seen)


def test_what_a_person_wrote_stays(clips):
    transcribe_corpus(clips)
    lines = metadata(clips)
    lines[2] = "utt-0002|My own words|my own words"
    lines[4] = "utt-0004||"  # emptied
    del lines[6]
    edited = "\ufeff" + "\r\n".join(lines)  # as some editors save it
    (clips / "metadata.csv").write_text(edited, encoding="utf-8", newline="")
    (clips / "wavs" / "utt-0010.wav").write_bytes((clips / "wavs" / "utt-0000.wav").read_bytes())
    done = transcribe_corpus(clips)
    assert (done.written, done.kept, done.removed) == (1, 8, 1)
    after = (clips / "metadata.csv").read_bytes().decode("utf-8")
    assert after == edited + "\nutt-0010|Said 0010.|Said 0010.\n"
    assert "1 clips were removed from it by hand" in done.summary()


def test_a_text_written_meanwhile_wins(clips, ear, monkeypatch):
    class Slow(Ear):
        def transcribe_many(self, recordings, progress=None):
            (clips / "metadata.csv").write_text("utt-0001|Mine|mine\n", encoding="utf-8")
            return super().transcribe_many(recordings, progress)

    monkeypatch.setitem(asr.ASRS, "en", Slow)
    transcribe_corpus(clips)
    assert metadata(clips)[0] == "utt-0001|Mine|mine"
    assert [line for line in metadata(clips) if line.startswith("utt-0001")] == [metadata(clips)[0]]
    assert len(metadata(clips)) == 10


def test_without_metadata_all_is_heard_again(clips, ear):
    transcribe_corpus(clips)
    (clips / "metadata.csv").unlink()
    assert transcribe_corpus(clips).written == 10


def test_lines_have_as_many_columns_as_those_that_are_there(clips):
    (clips / "metadata.csv").write_text("utt-0000|Hello there.\n", encoding="utf-8")
    transcribe_corpus(clips)
    assert metadata(clips)[:2] == ["utt-0000|Hello there.", "utt-0001|Said 0000."]


def test_suspicious_clips_are_named(clips, ear, monkeypatch):
    monkeypatch.setattr(ear, "texts", {1: "", 4: "I", 5: "a|b\n" + "word " * 20})
    done = transcribe_corpus(clips)
    flags = {clip: row["suspicious"] for clip, row in table(clips).items() if row["suspicious"]}
    assert flags == {"utt-0001": NOTHING_HEARD, "utt-0004": TOO_SLOW, "utt-0005": TOO_FAST}
    assert [one.clip for one in done.suspicious] == list(flags)
    assert "3 to listen to, listed in transcription.csv" in done.summary()
    # A clip without text has no line, and a text has no delimiter.
    assert len(metadata(clips)) == 9
    assert all(line.count("|") == 2 for line in metadata(clips))
    # What was corrected is not listed again; what has no text is not heard again.
    lines = [line if "utt-0004" not in line else "utt-0004|It|It" for line in metadata(clips)]
    (clips / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = transcribe_corpus(clips)
    assert ear.calls == 10
    assert [one.clip for one in done.suspicious] == ["utt-0001", "utt-0005"]
    monkeypatch.setattr(ear, "name", "a better ear")
    assert transcribe_corpus(clips).written == 1


def test_few_clips_have_no_usual_rate(clips, ear, monkeypatch):
    monkeypatch.setattr(ear, "texts", {1: "word " * 20})
    for path in sorted((clips / "wavs").iterdir())[4:]:
        path.unlink()
    assert transcribe_corpus(clips).suspicious == ()


def test_an_unreadable_clip_is_named_and_the_others_are_heard(clips):
    (clips / "wavs" / "utt-0003.wav").write_bytes(b"RIFF")
    done = transcribe_corpus(clips)
    assert done.written == 9
    assert [error.path.name for error in done.failed] == ["utt-0003.wav"]


def test_a_language_without_recogniser_says_what_to_do(clips):
    with pytest.raises(UserError, match="no recogniser for 'fa': .*--asr-model"):
        transcribe_corpus(clips, "fa")
    assert not (clips / "metadata.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "audio_file|text\nutt-0000.wav|Hello\n",
        "utt-0000|a|b|c|d\n",
        "utt-0000,Hello\n",
        "\x00|\xff",
    ],
)
def test_another_kind_of_metadata_is_left_alone(clips, ear, text):
    content = text.encode("latin-1")
    (clips / "metadata.csv").write_bytes(content)
    with pytest.raises(UserError, match="metadata.csv"):
        transcribe_corpus(clips)
    assert (clips / "metadata.csv").read_bytes() == content
    assert ear.calls == 0


def test_a_damaged_table_is_named(clips):
    (clips / "transcription.csv").write_text("clip,seconds\nutt-0000,long\n")
    with pytest.raises(UserError, match="transcription.csv cannot be read"):
        transcribe_corpus(clips)


def test_a_folder_without_clips_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no folder"):
        transcribe_corpus(tmp_path)
    (tmp_path / "wavs").mkdir()
    with pytest.raises(UserError, match="no clip"):
        transcribe_corpus(tmp_path)


def test_a_corpus_with_texts_needs_no_recogniser(tmp_path, ear):
    done = transcribe_corpus(make_corpus(tmp_path / "whole", 2), "xx")
    assert (done.kept, done.written, ear.calls) == (2, 0, 0)


def test_a_confidence_is_how_far_two_transcripts_agree(clips, ear, monkeypatch):
    # Three clips at a time: 0 to 2, the same faster (3 to 5), 6 to 8, ...
    said = {**{n: "Just the same." for n in range(20)}, 4: "just, the same", 5: "Gust at a shame."}
    monkeypatch.setattr(ear, "texts", said | {6: ""})
    monkeypatch.setattr(ear, "hears_faster", True)
    done = transcribe_corpus(clips, with_confidence=True)
    assert ear.calls == 20
    found = {clip: row["confidence"] for clip, row in table(clips).items()}
    # ust, t, s and ame of 11 and 12 letters are the same: 2 x 8 / 23.
    assert list(found.values())[:5] == ["1.0", "1.0", "0.696", "", "1.0"]
    assert [(one.clip, one.suspicious) for one in done.suspicious] == [
        ("utt-0002", HEARD_OTHERWISE),
        ("utt-0003", NOTHING_HEARD),
    ]
    assert "utt-0002: heard otherwise a second time (confidence 70%)" in done.summary()
    assert read_heard(clips / "transcription.csv")["utt-0002"].confidence == 0.696


def test_without_it_and_in_older_tables_there_is_no_confidence(clips):
    transcribe_corpus(clips)
    path = clips / "transcription.csv"
    assert {row["confidence"] for row in table(clips).values()} == {""}
    lines = [line.rpartition(",")[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    assert {one.confidence for one in read_heard(path).values()} == {None}
    assert transcribe_corpus(clips).written == 0


def test_agreement_counts_letters_in_order():
    assert agreement("The Cat.", "the cat") == 1.0
    assert agreement("abcd", "abxd") == 0.75
    assert agreement("سلام!", "سلام") == 1.0
    assert agreement("yes", "") == 0.0
