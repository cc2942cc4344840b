"""Whose voice is heard, by embeddings that are written down."""

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.similarity import (
    VoiceTrial,
    mean_score,
    median_pitch,
    pitched,
    score_voices,
)

SPEC = AudioSpec()
# A recording is told by its first sample: its angle in the plane, in degrees.
ANNA, BEN = 0.0, 90.0


def recording(angle: float, hertz: float = 200.0) -> np.ndarray:
    at = np.arange(SPEC.sample_rate // 4) / SPEC.sample_rate
    samples = 0.3 * np.sin(2 * np.pi * hertz * at)
    samples[0] = angle / 1000.0
    return samples.astype(np.float32)


def embed(recordings, sample_rate):
    angles = [np.radians(1000.0 * float(samples[0])) for samples in recordings]
    return [3.0 * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]


def test_a_voice_is_judged_by_whom_it_is_nearest_to():
    known = {"anna": [recording(ANNA)], "ben": [recording(BEN)]}
    trial = VoiceTrial(
        "anna",
        spoken=[recording(30.0, 220.0), recording(60.0, 220.0)],
        recorded=[recording(0.0)],
        copied=[recording(20.0, 200.0)],
    )
    (score,) = score_voices([trial], known, embed, SPEC)
    assert (score.right, score.right_copied) == (0.5, 1.0)
    expected = (np.cos(np.radians(30)) + np.cos(np.radians(60))) / 2
    assert score.similarity == pytest.approx(expected)
    assert score.nearest_stranger == pytest.approx(expected)  # 60 and 30 degrees from ben
    assert score.natural_similarity == pytest.approx(1.0)
    assert score.copied_similarity == pytest.approx(np.cos(np.radians(20)))
    assert score.share == pytest.approx(expected)
    assert score.pitch_ratio == pytest.approx(1.1, rel=0.01)


def test_in_the_mean_a_pitch_too_high_does_not_make_up_for_one_too_low():
    known = {"anna": [recording(ANNA)], "ben": [recording(BEN)]}
    trials = [
        VoiceTrial(name, [recording(at, hertz)], [recording(at)], [recording(at, 200.0)])
        for name, at, hertz in (("anna", ANNA, 240.0), ("ben", BEN, 200.0 / 1.2))
    ]
    mean = mean_score(score_voices(trials, known, embed, SPEC), "both")
    assert (mean.name, mean.right) == ("both", 1.0)
    assert mean.pitch_ratio == pytest.approx(1.2, rel=0.02)


def test_a_hoarse_voice_has_no_pitch_and_does_not_count_in_the_mean():
    known = {"anna": [recording(ANNA)], "ben": [recording(BEN)]}
    rate = SPEC.sample_rate
    noise = np.random.default_rng(0).normal(size=3 * rate).astype(np.float32) / 10
    noise[:1200] = recording(ANNA, 200.0)[:1200]  # a moment of voice
    trials = [
        VoiceTrial(name, [spoken], [recording(at)], [recording(at, 200.0)])
        for name, at, spoken in (("anna", ANNA, recording(ANNA, 220.0)), ("ben", BEN, noise))
    ]
    scores = score_voices(trials, known, embed, SPEC)
    assert [one.name for one in pitched(scores)] == ["anna"]
    assert mean_score(scores, "both").pitch_ratio == pytest.approx(1.1, rel=0.01)
    assert np.isnan(mean_score(scores[1:], "hoarse").pitch_ratio)


def test_silence_has_no_pitch():
    assert np.isnan(median_pitch([np.zeros(SPEC.sample_rate, np.float32)], SPEC))
