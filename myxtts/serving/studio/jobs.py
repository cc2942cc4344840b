"""Jobs: commands in processes of their own, known by files, so that a new server finds them."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.serving.studio.places import JOBS, Places, read_card, write_card
from myxtts.serving.studio.runner import INTERRUPTED, JOB, LOG, PROCESS, RESULT

RUNNING, FINISHED, STOPPED, FAILED, LOST = "running", "finished", "stopped", "failed", "lost"
MOST_RUNNING = 4
_PROGRAM = "myxtts.serving.studio.runner"
_START_SECONDS = 20  # in which a process says who it is
_CLOCK_SECONDS = 2  # by which two readings of a process's start may differ
_TAIL = 8 << 10  # bytes of a log
_MOST_LISTED = 100


@dataclass(frozen=True)
class Job:
    """A job as its files have it."""

    id: str
    kind: str
    subject: str  # what it works on: no two jobs do so at a time
    title: str
    steps: list[list[str]]
    created: float
    state: str
    code: int | None = None
    reason: str | None = None

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING


class Jobs:
    """The jobs of a studio."""

    def __init__(self, places: Places):
        self._places = places
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        kind: str,
        subject: str,
        title: str,
        steps: Sequence[Sequence[str]],
        seconds: float | None = None,
    ) -> Job:
        """Start commands, given as words behind `myxtts`; stop them after so many seconds."""
        with self._lock:
            running = [one for one in self.all() if one.is_running]
            if any(one.subject == subject for one in running):
                raise HTTPException(409, "something else is being done with it: wait, or stop that")
            if len(running) >= MOST_RUNNING:
                raise HTTPException(409, f"{MOST_RUNNING} jobs are running: wait, or stop one")
            id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
            folder = self._places.of(JOBS) / id
            card = {"kind": kind, "subject": subject, "title": title, "created": time.time()}
            with atomic.explained(folder):
                folder.mkdir()
                write_card(
                    folder, {**card, "steps": list(map(list, steps)), "seconds": seconds}, JOB
                )
                self._launch(folder)
        self._wait_for(folder)
        return self.read(id)

    def all(self) -> list[Job]:
        """The latest jobs, the newest first."""
        self._reap()
        names = self._places.names(JOBS)[::-1][:_MOST_LISTED]
        found = (_read(self._places.of(JOBS) / name) for name in names)
        return sorted((one for one in found if one), key=lambda one: -one.created)

    def of(self, subject: str) -> list[Job]:
        return [one for one in self.all() if one.subject == subject]

    def latest(self, subject: str, kind: str | None = None) -> Job | None:
        return next((one for one in self.of(subject) if kind in (None, one.kind)), None)

    def is_busy(self, subject: str) -> bool:
        return any(one.is_running for one in self.of(subject))

    def read(self, id: str) -> Job:
        self._reap()
        job = _read(self._places.find(JOBS, id))
        if job is None:
            raise HTTPException(404, "there is no job of that name")
        return job

    def log(self, id: str) -> str:
        """The end of what a job has said, one line where it has repeated a line."""
        return tail(self._places.find(JOBS, id) / LOG)

    def stop(self, id: str) -> Job:
        """Ask a job to end; training saves what it has reached. A second time is more urgent."""
        folder = self._places.find(JOBS, id)
        process = _process(folder)
        if process is not None:
            asked = folder / "asked"
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM if asked.exists() else signal.SIGINT)
            asked.touch()
        return self.read(id)

    def _launch(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
        with open(folder / LOG, "wb") as log:
            self._children.append(
                subprocess.Popen(
                    [sys.executable, "-m", _PROGRAM, str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**kept, "PYTHONUNBUFFERED": "1"},
                    start_new_session=True,
                )
            )

    def _wait_for(self, folder: Path) -> None:
        until = time.monotonic() + _START_SECONDS
        while not (folder / PROCESS).exists() and time.monotonic() < until:
            time.sleep(0.02)

    def _reap(self) -> None:
        self._children = [one for one in self._children if one.poll() is None]


def shown(job: Job) -> dict[str, Any]:
    """A job as the page reads it."""
    names = ("id", "kind", "subject", "title", "created", "state", "code", "reason")
    return {name: getattr(job, name) for name in names}


def tail(path: Path, most: int = _TAIL) -> str:
    """The last whole lines of a log, without codes of terminals."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    if size > most:
        text = text.partition("\n")[2]
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def _read(folder: Path) -> Job | None:
    card = read_card(folder, JOB)
    names = ("kind", "subject", "title", "steps", "created")
    if not all(name in card for name in names):
        return None
    result = read_card(folder, RESULT)
    state = _state(folder, result, card["created"])
    facts = {name: card[name] for name in names}
    return Job(folder.name, **facts, state=state, code=result.get("code"), reason=_reason(result))


def _reason(result: dict[str, Any]) -> str | None:
    return result.get("reason")


def _state(folder: Path, result: dict[str, Any], created: float) -> str:
    if result:
        if result.get("code") == 0:
            return FINISHED
        is_stopped = result.get("reason") or result.get("code") == INTERRUPTED
        return STOPPED if is_stopped else FAILED
    if _process(folder) is not None:
        return RUNNING
    if not (folder / PROCESS).exists() and 0 <= time.time() - created < _START_SECONDS:
        return RUNNING
    # It may have ended between the two looks.
    return _state(folder, late, created) if (late := read_card(folder, RESULT)) else LOST


def _process(folder: Path) -> psutil.Process | None:
    """The process of a job, if it is still that one: numbers are used again."""
    card = read_card(folder, PROCESS)
    try:
        process = psutil.Process(int(card["pid"]))
        is_same = abs(process.create_time() - float(card["started"])) < _CLOCK_SECONDS
        return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
    except (KeyError, TypeError, ValueError, psutil.Error):
        return None
