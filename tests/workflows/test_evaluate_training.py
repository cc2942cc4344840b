"""The scores that an evaluation hands to training."""

import pytest

from myxtts.data.corpus.corpus import read_corpus
from myxtts.evaluation.metrics.session import Judges
from myxtts.workflows.evaluate_training import VoiceEvaluator, check_metric, metric_choices
from tests.helpers.fake_voice import fake_voice

pytest.importorskip("pystoi")

CORPUS = {"count": 20, "speakers": 2, "seconds": (0.7, 1.0)}


def test_a_ratio_is_scored_with_its_distance_from_one(shared_corpus):
    voice = fake_voice(val_fraction=0.4)
    voice.speakers = ("speaker0", "speaker1")
    held_out = list(read_corpus(shared_corpus, val_fraction=0.4).val)
    scores = VoiceEvaluator(Judges(), 3, "en")(voice, held_out)().scores
    for name in ("length_ratio", "mel_variance", "spectral_detail"):
        assert scores[f"{name}_distance"] == abs(scores[name] - 1.0) > 0
    assert "mcd" in scores and "mcd_distance" not in scores
    assert not {"duration_variety", "distill_mos"} & scores.keys()  # which cost more time


def test_the_best_voice_is_kept_by_the_distance_of_a_ratio():
    assert {"mel_variance_distance", "f0_spread_distance", "missed_pauses", "mcd"} <= set(
        metric_choices()
    )
    assert not {"mel_variance", "distill_mos", "duration_variety_distance"} & set(metric_choices())
    check_metric("modulation_distance", Judges(absent={"listening": "no ASR"}))
