"""Progress of a long job: a bar on a terminal, one useful line per interval elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from myxtts.monitoring.heartbeat import doing, heartbeat, shown

INTERVAL_SECONDS = 10.0

_MEGABYTE = 1_000_000


class Progress(Protocol):
    """A function that a long job reports to."""

    def __call__(self, done: int, total: int, seconds: float = 0.0, /) -> None:
        """Report what is done, of how many (0: unknown), and the seconds of audio in it."""


# report(stage, done, total) of a job in several stages
StageProgress = Callable[[str, int, int], None]


@contextlib.contextmanager
def progress(title: str, unit: str = "utterances") -> Iterator[Progress]:
    """Yield a function that shows what is reported to it."""
    if not sys.stderr.isatty():
        with doing(title), heartbeat(_say):
            yield _Lines(title, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.progress import TimeRemainingColumn as Remaining

    texts = [TextColumn(f"{{task.fields[{name}]}}") for name in ("count", "speed")]
    columns = (TextColumn("{task.description}"), BarColumn(), texts[0], TimeElapsedColumn())
    eta = (TextColumn("left:"), Remaining(), texts[1])
    with Bars(*columns, *eta, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, count="", speed="")
        began = time.monotonic()

        def report(done: int, total: int, seconds: float = 0.0, /) -> None:
            bar.update(
                task,
                completed=done,
                total=_known(done, total),
                count=_count(done, total, unit),
                speed=_speed(seconds, began),
            )

        yield report


@contextlib.contextmanager
def stage_progress(in_bytes: Collection[str]) -> Iterator[StageProgress]:
    """Yield a function that shows one stage after the other: these in MB, the others in files."""
    with contextlib.ExitStack() as stack:
        reports: dict[str, Progress] = {}

        def report(stage: str, done: int, total: int) -> None:
            scale, unit = (_MEGABYTE, "MB") if stage in in_bytes else (1, "files")
            if stage not in reports:
                stack.close()  # the bar of the stage before
                reports[stage] = stack.enter_context(progress(stage, unit))
            reports[stage](done // scale, total // scale)

        yield report


class _Lines:
    """Prints how far it is, how fast and how long it will take, now and then."""

    def __init__(self, title: str, unit: str):
        self.title, self.unit = title, unit
        self.began = self.last = time.monotonic()

    def __call__(self, done: int, total: int, seconds: float = 0.0, /) -> None:
        now = time.monotonic()
        if now - self.last < INTERVAL_SECONDS or not done:
            return
        self.last = now
        left = ""
        if _known(done, total):
            left = f"{(now - self.began) * (total - done) / done:.0f} s left"
        parts = [_count(done, total, self.unit), left, _speed(seconds, self.began)]
        _say(f"{self.title}: {', '.join(filter(None, parts))}")
        shown()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _known(done: int, total: int) -> int | None:
    """The total, or None where it is not known or was promised too low."""
    return total if total and done <= total else None


def _count(done: int, total: int, unit: str) -> str:
    of = f" of {total:,}" if _known(done, total) else ""
    return f"{done:,}{of} {unit}"


def _speed(seconds: float, began: float) -> str:
    """Hours of audio per second of waiting, where the job is about audio."""
    return f"{seconds / 3600 / max(1e-9, time.monotonic() - began):.3f} h/s" if seconds else ""
