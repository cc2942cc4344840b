"""What processes cost: time on a busy machine, and the most memory."""

import contextlib
import os
import resource
import time
from pathlib import Path

import psutil

_LEAST_SECONDS = 0.25  # between two looks at /proc, which cost some milliseconds


class Clock:
    """Seconds of a process and its descendants, without those in which they waited for a core.

    Time asleep counts in full, so a process that hangs is late at the same moment on every machine.
    """

    def __init__(self, pid: int):
        self.pid = pid
        self._seconds, self._looked = 0.0, time.monotonic()
        self._tasks = _tasks(pid)

    def seconds(self) -> float:
        """Seconds since this clock was made."""
        now = time.monotonic()
        if now - self._looked >= _LEAST_SECONDS:
            tasks = _tasks(self.pid)
            ran = waited = 0.0
            for number, (its_run, its_wait) in tasks.items():
                before = self._tasks.get(number, (0.0, 0.0))
                ran, waited = ran + its_run - before[0], waited + its_wait - before[1]
            self._seconds += counted(now - self._looked, ran, waited)
            self._looked, self._tasks = now, tasks
        return self._seconds


def counted(wall: float, ran: float, waited: float) -> float:
    """How much of a span of time counts, if threads ran and waited for a core for so long in it."""
    if ran + waited <= 0:
        return wall
    busy = min(wall, ran + waited)
    return wall - busy + busy * ran / (ran + waited)


def _tasks(pid: int) -> dict[int, tuple[float, float]]:
    """Seconds that each thread of a process and of its descendants ran, and waited for a core."""
    found = {}
    for process in family(pid):
        tasks = Path(f"/proc/{process.pid}/task")
        # A process or a thread may end meanwhile, and a kernel may not count.
        with contextlib.suppress(OSError):
            for name in os.listdir(tasks):
                with contextlib.suppress(OSError, ValueError):
                    ran, waited, _ = map(int, (tasks / name / "schedstat").read_bytes().split())
                    found[int(name)] = (ran / 1e9, waited / 1e9)
    return found


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants; none where it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


class Peak:
    """The most resident memory of this process beyond that at the start."""

    def __init__(self):
        # 5 resets the peak that the kernel keeps.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self.start = _status("VmRSS")

    def megabytes(self) -> float:
        return _status("VmHWM") - self.start

    def with_children(self) -> float:
        """The same, or that of the largest child that has ended, whichever is more."""
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        return max(self.megabytes(), largest - self.start)


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"the kernel does not tell {name}")
