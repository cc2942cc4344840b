"""What a resumed run keeps of the one that it goes on with."""

from pathlib import Path

import pytest

from myxtts.training import resuming


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({}, 0),  # by a version that had no choice
        ({"threads": {"cores": 2, "an operation": 1}}, 1),
        ({"threads": {"cores": 2, "an operation": 0}}, 0),
        ({"threads": {"cores": 8, "an operation": 0}}, None),
    ],
)
def test_a_run_keeps_its_threads_on_as_many_cores(monkeypatch, facts, kept):
    monkeypatch.setattr(resuming, "available_cores", lambda: 2)
    monkeypatch.setattr(resuming, "saved_states", lambda folder: [folder / "step-7"])
    monkeypatch.setattr(resuming, "read_facts", lambda path: facts)
    assert resuming.threads_of_its_time(Path("run"), None) == kept
    assert resuming.threads_of_its_time(Path("run"), "run/checkpoints/step-7") == kept
    assert resuming.threads_of_its_time(Path("run"), False) is None


def test_a_new_run_has_no_threads_to_keep(tmp_path):
    assert resuming.threads_of_its_time(tmp_path, None) is None
