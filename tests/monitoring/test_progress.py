from types import SimpleNamespace

import pytest

from myxtts.monitoring import progress as module
from myxtts.monitoring.progress import progress, stage_progress


@pytest.fixture
def lines(monkeypatch, capsys):
    """What reports of `done, total` print where there is no terminal, one a second."""
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.0)
    moments = iter(range(100))
    clock = SimpleNamespace(monotonic=lambda: float(next(moments)))
    monkeypatch.setattr(module, "time", clock)

    def report(*reports) -> list[str]:
        with progress("download", "MB") as report:
            for done, total in reports:
                report(done, total)
        return capsys.readouterr().err.splitlines()

    return report


def test_a_report_counts_and_shows_the_time_left(lines):
    assert lines((50, 100))[0].startswith("download: 50 of 100 MB, ")
    assert lines((100, 100)) == ["download: 100 of 100 MB, 0 s left"]


@pytest.mark.parametrize("total", [0, 103])
def test_a_total_that_is_unknown_or_too_low_promises_nothing(lines, total):
    assert lines((170, total)) == ["download: 170 MB"]


def test_stages_follow_each_other_and_bytes_are_shown_as_megabytes(monkeypatch, capsys):
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.0)
    with stage_progress(in_bytes=("download",)) as report:
        report("download", 5_000_000, 9_000_000)
        report("unpack", 3, 4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("download: 5 of 9 MB") and lines[1].startswith(
        "unpack: 3 of 4 files"
    )
