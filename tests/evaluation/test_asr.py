import sys

import numpy as np
import pytest

from myxtts.audio.io import read_audio
from myxtts.data.corpus import read_corpus
from myxtts.errors import UserError
from myxtts.evaluation.asr import Moonshine, error_rates, plain_words, recogniser_for
from tests.shared_data import shared

pytest.importorskip("jiwer")


def test_errors_are_counted_by_kind_and_by_sentence():
    # The first lacks one of four words, the second has one wrong and one too many of three.
    rates = error_rates(["The cat sat down.", "We saw it."], ["the cat down", "we was it all"])
    assert (rates.words, rates.substitutions, rates.deletions, rates.insertions) == (7, 1, 1, 1)
    assert rates.wer == pytest.approx(3 / 7)
    assert [one.errors for one in rates.sentences] == [1, 2]
    assert rates.sentences[0].said == "the cat sat down"
    assert rates.sentences[1].heard == "we was it all"


def test_characters_are_counted_with_the_spaces_between_words():
    # "ab cd" has five characters; "ab ce" has one of them wrong.
    assert error_rates(["Ab cd!"], ["ab ce"]).cer == pytest.approx(1 / 5)


def test_hearing_nothing_is_a_deletion_of_every_word():
    rates = error_rates(["one two three", "four"], ["", "four"])
    assert (rates.wer, rates.deletions) == (3 / 4, 3)
    assert [one.deletions for one in rates.sentences] == [3, 0]


def test_hearing_too_much_can_exceed_one():
    assert error_rates(["stop"], ["stop it right now"]).wer == 3.0


@pytest.mark.parametrize(
    "said, heard",
    [
        ("two dogs", "2 dogs."),
        ("It cost five dollars.", "it cost $5"),
        ("twenty-one", "21"),
        ("the boy's hat", "The boy’s hat!"),
        ("Mr. Smith", "Mister Smith"),
    ],
)
def test_two_ways_to_write_the_same_words_agree(said, heard):
    assert error_rates([said], [heard]).wer == 0.0


def test_spellings_are_left_alone():
    assert error_rates(["a grey colour"], ["a gray color"]).substitutions == 2


def test_persian_words_keep_their_marks_and_lose_their_joints():
    assert plain_words("لطفاً می‌روم، ۲ بار!", "fa") == "لطفاً میروم دو بار"


def test_references_must_say_something():
    with pytest.raises(UserError, match="'...!' has none"):
        error_rates(["yes", "...!"], ["yes", ""])
    with pytest.raises(UserError, match="there is no reference"):
        error_rates([], [])
    with pytest.raises(ValueError, match="1 references, but 2"):
        error_rates(["yes"], ["yes", "no"])


def test_a_language_without_a_recogniser_has_none():
    assert recogniser_for("fa") is None


@pytest.mark.parametrize("package", ["moonshine_voice", "jiwer"])
def test_a_missing_package_names_its_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # importing it now fails
    with pytest.raises(UserError, match=r"myxtts\[eval\]"):
        Moonshine()
        error_rates(["yes"], ["yes"])


@pytest.fixture(scope="module")
def moonshine():
    pytest.importorskip("moonshine_voice")
    return recogniser_for("en")


def test_silence_is_heard_as_nothing(moonshine):
    assert moonshine.transcribe(np.zeros(22050, np.float32), 22050) == ""
    assert moonshine.transcribe(np.zeros(0, np.float32), 22050) == ""
    assert moonshine.transcribe_many([]) == []


def test_a_recorded_sentence_is_understood_whatever_came_before(moonshine):
    utterances = read_corpus(shared("kathleen_en")).utterances[8:12]
    recordings = [(read_audio(one.audio, 22050), 22050) for one in utterances]
    done = []
    heard = moonshine.transcribe_many(recordings, lambda *counts: done.append(counts))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert error_rates([one.text for one in utterances], heard).wer < 0.15
    assert [moonshine.transcribe(*one) for one in reversed(recordings)] == heard[::-1]
