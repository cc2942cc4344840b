"""Whether the nodes of a cluster can make shards: same package, same recordings, same cache."""

import contextlib
import fcntl
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import myxtts
from myxtts.data.store.disk import explained
from myxtts.data.store.ray_workers import RayWorkers
from myxtts.errors import UserError

logger = logging.getLogger(__name__)

# What the bits of a row depend on.
LIBRARIES = ("numpy", "scipy", "soundfile", "soxr")


@dataclass(frozen=True)
class NodeReport:
    """What a node finds: what keeps it from working, and what is worth a warning."""

    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeCheck:
    """What is compared on every node with what was seen here."""

    package: str
    libraries: tuple[str, ...]
    markers: tuple[Path, ...]  # files that were just made in the folders to write
    recordings: tuple[tuple[Path, tuple[int, int] | None], ...]  # with size and time

    def __call__(self) -> NodeReport:
        if myxtts.__version__ != self.package:
            return NodeReport((f"it has myxtts {myxtts.__version__}, not {self.package}",))
        problems = [_cannot_write(marker) for marker in self.markers]
        problems += [_sees_another(path, stamp) for path, stamp in self.recordings]
        differing = sorted(set(_installed()) - set(self.libraries))
        remarks = [f"it has {one}: its rows may differ by rounding" for one in differing]
        remarks += [_cannot_lock(marker) for marker in self.markers]
        return NodeReport(tuple(filter(None, problems)), tuple(filter(None, remarks)))


def check_nodes(pool: RayWorkers, folders: Sequence[Path], recordings: Sequence[Path]) -> None:
    """Fail before any work where a node lacks this package, the recordings or the cache."""
    with _markers(folders) as markers:
        stamps = tuple((path, _stamp(path)) for path in recordings)
        check = NodeCheck(myxtts.__version__, _installed(), markers, stamps)
        found = pool.run_on_every_node(check)
    if not found:
        raise UserError(f"the Ray cluster at {pool.address} has no node with a core")
    problems = []
    for node, report in found.items():
        if isinstance(report, str):
            problems.append(f"  {node}: {report}")
        else:
            problems += [f"  {node}: {problem}" for problem in report.problems]
            for remark in report.remarks:
                logger.warning("%s: %s", node, remark)
    if problems:
        raise UserError(
            "these nodes of the cluster cannot prepare this corpus:\n"
            + "\n".join(problems)
            + f"\nEvery node needs myxtts {myxtts.__version__}, and corpus and cache under the "
            "same paths on a file system that all of them share"
        )


@contextlib.contextmanager
def _markers(folders: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Files, locked, that only those can see who share the folders."""
    markers = tuple(folder / f".node-check-{secrets.token_hex(8)}" for folder in folders)
    try:
        with contextlib.ExitStack() as stack:
            for marker in markers:
                with explained(marker.parent):
                    marker.parent.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context(open(marker, "w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield markers
    finally:
        for marker in markers:
            with contextlib.suppress(OSError):
                marker.unlink(missing_ok=True)


def _cannot_write(marker: Path) -> str:
    """What keeps this node from writing to the folder of a marker, or nothing."""
    if not marker.exists():
        return f"it does not see the cache folder {marker.parent}, or has another one of that name"
    own = marker.with_name(f"{marker.name}-{secrets.token_hex(8)}")
    try:
        own.touch()
        own.unlink()
    except OSError as error:
        return f"it cannot write to the cache folder {marker.parent} ({error.strerror})"
    return ""


def _cannot_lock(marker: Path) -> str:
    """What to do where a lock of the machine that asks is not seen here, or nothing."""
    try:
        with open(marker, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is locked, or a problem of its own
        return ""
    return f"it does not see locks in {marker.parent}: let nothing else write there meanwhile"


def _sees_another(path: Path, expected: tuple[int, int] | None) -> str:
    """How a recording differs here from what was seen by who asks, or nothing."""
    stamp = _stamp(path)
    if stamp == expected:
        return ""
    if stamp is None:
        return f"it does not see the recording {path}"
    return f"the recording {path} has another size or time there"


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _installed() -> tuple[str, ...]:
    return tuple(f"{name} {version(name)}" for name in LIBRARIES)
