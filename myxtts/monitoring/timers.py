"""Named timers for any thread: how long each stage of making batches was at work."""

import threading
import time
from collections.abc import Callable, Mapping

# What a batch goes through on its way to the step, in this order.
READ, DECODE, FEATURES, TOKENS = "read", "decode", "features", "tokens"
BATCHING, HAND_OVER = "batching", "hand-over"
STAGES = (READ, DECODE, FEATURES, TOKENS, BATCHING, HAND_OVER)
# With the cache on the device: copying it there, once, and launching the gather of each batch.
TRANSFER, GATHER = "transfer", "gather"


class StageTimers:
    """Adds up seconds by name over all threads; a stage inside another counts for itself alone."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._sources: list[tuple[str, Callable[[], float]]] = []
        self._lock = threading.Lock()
        self._open = threading.local()

    def time(self, name: str) -> "_Stage":
        """Time what happens in a `with`; what it raises counts as well."""
        return _Stage(self, name)

    def add_source(self, name: str, read: Callable[[], float]) -> None:
        """Also count the totals of another source, such as a graph that runs without Python."""
        with self._lock:
            self._sources.append((name, read))

    def totals(self) -> dict[str, float]:
        """Seconds of work by stage so far, of all threads together."""
        with self._lock:
            found, sources = dict(self._seconds), list(self._sources)
        for name, read in sources:
            found[name] = found.get(name, 0.0) + read()
        return found

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """What was added since an earlier `totals`."""
        grown = {name: total - before.get(name, 0.0) for name, total in self.totals().items()}
        return {name: seconds for name, seconds in grown.items() if seconds > 0}

    def _enter(self, name: str) -> None:
        stack = self._open.__dict__.setdefault("stack", [])
        stack.append([name, self._clock(), 0.0])

    def _leave(self) -> None:
        name, began, inner = self._open.stack.pop()
        spent = self._clock() - began
        if self._open.stack:
            self._open.stack[-1][2] += spent
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + spent - inner


class _Stage:
    __slots__ = ("_name", "_timers")

    def __init__(self, timers: StageTimers, name: str):
        self._timers, self._name = timers, name

    def __enter__(self) -> None:
        self._timers._enter(self._name)

    def __exit__(self, *error: object) -> None:
        self._timers._leave()


# The timers of this process: the data engine writes them, verdicts read them.
stages = StageTimers()


def stage(name: str) -> _Stage:
    """Time a stage of this process."""
    return stages.time(name)
