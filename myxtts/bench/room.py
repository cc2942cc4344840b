"""The memory that a larger batch will take, by what smaller ones took."""

import resource
from collections.abc import Callable

import psutil

from myxtts.monitoring.system import MemoryLimit


class Room:
    """Whether a larger batch will fit, by what smaller ones took.

    A GPU raises an error when it is out of memory. On the host the kernel kills the process, so
    a batch that will not fit must not be tried.
    """

    def __init__(self, is_host: bool, free: Callable[[], float] | None = None):
        self.is_host, self.is_over = is_host, False
        self._free = free or _free_bytes
        self.frame_bytes = 0.0

    def shortage(self, frames: int) -> str:
        """Why a batch of so many frames is not tried, or nothing where it is."""
        if self.is_over:
            return "not tried: a smaller one ran out of memory"
        needed, free = frames * self.frame_bytes, self._free()
        if self.is_host and needed > free:
            return f"not tried: it takes about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} are free"
        return ""

    def watch(self, frames: int, take: Callable[[], None]) -> None:
        """Take a step of so many frames, and see how much memory it takes at most."""
        before = psutil.Process().memory_info().rss
        take()
        # The peak of the whole process: an upper bound of what the step took.
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.frame_bytes = max(0, peak - before) / frames


def _free_bytes() -> float:
    used, limit = MemoryLimit().read()
    return limit - used
