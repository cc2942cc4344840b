"""Scores of the speakers of an evaluation, from given embeddings."""

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.evaluator import evaluate
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.table import ENCODER, metrics_that_need
from myxtts.workflows.demo_voices import mean_score, pitched, score_speakers

SPEC = AudioSpec()
# The first sample of a recording is its angle in the plane, in degrees.
ANNA, BEN = 0.0, 90.0


def recording(angle: float, hertz: float = 200.0) -> np.ndarray:
    at = np.arange(SPEC.sample_rate // 4) / SPEC.sample_rate
    samples = 0.3 * np.sin(2 * np.pi * hertz * at)
    samples[0] = angle / 1000.0
    return samples.astype(np.float32)


def embed(recordings, sample_rate):
    angles = [np.radians(1000.0 * float(samples[0])) for samples in recordings]
    return [3.0 * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]


def score(*sentences: Sentence):
    known = {"anna": [recording(ANNA)], "ben": [recording(BEN)]}
    subject = Subject("voices", "en", SPEC, sentences, known=known)
    metrics = metrics_that_need(ENCODER)
    return score_speakers(evaluate(subject, Judges(embed=embed), metrics=metrics))


def sentence(name, spoken, recorded, resynthesised) -> Sentence:
    return Sentence(name, "text", spoken, name, recorded, resynthesised)


def test_a_voice_is_right_where_its_own_recordings_are_nearest():
    (found,) = score(
        *(
            sentence("anna", recording(at, 220.0), recording(0.0), recording(20.0, 200.0))
            for at in (30.0, 60.0)
        )
    )
    assert (found.right, found.right_copied) == (0.5, 1.0)
    expected = (np.cos(np.radians(30)) + np.cos(np.radians(60))) / 2
    assert found.similarity == pytest.approx(expected)
    assert found.nearest_stranger == pytest.approx(expected)  # 60 and 30 degrees from ben
    assert found.natural_similarity == pytest.approx(1.0)
    assert found.copied_similarity == pytest.approx(np.cos(np.radians(20)))
    assert found.share == pytest.approx(expected)
    assert found.pitch_ratio == pytest.approx(1.1, rel=0.01)


def test_high_and_low_pitches_do_not_cancel_in_the_mean():
    scores = score(
        sentence("anna", recording(ANNA, 240.0), recording(ANNA), recording(ANNA)),
        sentence("ben", recording(BEN, 200.0 / 1.2), recording(BEN), recording(BEN)),
    )
    mean = mean_score(scores, "both")
    assert (mean.name, mean.right) == ("both", 1.0)
    assert mean.pitch_ratio == pytest.approx(1.2, rel=0.02)


def test_a_hoarse_voice_has_no_pitch_and_does_not_count_in_the_mean():
    rate = SPEC.sample_rate
    noise = np.random.default_rng(0).normal(size=3 * rate).astype(np.float32) / 10
    noise[:1200] = recording(BEN)[:1200]  # a moment of voice
    scores = score(
        sentence("anna", recording(ANNA, 220.0), recording(ANNA), recording(ANNA)),
        sentence("ben", noise, recording(BEN), recording(BEN)),
    )
    assert [one.name for one in pitched(scores)] == ["anna"]
    assert mean_score(scores, "both").pitch_ratio == pytest.approx(1.1, rel=0.01)
    assert np.isnan(mean_score(scores[1:], "hoarse").pitch_ratio)
