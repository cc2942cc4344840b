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
from collections.abc import Callable, Iterator, Sequence
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
_ASKED = "asked"  # as many bytes as a job was asked to end
_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # for the first such wishes; then it is killed


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
    uses: tuple[str, ...] = ()  # what it reads besides: that is not deleted meanwhile

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING


class Jobs:
    """The jobs of a studio."""

    def __init__(self, places: Places):
        self._places = places
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        self._ended: dict[str, Job] = {}  # whose files never change again

    def start(
        self,
        kind: str,
        subject: str,
        title: str,
        steps: Sequence[Sequence[str]],
        seconds: float | None = None,
        uses: Sequence[str] = (),
        prepare: Callable[[], None] = lambda: None,
    ) -> Job:
        """Start commands, given as words behind `myxtts`; stop them after so many seconds.

        What is to be prepared for them is done once it is sure that they start.
        """
        with self._lock:
            running = [one for one in self.all() if one.is_running]
            if any(one.subject == subject for one in running):
                raise HTTPException(409, "something else is being done with it: wait, or stop that")
            if len(running) >= MOST_RUNNING:
                raise HTTPException(409, f"{MOST_RUNNING} jobs are running: wait, or stop one")
            id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
            folder = self._places.of(JOBS) / id
            card = {"kind": kind, "subject": subject, "title": title, "created": time.time()}
            card |= {"steps": list(map(list, steps)), "seconds": seconds, "uses": list(uses)}
            with atomic.explained(folder):
                prepare()
                folder.mkdir()
                write_card(folder, card, JOB)
                self._launch(folder)
        self._wait_for(folder)
        return self.read(id)

    def all(self) -> list[Job]:
        """All jobs, the newest first."""
        self._reap()
        found = map(self._look, self._places.names(JOBS))
        return sorted((one for one in found if one), key=lambda one: -one.created)

    def of(self, subject: str) -> list[Job]:
        return [one for one in self.all() if one.subject == subject]

    def latest(self, subject: str, kind: str | None = None) -> Job | None:
        return next((one for one in self.of(subject) if kind in (None, one.kind)), None)

    def is_busy(self, subject: str) -> bool:
        return any(one.is_running for one in self.of(subject))

    @contextlib.contextmanager
    def unused(self, subject: str, refusal: str) -> Iterator[None]:
        """Let nothing start until the `with` ends; refused where a job works on it, or reads it."""
        with self._lock:
            if any(one.is_running and subject in (one.subject, *one.uses) for one in self.all()):
                raise HTTPException(409, refusal)
            yield

    def forget(self, subject: str) -> None:
        """Remove the jobs of what was there under the same name, and is deleted."""
        for one in self.of(subject):
            folder = self._places.of(JOBS) / one.id
            if not one.is_running:
                with atomic.explained(folder):
                    atomic.remove_folder(folder)

    def read(self, id: str) -> Job:
        self._reap()
        job = self._look(self._places.find(JOBS, id).name)
        if job is None:
            raise HTTPException(404, "there is no job of that name")
        return job

    def log(self, id: str) -> str:
        """The end of what a job has said, one line where it has repeated a line."""
        return tail(self._places.find(JOBS, id) / LOG)

    def stop(self, id: str) -> Job:
        """Ask a job to end; training saves what it has reached.

        A second time is more urgent. The third time its command is killed, which may hang: a
        training loses the steps since its last checkpoint.
        """
        folder = self._places.find(JOBS, id)
        with self._lock, open(folder / _ASKED, "ab") as asked:
            process, times = _process(folder), asked.tell()
            if process is not None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if times < len(_SIGNALS):
                        process.send_signal(_SIGNALS[times])
                    else:
                        _kill(process.children(recursive=True))
                asked.write(b".")
        return self.read(id)

    def _look(self, id: str) -> Job | None:
        """A job as its files have it, which are read once where it has ended."""
        job = self._ended.get(id) or _read(self._places.of(JOBS) / id)
        if job is not None and job.state in (FINISHED, STOPPED, FAILED):
            self._ended[id] = job
        return job

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
    uses = tuple(card.get("uses") or ())
    code, reason = result.get("code"), result.get("reason")
    return Job(folder.name, **facts, state=state, code=code, reason=reason, uses=uses)


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


def _kill(processes: Sequence[psutil.Process]) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
