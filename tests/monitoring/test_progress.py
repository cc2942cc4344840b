from types import SimpleNamespace

import pytest

from myxtts.monitoring import progress as module
from myxtts.monitoring.progress import progress


@pytest.fixture
def lines(monkeypatch, capsys):
    """What reports of `done, total` print where there is no terminal, one a second."""
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.0)
    moments = iter(range(100))
    clock = SimpleNamespace(monotonic=lambda: float(next(moments)))
    monkeypatch.setattr(module, "time", clock)

    def report(*reports) -> list[str]:
        with progress("download", "MB") as told:
            for done, total in reports:
                told(done, total)
        return capsys.readouterr().err.splitlines()

    return report


def test_a_report_counts_and_tells_the_time_left(lines):
    assert lines((50, 100))[0].startswith("download: 50 of 100 MB, ")
    assert lines((100, 100)) == ["download: 100 of 100 MB, 0 s left"]


@pytest.mark.parametrize("total", [0, 103])
def test_a_total_that_is_unknown_or_too_low_promises_nothing(lines, total):
    assert lines((170, total)) == ["download: 170 MB"]
