"""Speakers that a voice does not know: who is cloned, from what, and what is left to compare."""

import numpy as np
import pytest

from myxtts.audio.io import read_audio, write_wav
from myxtts.data.corpus.utterance import Utterance
from myxtts.errors import UserError
from myxtts.workflows.clones import find_strangers, write_references

RATE = 22_050


@pytest.fixture(scope="module")
def utterances(tmp_path_factory) -> list[Utterance]:
    """Five recordings of a second each by anna, ben and carol."""
    folder = tmp_path_factory.mktemp("wavs")
    found = []
    for speaker in ("anna", "ben", "carol"):
        for number in range(5):
            path = folder / f"{speaker}{number}.wav"
            write_wav(path, np.full(RATE, 0.01 * (number + 1), np.float32), RATE)
            found.append(Utterance(path.stem, path, "text", speaker, "en"))
    return found


def test_known_speakers_are_only_compared_with(utterances):
    found = find_strangers(utterances, ["anna"], 2.5, None)
    assert list(found.references) == ["ben", "carol"]
    assert {one.speaker for one in found.sentences} == {"ben", "carol"}
    assert {one.speaker for one in found.others} == {"anna", "ben", "carol"}


def test_what_is_cloned_from_is_neither_spoken_nor_compared_with(utterances):
    found = find_strangers(utterances, ["anna"], 2.5, None)
    assert [one.id for one in found.references["ben"]] == ["ben0", "ben1", "ben2"]
    left = {one.id for one in (*found.sentences, *found.others)}
    assert "ben3" in left and not left & {"ben0", "ben1", "ben2"}


def test_one_speaker_can_be_named(utterances):
    found = find_strangers(utterances, [], 1.0, "carol")
    assert list(found.references) == ["carol"]
    assert {one.speaker for one in found.sentences} == {"carol"}


def test_references_are_as_long_as_asked(utterances, tmp_path):
    references = find_strangers(utterances, ["anna"], 2.5, None).references
    found = write_references(tmp_path, references, 2.5, RATE)
    assert list(found) == ["ben", "carol"]
    samples = read_audio(found["ben"], RATE)
    assert len(samples) == round(2.5 * RATE)
    assert samples[-1] == pytest.approx(0.03, abs=1e-4)  # of its third recording


@pytest.mark.parametrize(
    "known, seconds, speaker, said",
    [
        ((), 0.2, None, "0.2 s do not identify a speaker"),
        ((), 3.5, None, "anna has 5 recordings, too few for 3.5 s"),
        (("anna", "ben", "carol"), 2, None, "nobody whom the voice does not know speaks en"),
        (("anna",), 2, "anna", "in the corpus as 'anna'"),
    ],
)
def test_what_cannot_be_cloned_is_explained(utterances, known, seconds, speaker, said):
    with pytest.raises(UserError, match=said):
        find_strangers(utterances, known, seconds, speaker)
