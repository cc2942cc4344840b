"""The program that runs a job: commands one after the other, and how they ended.

It outlives the browser and the server. `process.json` says who it is, `result.json` how it ended.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from myxtts import atomic

JOB, PROCESS, RESULT, LOG = "job.json", "process.json", "result.json", "log.txt"
INTERRUPTED = 130
STOPPED, OUT_OF_TIME = "stopped", "time"
_NICENESS = 5  # speech that somebody waits for goes first
_POLL_SECONDS = 0.2


class Runner:
    """Runs the commands of a job, and passes on the wish to stop."""

    def __init__(self, folder: Path):
        self._folder, self._job = folder, json.loads((folder / JOB).read_text("utf-8"))
        self._child: subprocess.Popen[bytes] | None = None
        self._reason: str | None = None

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        own = psutil.Process()
        self._write(PROCESS, {"pid": own.pid, "started": own.create_time()})
        seconds = self._job.get("seconds")
        until = time.monotonic() + seconds if seconds else None
        code, done = 0, 0
        for words in self._job["steps"]:
            code = INTERRUPTED if self._reason else self._run(words, until)
            if code:
                break
            done += 1
        ended = {"code": code, "done": done, "reason": self._reason, "ended": time.time()}
        self._write(RESULT, ended)
        return code

    def _run(self, words: list[str], until: float | None) -> int:
        print(f"$ myxtts {shlex.join(words)}", flush=True)
        command = [sys.executable, "-m", "myxtts.cli.main", *words]
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        if self._reason:  # asked for while it was started
            self._pass_on(signal.SIGINT)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._child.wait(_POLL_SECONDS)
            if until is not None and time.monotonic() >= until and not self._reason:
                self._reason = OUT_OF_TIME
                self._pass_on(signal.SIGINT)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._reason = self._reason or STOPPED
        self._pass_on(signal.Signals(number))

    def _pass_on(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def _write(self, name: str, values: dict[str, Any]) -> None:
        atomic.write(self._folder / name, json.dumps(values).encode(), alone=True)


if __name__ == "__main__":
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    sys.exit(Runner(Path(sys.argv[1])).run())
