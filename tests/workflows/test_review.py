"""Changes of a corpus's texts: none is lost, whatever their order, and whoever else writes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from myxtts import atomic
from myxtts.errors import UserError
from myxtts.workflows import review
from myxtts.workflows.transcribe import LOCK, METADATA, _Ledger, read_texts

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
