from itertools import cycle

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.alignment import Alignment
from myxtts.evaluation.trial import Trial, correlation, measure_trial, score_copies, score_trial

pytest.importorskip("jiwer")
SENTENCES = ("one two three four", "five six seven eight")


class Recogniser:
    """Hears all of what is as long as the recordings, and only one word of anything shorter."""

    def __init__(self):
        self.rates = []

    def transcribe_many(self, recordings, progress=None):
        self.rates += [rate for _, rate in recordings]
        pairs = zip(cycle(SENTENCES), recordings, strict=False)
        return [said if len(samples) >= 5120 else said.split()[0] for said, (samples, _) in pairs]


@pytest.fixture
def trial():
    """The second sentence is spoken too fast."""
    wave = np.sin(np.arange(5120) / 9).astype(np.float32) / 2
    spoken = (wave, wave[:3072])
    mels = [np.zeros((len(samples) // 256, 80)) for samples in spoken]
    return Trial("main voice", "en", SENTENCES, spoken, mels, (wave, wave), AudioSpec())


@pytest.fixture
def alignments():
    frames = np.repeat(np.arange(4), 5)
    return [
        Alignment(np.arange(4), frames, np.array([1.0, 2.0, 3.0, 4.0])),
        Alignment(np.arange(4), np.sort(frames)[frames > 0], np.array([90.0, 2.0, 3.0, 4.0])),
    ]


def test_the_recordings_are_the_ceiling_of_the_model(trial):
    recogniser = Recogniser()
    model, recordings = score_trial(trial, recogniser)
    # Three of eight words are missing from what the model says.
    assert (model.what, model.rates.wer) == ("model, main voice", 3 / 8)
    assert model.ceiling is recordings.rates and recordings.rates.wer == 0.0
    assert set(recogniser.rates) == {22050}


def test_copies_have_the_length_of_the_recordings(trial):
    assert score_copies(trial, Recogniser()).rates.wer == 0.0


def test_a_trial_counts_what_is_skipped_and_endless(trial, alignments):
    score, _ = score_trial(trial, Recogniser())
    found = measure_trial(trial, alignments, score)
    # The second sentence lost three of four words, and its first sound lasts 90 frames, 1.04 s.
    assert (found["skipped sentences"], found["endless sentences"]) == (1, 1)
    assert found["length ratio, spoken / recorded"] == pytest.approx(0.8)
    assert found["least and greatest length ratio"] == "0.60, 1.00"
    # The second alignment lacks its first token.
    assert found["alignments monotonic and complete"] == "1 of 2"
    assert found["longest sound in an alignment, s"] == pytest.approx(5 * 256 / 22050)


def test_without_a_recogniser_lengths_alone_tell_what_is_skipped(trial, alignments):
    assert measure_trial(trial, alignments)["skipped sentences"] == 0


def test_durations_in_the_same_proportions_correlate():
    frames = np.repeat(np.arange(3), (2, 4, 8))
    alike = Alignment(np.arange(3), frames, np.array([1.0, 2.0, 4.0]))
    opposite = Alignment(np.arange(3), frames, np.array([4.0, 2.0, 1.0]))
    assert correlation([alike]) == pytest.approx(1.0)
    assert correlation([opposite]) == pytest.approx(-1.0)
