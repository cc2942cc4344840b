"""The design of a listening test: random, balanced, and equally loud."""

import numpy as np
import pytest

from myxtts.audio.cleanup import loudness
from myxtts.evaluation.listening import (
    LEVEL_LUFS,
    PREFERENCE,
    RATING,
    ListeningTest,
    at_one_level,
    balanced_sides,
    make_trials,
)

RATE = 16000
TONE = np.sin(np.arange(RATE) / 9).astype(np.float32)


@pytest.mark.parametrize("count, systems", [(20, 2), (21, 2), (12, 3), (14, 4), (1, 3)])
def test_every_system_is_equally_often_at_every_place(count, systems):
    sides = balanced_sides(count, systems, np.random.default_rng(7))
    assert sides.shape == (count, systems)
    assert (np.sort(sides, axis=1) == np.arange(systems)).all()
    for place in sides.T:
        counts = np.bincount(place, minlength=systems)
        assert counts.max() - counts.min() <= (count % systems > 0)


def test_the_next_side_does_not_follow_from_the_last_one():
    sides = balanced_sides(200, 2, np.random.default_rng(0))[:, 0]
    assert 70 < np.count_nonzero(np.diff(sides)) < 130  # 200 where they alternate


def test_a_seed_decides_the_order_and_clips_go_with_their_sides():
    sentences = [(f"s{n}", f"text {n}") for n in range(6)]
    clips = [[np.array([system, n]) for n in range(6)] for system in range(3)]
    first, again, other = (make_trials(sentences, clips, seed) for seed in (1, 1, 2))
    order = [(trial.sentence, trial.sides) for trial in first]
    assert order == [(trial.sentence, trial.sides) for trial in again]
    assert order != [(trial.sentence, trial.sides) for trial in other]
    assert sorted(name for name, _ in order) == [name for name, _ in sentences]
    for trial in first:
        number = int(trial.sentence[1:])
        assert trial.text == f"text {number}"
        assert [clip.tolist() for clip in trial.clips] == [[side, number] for side in trial.sides]


def test_two_systems_are_preferred_and_more_are_rated():
    assert ListeningTest(("a", "b"), (), RATE, 0).design == PREFERENCE
    assert ListeningTest(("a", "b", "c"), (), RATE, 0).design == RATING


def test_all_clips_are_equally_loud():
    loud, quiet = at_one_level([[TONE * 0.9], [TONE * 0.01]], RATE)
    assert loudness(loud[0], RATE) == pytest.approx(LEVEL_LUFS, abs=0.01)
    assert loudness(quiet[0], RATE) == pytest.approx(LEVEL_LUFS, abs=0.01)


def test_a_clip_with_high_peaks_makes_all_others_quieter_too():
    clicks = TONE * 0.01
    clicks[4000] = 1.0
    (tone,), (clicking,) = at_one_level([[TONE], [clicks]], RATE)
    assert np.abs(clicking).max() <= 0.9901
    assert loudness(tone, RATE) == pytest.approx(loudness(clicking, RATE), abs=0.01)
    assert loudness(tone, RATE) < LEVEL_LUFS - 3
