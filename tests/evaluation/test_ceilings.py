import json

import numpy as np
import pytest

from myxtts.evaluation.ceilings import CeilingCache, answers, default_folder

ONE, OTHER = (np.linspace(-1, 1, 50, dtype=np.float32), 8000), (np.ones(9, np.float32), 8000)


class Judge:
    """Says how many samples a recording has, and counts what it is asked about."""

    def __init__(self, identity: str = "a judge"):
        self.identity, self.asked = identity, []

    def __call__(self, recordings):
        self.asked += [len(samples) for samples, _ in recordings]
        return [f"{len(samples)} samples" for samples, _ in recordings]

    def of(self, cache, recordings, is_kept=None) -> list[str]:
        is_kept = is_kept or [True] * len(recordings)
        return answers(cache, lambda: self.identity, recordings, is_kept, self)


@pytest.fixture
def cache(tmp_path) -> CeilingCache:
    return CeilingCache(tmp_path)


def test_a_recording_is_judged_once_by_each_judge(cache):
    judge, stranger = Judge(), Judge("another judge")
    assert judge.of(cache, [ONE, OTHER]) == judge.of(cache, [OTHER, ONE])[::-1]
    assert judge.asked == [50, 9]
    assert stranger.of(cache, [ONE]) == ["50 samples"] and stranger.asked == [50]


def test_other_samples_or_another_rate_are_another_recording(cache):
    judge, (samples, rate) = Judge(), ONE
    changed = samples.copy()
    changed[7] += 1e-6
    judge.of(cache, [ONE, (samples, 2 * rate), (changed, rate)])
    assert judge.asked == [50, 50, 50]


def test_speech_is_judged_each_time(cache):
    judge = Judge()
    for _ in range(2):
        assert judge.of(cache, [ONE, OTHER], [False, True]) == ["50 samples", "9 samples"]
    assert judge.asked == [50, 9, 50]


def test_fresh_answers_replace_what_was_kept(cache, tmp_path):
    Judge().of(cache, [ONE])
    judge = Judge()
    judge.of(CeilingCache(tmp_path, is_fresh=True), [ONE])
    assert judge.asked == [50]
    judge.of(cache, [ONE])
    assert judge.asked == [50]


@pytest.mark.parametrize("damage", ["", "{", '"text"', "{}", "other answer"])
def test_a_damaged_answer_is_asked_for_again(cache, tmp_path, damage):
    Judge().of(cache, [ONE])
    (path,) = tmp_path.rglob("*.json")
    if damage == "other answer":
        damage = json.dumps({**json.loads(path.read_text()), "answer": "51 samples"})
    path.write_text(damage)
    judge = Judge()
    assert judge.of(cache, [ONE]) == judge.of(cache, [ONE]) == ["50 samples"]
    assert judge.asked == [50]


def test_ratings_survive_with_all_digits_and_no_file_is_left_behind(cache, tmp_path):
    scores = [1 / 3, 2.0, float("nan")]
    found = answers(cache, lambda: "r", [ONE], [True], lambda recordings: [scores])
    assert found == [scores]
    again = answers(cache, lambda: "r", [ONE], [True], lambda recordings: pytest.fail("asked"))
    np.testing.assert_array_equal(again, [scores])
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("")
    judge, cache = Judge(), CeilingCache(tmp_path / "file")
    assert judge.of(cache, [ONE]) == judge.of(cache, [ONE]) == ["50 samples"]


def test_the_users_cache_is_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "myxtts" / "ceilings"
