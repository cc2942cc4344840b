"""Heartbeats: what a long job is doing, as a line where it has shown nothing for a while."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERVAL_SECONDS = 30.0
_POLL_SECONDS = 1.0


class Activity:
    """Something that takes time; renaming it starts its time again."""

    def __init__(self, what: str, clock: Callable[[], float]):
        self._clock = clock
        self.rename(what)

    def rename(self, what: str) -> None:
        self.what, self._began = what, self._clock()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self._clock() - self._began


class Activities:
    """The activities of this process, the innermost last, and when a line was last shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._running: list[Activity] = []
        self._shown_at = clock()

    @contextmanager
    def doing(self, what: str) -> Iterator[Activity]:
        """Name the activity of this block."""
        activity = Activity(what, self._clock)
        self._running.append(activity)
        try:
            yield activity
        finally:
            self._running.remove(activity)

    def current(self) -> Activity | None:
        """The innermost activity."""
        running = self._running[-1:]
        return running[0] if running else None

    def shown(self) -> None:
        """Record that the user has just seen a line."""
        self._shown_at = self._clock()

    def overdue(self, interval: float) -> str:
        """Return a line to be shown now, or nothing if one is not due yet."""
        activity = self.current()
        if activity is None or self._clock() - self._shown_at < interval:
            return ""
        self.shown()
        return f"{activity.what}: {activity.seconds:.0f} s so far"


_ACTIVITIES = Activities()
doing, current, shown = _ACTIVITIES.doing, _ACTIVITIES.current, _ACTIVITIES.shown


@contextmanager
def heartbeat(
    say: Callable[[str], None],
    interval: float = INTERVAL_SECONDS,
    activities: Activities = _ACTIVITIES,
) -> Iterator[None]:
    """Within this block, `say` a line whenever nothing was shown for `interval` seconds."""
    is_over = threading.Event()
    activities.shown()

    def beat() -> None:
        while not is_over.wait(min(interval, _POLL_SECONDS)):
            if line := activities.overdue(interval):
                say(line)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
