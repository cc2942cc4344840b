import json

import numpy as np
import pytest

from myxtts.evaluation.ceilings import CeilingCache, answers, default_folder
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH

ONE, OTHER = (np.linspace(-1, 1, 50, dtype=np.float32), 8000), (np.ones(9, np.float32), 8000)


class Judge:
    """Returns how many samples a recording has, and records its calls."""

    def __init__(self, identity: str = "a judge"):
        self.identity, self.asked = identity, []

    def __call__(self, recordings):
        self.asked += [len(samples) for samples, _ in recordings]
        return [f"{len(samples)} samples" for samples, _ in recordings]

    def of(self, cache, recordings) -> list[str]:
        return self.of_sources(cache, {RECORDED: recordings})[RECORDED]

    def of_sources(self, cache, sources) -> dict[str, list[str]]:
        return answers(cache, lambda: self.identity, sources, self)


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
        found = judge.of_sources(cache, {SPEECH: [ONE], RESYNTHESIS: [OTHER]})
        assert found == {SPEECH: ["50 samples"], RESYNTHESIS: ["9 samples"]}
    assert judge.asked == [50, 9, 50]


def test_fresh_results_replace_stored_ones(cache, tmp_path):
    Judge().of(cache, [ONE])
    judge = Judge()
    judge.of(CeilingCache(tmp_path, is_fresh=True), [ONE])
    assert judge.asked == [50]
    judge.of(cache, [ONE])
    assert judge.asked == [50]


@pytest.mark.parametrize("damage", ["", "{", '"text"', "{}", "other answer"])
def test_a_damaged_result_is_computed_again(cache, tmp_path, damage):
    Judge().of(cache, [ONE])
    (path,) = tmp_path.rglob("*.json")
    if damage == "other answer":
        damage = json.dumps({**json.loads(path.read_text()), "answer": "51 samples"})
    path.write_text(damage)
    judge = Judge()
    assert judge.of(cache, [ONE]) == judge.of(cache, [ONE]) == ["50 samples"]
    assert judge.asked == [50]


def test_ratings_are_stored_with_all_digits_and_leave_no_temporary_file(cache, tmp_path):
    scores = [1 / 3, 2.0, float("nan")]
    given = (cache, lambda: "r", {RECORDED: [ONE]})
    assert answers(*given, lambda recordings: [scores]) == {RECORDED: [scores]}
    again = answers(*given, lambda recordings: pytest.fail("asked"))
    np.testing.assert_array_equal(again[RECORDED], [scores])
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


def test_an_unwritable_folder_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    judge, cache = Judge(), CeilingCache(tmp_path / "file")
    assert judge.of(cache, [ONE]) == judge.of(cache, [ONE]) == ["50 samples"]


def test_the_user_cache_is_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "myxtts" / "ceilings"
