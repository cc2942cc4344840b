"""How many cores this process may really use, and a map over all of them."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores(root: Path = Path("/")) -> int:
    """Return the least of what affinity and any cgroup above the process grant, at least 1."""
    limits = [_affinity(), *_quotas_v2(root), *_quotas_v1(root)]
    return max(1, math.ceil(min(limits)))


def map_on_cores(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> list[Result]:
    """Call a function on each item, in a thread per core; return the results in order."""
    results: list[Result] = []
    with ThreadPoolExecutor(workers or available_cores()) as pool:
        for result in pool.map(function, items):
            results.append(result)
            if progress:
                progress(len(results), len(items))
    return results


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # absent on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas_v2(root: Path) -> Iterator[float]:
    """Yield the cores of each `cpu.max` ("quota period", both in microseconds)."""
    for folder in cgroups(root, "", root / "sys/fs/cgroup"):
        quota, _, period = read_small(folder / "cpu.max").partition(" ")
        yield from _cores(quota, period)


def _quotas_v1(root: Path) -> Iterator[float]:
    """Yield the cores of each `cpu.cfs_quota_us`, where -1 means no quota."""
    for mount in ("cpu", "cpu,cpuacct"):
        for folder in cgroups(root, "cpu", root / "sys/fs/cgroup" / mount):
            yield from _cores(
                read_small(folder / "cpu.cfs_quota_us"), read_small(folder / "cpu.cfs_period_us")
            )


def cgroups(root: Path, controller: str, mount: Path) -> Iterator[Path]:
    """Yield the process's cgroup and all above it: a quota anywhere on the way binds.

    In a container the path may be the host's and so not exist below the mount; the mount
    itself is then the container's own cgroup.
    """
    yield mount
    for line in read_small(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") and ".." not in path:
            folder = mount
            for part in path.strip("/").split("/"):
                folder = folder / part
                yield folder


def _cores(quota: str, period: str) -> Iterator[float]:
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        yield int(quota) / int(period)


def read_small(path: Path) -> str:
    """Return a small file's text, or nothing where there is no such file to read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
