"""Counts and times of a server, as the text that Prometheus reads."""

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator

_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_LINES = (1, 2, 4, 8, 16, 32)
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A sum that only grows, by labels."""

    kind = "counter"

    def __init__(self, name: str, about: str):
        self.name, self.about = name, about
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = defaultdict(float)

    def add(self, amount: float = 1.0, **labels: str) -> None:
        with self._lock:
            self._values[tuple(labels.items())] += amount

    def total(self, **labels: str) -> float:
        """The sum over all that have these labels."""
        wanted = set(labels.items())
        with self._lock:
            return sum(value for own, value in self._values.items() if wanted <= set(own))

    def lines(self) -> Iterator[str]:
        with self._lock:
            values = dict(self._values) or {(): 0.0}
        for labels, value in values.items():
            yield f"{self.name}{_shown(labels)} {value:g}"


class Gauge:
    """A value that is looked up when it is asked for."""

    kind = "gauge"

    def __init__(self, name: str, about: str, read: Callable[[], float]):
        self.name, self.about, self._read = name, about, read

    def lines(self) -> Iterator[str]:
        yield f"{self.name} {self._read():g}"


class Histogram:
    """How many observations were at most so large."""

    kind = "histogram"

    def __init__(self, name: str, about: str, bounds: tuple[float, ...]):
        self.name, self.about, self._bounds = name, about, bounds
        self._lock = threading.Lock()
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        with self._lock:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    @property
    def count(self) -> int:
        with self._lock:
            return sum(self._counts)

    def lines(self) -> Iterator[str]:
        with self._lock:
            counts, total = list(self._counts), self._sum
        done = 0
        for bound, count in zip((*self._bounds, "+Inf"), counts, strict=True):
            done += count
            yield f'{self.name}_bucket{{le="{bound}"}} {done}'
        yield f"{self.name}_sum {total:g}"
        yield f"{self.name}_count {done}"


class Metrics:
    """All that is counted. `watch` adds what is only looked up."""

    def __init__(self) -> None:
        self.requests = Counter("myxtts_requests_total", "answers by path and status")
        self.rejected = Counter("myxtts_rejected_total", "requests that found the queue full")
        self.cancelled = Counter("myxtts_cancelled_total", "requests whose client left")
        self.failed = Counter("myxtts_failed_total", "requests that failed while being spoken")
        self.sentences = Counter("myxtts_lines_total", "lines that were spoken")
        self.speech = Counter("myxtts_speech_seconds_total", "seconds of speech")
        self.work = Counter("myxtts_work_seconds_total", "seconds that the model has worked")
        about = "seconds from a request to its first sound"
        self.first_sound = Histogram("myxtts_first_sound_seconds", about, _SECONDS)
        self.batches = Histogram("myxtts_batch_lines", "lines in a batch", _LINES)
        self._watched: list[Gauge] = []

    def watch(self, name: str, about: str, read: Callable[[], float]) -> None:
        self._watched.append(Gauge(name, about, read))

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        found = [one for one in vars(self).values() if hasattr(one, "kind")]
        rows: list[str] = []
        for metric in (*found, *self._watched):
            rows += [f"# HELP {metric.name} {metric.about}", f"# TYPE {metric.name} {metric.kind}"]
            rows += metric.lines()
        return "\n".join(rows) + "\n"


def _shown(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
