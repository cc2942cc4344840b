"""Rhythm: durations and pauses that were written down."""

import math

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.alignment import Alignment
from myxtts.evaluation.evaluator import evaluate
from myxtts.evaluation.metrics.frames import analyse
from myxtts.evaluation.metrics.rhythm import compare_pauses, find_pauses, variation
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.table import ALIGNMENT, SPEECH

SPEC = AudioSpec()
RATE = SPEC.sample_rate
WORDS = {"a": (300, 2300), "b": (700, 1200), "c": (450, 900), "d": (600, 1800)}


def word(name: str, seconds: float = 0.4) -> np.ndarray:
    """Harmonics of 150 Hz under two formants."""
    time = np.arange(round(seconds * RATE)) / RATE
    wave = np.zeros(len(time))
    for number in range(1, 40):
        near = [math.exp(-(((150 * number - one) / 150) ** 2)) for one in WORDS[name]]
        wave += (sum(near) + 0.01) * np.sin(2 * np.pi * 150 * number * time)
    return 0.2 * wave / np.abs(wave).max()


def sentence(*parts: str | float, noise: float = 1e-4):
    """The frames of words and of pauses in seconds, with some noise."""
    sounds = [word(one) if isinstance(one, str) else np.zeros(round(one * RATE)) for one in parts]
    samples = np.concatenate(sounds)
    samples += noise * np.random.default_rng(0).normal(size=len(samples))
    return analyse(samples.astype(np.float32), SPEC)


def test_pauses_are_silence_between_sounds_longer_than_the_closure_of_a_stop():
    found = find_pauses(sentence(0.5, "a", 0.1, "b", 0.4, "c", 0.8, "d", 0.5))
    seconds = (found[:, 1] - found[:, 0]) * 256 / RATE
    # A window of 1024 samples, 46 ms, is loud as long as it holds some sound.
    assert seconds == pytest.approx([0.4, 0.8], abs=0.05)


def test_the_same_speech_has_the_same_pauses():
    same = sentence("a", 0.3, "b", "c", 0.5, "d")
    found = compare_pauses(same, same)
    assert (found.spoken, found.recorded, found.added, found.missed) == (2, 2, 0, 0)
    assert found.spoken_seconds == found.recorded_seconds == pytest.approx(0.8, abs=0.1)


def test_a_pause_is_missed_or_added_where_only_one_has_it():
    recorded = sentence("a", 0.4, "b", "c", 0.4, "d")
    found = compare_pauses(sentence("a", "b", 0.4, "c", 0.8, "d"), recorded)
    assert (found.spoken, found.recorded) == (2, 2)
    assert (found.added, found.missed) == (1, 1)
    assert found.spoken_seconds / found.recorded_seconds == pytest.approx(2.0, rel=0.1)


def test_without_a_pause_all_are_missed_and_without_any_sound_nothing_is_known():
    recorded = sentence("a", 0.4, "b")
    found = compare_pauses(sentence("a", "b"), recorded)
    assert (found.spoken, found.recorded, found.added, found.missed) == (0, 1, 0, 1)
    assert found.spoken_seconds == found.recorded_seconds == 0.0
    silent = compare_pauses(analyse(np.zeros(RATE, np.float32), SPEC), recorded)
    assert math.isnan(silent.recorded) and math.isnan(silent.missed)


def test_the_variation_is_the_standard_deviation_over_the_mean_of_each_frequent_token():
    tokens = [np.array([7, 7, 8]), np.array([7, 7, 9, 9, 9, 9, 9])]
    durations = [np.array([2, 4, 9]), np.array([2, 4, 5, 5, 5, 5, 5])]
    assert variation([*tokens, np.array([7])], [*durations, np.array([3])]) == {
        7: pytest.approx(math.sqrt(0.8) / 3),  # of 2, 4, 2, 4, 3
        9: 0.0,
    }


def variety(spoken: list[int], recorded: list[int]) -> float:
    """The duration variety of one token."""
    tokens = np.full(len(spoken), 7)
    frame_tokens = np.repeat(np.arange(len(recorded)), recorded)
    wave = np.sin(np.arange(4000) / 9).astype(np.float32)
    own = Sentence("s", "text", wave, "anna", wave, durations=np.array(spoken), tokens=tokens)
    aligned = [Alignment(tokens, frame_tokens, np.array(recorded))]
    subject = Subject("test", "en", SPEC, [own], alignments=aligned)
    return evaluate(subject, Judges(), metrics=["duration_variety"]).scores()["duration_variety"]


def test_durations_that_vary_as_in_recordings_have_a_variety_of_one_at_any_rate():
    recorded = [4, 8, 6, 4, 8]
    assert variety(recorded, recorded) == 1.0
    assert variety([2 * one for one in recorded], recorded) == pytest.approx(1.0)


def test_durations_half_as_far_from_their_mean_have_half_the_variety():
    assert variety([5, 7, 6, 5, 7], [4, 8, 6, 4, 8]) == pytest.approx(0.5)
    assert variety([6, 6, 6, 6, 6], [4, 8, 6, 4, 8]) == 0.0


def test_without_a_voice_there_is_no_duration_variety():
    wave = np.sin(np.arange(4000) / 9).astype(np.float32)
    subject = Subject("test", "en", SPEC, [Sentence("s", "text", wave, "anna", wave)])
    found = evaluate(subject, Judges(), metrics=["duration_variety", "pause_length"])
    assert found.not_measured == {ALIGNMENT: "only a voice can align recordings with their texts"}
    # Without a pause there is no length of pauses, and no error.
    assert math.isnan(found.measures["pause_length"].intervals[SPEECH].value)
