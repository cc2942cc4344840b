"""Progress of a long job: a bar on a terminal, one useful line per interval elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

INTERVAL_SECONDS = 10.0

# report(done, total, seconds of audio among what is done)
Report = Callable[..., None]


@contextlib.contextmanager
def progress(title: str, unit: str = "utterances") -> Iterator[Report]:
    """Yield a function to be told `done, total` and perhaps the seconds of audio that are done."""
    if not sys.stderr.isatty():
        yield _Lines(title, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    texts = [TextColumn(f"{{task.fields[{name}]}}") for name in ("count", "speed")]
    columns = (TextColumn("{task.description}"), BarColumn(), texts[0], TimeElapsedColumn())
    eta = (TextColumn("left:"), Remaining(), texts[1])
    with Progress(*columns, *eta, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, count="", speed="")
        began = time.monotonic()

        def report(done: int, total: int, seconds: float = 0.0) -> None:
            fields = {"count": _count(done, total, unit), "speed": _speed(seconds, began)}
            bar.update(task, completed=done, total=total, **fields)

        yield report


class _Lines:
    """Prints how far it is, how fast and how long it will take, now and then."""

    def __init__(self, title: str, unit: str):
        self.title, self.unit = title, unit
        self.began = self.last = time.monotonic()

    def __call__(self, done: int, total: int, seconds: float = 0.0) -> None:
        now = time.monotonic()
        if now - self.last < INTERVAL_SECONDS or not done:
            return
        self.last = now
        left = (now - self.began) * (total - done) / done
        parts = [_count(done, total, self.unit), f"{left:.0f} s left", _speed(seconds, self.began)]
        print(f"{self.title}: {', '.join(filter(None, parts))}", file=sys.stderr)


def _count(done: int, total: int, unit: str) -> str:
    return f"{done:,} of {total:,} {unit}"


def _speed(seconds: float, began: float) -> str:
    """Hours of audio per second of waiting, where the job is about audio."""
    return f"{seconds / 3600 / max(1e-9, time.monotonic() - began):.3f} h/s" if seconds else ""
