"""Signs of life in the folder of a run: every worker sees who is there, and who no longer moves."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from myxtts.cluster.rendezvous import Worker
from myxtts.errors import UserError
from myxtts.monitoring.heartbeat import current

logger = logging.getLogger(__name__)

FOLDER = "workers"
BEAT_SECONDS = 1.0
JOIN_SECONDS = 300.0
PATIENCE_SECONDS = 60.0
LOST = 75  # the exit code of a worker that lost another: whoever started it may start it again


class WorkerLost(UserError):
    """Another worker ended, or no longer answers; the run can be resumed from its checkpoint."""

    exit_code = LOST


@dataclass
class _Seen:
    """What a worker last wrote, and when that changed by the clock of this process."""

    content: str
    changed_at: float


class Presence:
    """Writes this worker's signs of life, and watches those of the others.

    A sign is a file that changes every second. Only changes are compared, never clocks of two
    hosts, so what an earlier run has left is not taken for life.
    """

    def __init__(self, folder: Path, worker: Worker, clock: Callable[[], float] = time.monotonic):
        self.folder, self.worker, self._clock = folder / FOLDER, worker, clock
        self.step = 0
        self._beats = 0
        self._seen: dict[int, _Seen] = {}
        self._alive: set[int] = set()
        self._greeted: set[int] = set()  # whom the last sign says to be alive

    def beat(self) -> None:
        """Write a sign of life: who this is, and what it is doing."""
        self._beats += 1
        activity, alive = current(), sorted(self._alive)
        sign = {
            "worker": self.worker.name(self.worker.rank),
            "process": os.getpid(),
            "beat": self._beats,
            "step": self.step,
            "doing": activity.what if activity else "starting",
            "sees": alive,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(self.worker.rank)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(sign), encoding="utf-8")
        draft.replace(path)  # whole, but not synced: it is worth nothing after a power cut
        self._greeted = set(alive)

    def look(self) -> None:
        """Read the signs of the others."""
        for rank in range(self.worker.count):
            content = _read(self._path(rank))
            seen = self._seen.setdefault(rank, _Seen(content, self._clock()))
            if content and content != seen.content:
                self._alive.add(rank)
                self._seen[rank] = _Seen(content, self._clock())

    def absent(self) -> list[int]:
        """The workers that have shown no sign of life yet."""
        own = self.worker.rank
        return [r for r in range(self.worker.count) if r != own and r not in self._alive]

    def unmet(self) -> list[int]:
        """The workers that this one does not see, or that do not see it, or do not know that."""
        own = self.worker.rank
        met = self._alive & self._greeted & {r for r in self._seen if own in self._seen_by(r)}
        return [r for r in range(self.worker.count) if r != own and r not in met]

    def silent(self, patience: float) -> list[int]:
        """The workers that were alive and have not changed their sign for so long."""
        now = self._clock()
        return [r for r in sorted(self._alive) if now - self._seen[r].changed_at > patience]

    def describe(self, rank: int) -> str:
        """A worker and the last thing that it said of itself."""
        try:
            sign: dict[str, Any] = json.loads(self._seen[rank].content)
            return f"{self.worker.name(rank)}, last seen {sign['doing']} after step {sign['step']}"
        except (KeyError, ValueError):
            return self.worker.name(rank)

    def slowest(self) -> list[int]:
        """The workers that are behind all others, by the steps that they have done."""
        steps = {}
        for rank, seen in self._seen.items():
            try:
                steps[rank] = int(json.loads(seen.content)["step"])
            except (KeyError, ValueError):
                continue
        least = min(steps.values(), default=0)
        return [rank for rank, step in steps.items() if step == least < max(steps.values())]

    def wait_for_all(self, seconds: float = JOIN_SECONDS) -> None:
        """Return when all workers have met; name those that do not come.

        Call it within `watching`. Connecting can keep the thread that shows life from running, so
        whoever went ahead before all others had seen it would leave them waiting.
        """
        until = self._clock() + seconds
        while True:
            self.look()
            unmet = self.absent() or self.unmet()
            if not unmet:
                return
            if self._clock() > until:
                names = ", ".join(self.worker.name(rank) for rank in unmet)
                raise WorkerLost(
                    f"{names} did not appear in {self.folder} within {seconds:.0f} s: start it, "
                    "let it see the same --checkpoint-dir, or name other workers"
                )
            time.sleep(BEAT_SECONDS / 2)

    @contextmanager
    def watching(self, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
        """Within this block a thread shows life, and ends this process where another shows none."""
        is_over = threading.Event()
        self.beat()

        def watch() -> None:
            while not is_over.wait(BEAT_SECONDS):
                try:
                    self.beat()
                    self.look()
                except OSError as error:  # a file system that is away for a moment
                    logger.warning("no sign of life can be written: %s", error)
                    continue
                if silent := self.silent(patience):
                    self._give_up(silent, patience)

        thread = threading.Thread(target=watch, name="presence", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _give_up(self, silent: list[int], patience: float) -> None:
        """End at once: the main thread waits inside TensorFlow for what will never come."""
        names = "; ".join(self.describe(rank) for rank in silent)
        logger.error("no sign of life for %.0f s: %s; ending this worker", patience, names)
        logging.shutdown()
        os._exit(LOST)

    def _seen_by(self, rank: int) -> list[int]:
        """The workers that another one says to be alive."""
        try:
            return list(json.loads(self._seen[rank].content)["sees"])
        except (KeyError, ValueError):
            return []

    def _path(self, rank: int) -> Path:
        return self.folder / f"{rank}.json"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
