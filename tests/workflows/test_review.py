"""Changes of a corpus's texts: none is lost, whatever their order, and whoever else writes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from myxtts import atomic
from myxtts.audio.io import write_wav
from myxtts.errors import UserError
from myxtts.workflows import review
from myxtts.workflows.transcribe import (
    HEARD_OTHERWISE,
    LOCK,
    METADATA,
    TOO_SLOW,
    _Ledger,
    read_texts,
)

CLIP = "a"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "wavs").mkdir()
    (tmp_path / METADATA).write_text(f"{CLIP}|Said.|Said.\nb|Other.|Other.\n")
    return tmp_path


def text(corpus, clip=CLIP):
    return read_texts(corpus / METADATA).get(clip)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_excluded_clip_gets_its_text_back_however_often_it_was_excluded(corpus, times):
    for _ in range(times):
        review.exclude(corpus, CLIP)
        assert text(corpus) is None
    assert len(review.read_edits(corpus)) == 1
    review.include(corpus, CLIP)
    assert text(corpus) == "Said."


def test_a_clip_that_is_not_excluded_is_not_included(corpus):
    with pytest.raises(UserError, match="not excluded"):
        review.include(corpus, CLIP)
    review.set_text(corpus, CLIP, "Mended.")
    with pytest.raises(UserError, match="not excluded"):
        review.include(corpus, CLIP)
    review.exclude(corpus, CLIP)
    review.include(corpus, CLIP)
    with pytest.raises(UserError, match="not excluded"):
        review.include(corpus, CLIP)
    assert text(corpus) == "Mended."


def test_a_text_that_was_excluded_twice_by_an_earlier_version_comes_back(corpus):
    review.exclude(corpus, CLIP)
    line = '{"clip": "a", "before": null, "after": null, "excluded": true, "time": 1}\n'
    with open(corpus / review.EDITS, "a") as file:
        file.write(line)
    review.include(corpus, CLIP)
    assert text(corpus) == "Said."


def test_a_clip_that_a_command_brought_back_is_excluded_again_with_its_own_text(corpus):
    review.exclude(corpus, CLIP)
    with open(corpus / METADATA, "a") as file:
        file.write("a|Heard.|Heard.\n")
    review.exclude(corpus, CLIP)
    assert text(corpus) is None
    review.include(corpus, CLIP)
    assert text(corpus) == "Said."


def test_drafts_of_uploads_are_no_clips(corpus):
    (corpus / "wavs" / ".0123.upload").write_bytes(b"")
    assert review.read_clips(corpus) == []


def test_no_line_is_lost_where_two_write_at_once(corpus):
    ledger = _Ledger(corpus, {})

    def transcribe():
        for number in range(20):
            ledger.add(f"t{number}", 1.0, "a fake ear", "Heard.")
            ledger.save()

    def type_texts():
        for number in range(20):
            review.set_text(corpus, f"s{number}", "Typed.")

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(transcribe), pool.submit(type_texts)]:
            one.result()
    assert len(read_texts(corpus / METADATA)) == 42


def test_whoever_changes_the_metadata_waits_for_the_lock(corpus):
    changing = threading.Thread(target=review.set_text, args=(corpus, CLIP, "Late."))
    with atomic.alone(corpus / LOCK):
        changing.start()
        changing.join(0.2)
        assert text(corpus) == "Said."
    changing.join()
    assert text(corpus) == "Late."


def test_what_a_recogniser_heard_is_doubtful_until_it_is_mended(corpus):
    rows = [f"{name},2.0,an ear,Said by {name}.,10.0,,1.0" for name in "cdefghi"]
    rows += [f"{CLIP},2.0,an ear,Said.,2.5,,0.7", "b,2.0,an ear,Other.,10.0,,0.7"]
    heads = "clip,seconds,recogniser,text,characters_per_second,suspicious,confidence"
    (corpus / "transcription.csv").write_text("\n".join([heads, *rows]) + "\n")
    for name in (CLIP, "b"):
        write_wav(corpus / "wavs" / f"{name}.wav", np.zeros(100, np.float32), 16000)
    found = {one.id: (one.suspicious, one.confidence) for one in review.read_clips(corpus)}
    assert found == {CLIP: (TOO_SLOW, 0.7), "b": (HEARD_OTHERWISE, 0.7)}
    review.set_text(corpus, "b", "Another.")
    assert review.read_clips(corpus)[1].suspicious == ""
    assert review.read_clips(corpus)[1].confidence is None


@pytest.mark.parametrize("change", ["set_text", "undo"])
def test_a_change_that_cannot_be_written_is_none(corpus, monkeypatch, change):
    review.set_text(corpus, CLIP, "Mended.")
    before = (corpus / review.EDITS).read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(review, "write", fails)
        with pytest.raises(UserError, match="No space left"):
            review.set_text(corpus, "b", "New.") if change == "set_text" else review.undo(corpus)
    assert (corpus / review.EDITS).read_bytes() == before
    review.reapply(corpus)
    assert (text(corpus), text(corpus, "b")) == ("Mended.", "Other.")
