"""Processes that begin with TensorFlow imported: a fork costs milliseconds, an import seconds.

Fork only from a process that has imported TensorFlow and run nothing with it: its threads do not
survive a fork.
"""

import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drills.measuring import Clock

CRASH = 70  # exit code of a child that raised
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ended:
    """How a child ended: `code` as subprocess gives it, and what it cost."""

    code: int
    text: str
    wall_seconds: float
    cpu_seconds: float
    is_late: bool = False

    @property
    def has_traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.text


def import_everything() -> None:
    """Import what commands import, so that children need not."""
    from myxtts.cli.terminal import import_tensorflow

    import_tensorflow()
    import myxtts.cli.main
    import myxtts.evaluation.evaluator
    import myxtts.inference.synthesizer
    import myxtts.training.trainer
    import myxtts.training.vocoder.trainer  # noqa: F401


def call(
    function: Callable[[], int | None],
    log: Path,
    seconds: float = 300.0,
    kill_after: float | None = None,
) -> Ended:
    """Call a function in a child and wait for it; what it prints is appended to `log`.

    It is killed with SIGKILL `kill_after` seconds after its start, or as late after `seconds`
    of its own `Clock`.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    start = log.stat().st_size if log.exists() else 0
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(function, log)
    is_timed = kill_after is not None and kill_after < seconds
    clock = time.monotonic if is_timed else Clock(pid).seconds
    code, usage = _wait(pid, clock, clock() + (kill_after if is_timed else seconds))
    is_killed = usage is None
    if is_killed:
        kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
    with open(log, encoding="utf-8", errors="replace") as file:
        file.seek(start)
        text = file.read()
    return Ended(
        code,
        text,
        time.monotonic() - began,
        usage.ru_utime + usage.ru_stime,
        is_late=is_killed and not is_timed,
    )


def command(
    argv: Sequence[str | Path],
    log: Path,
    seconds: float = 300.0,
    kill_after: float | None = None,
    before: Callable[[], None] | None = None,
) -> Ended:
    """Run `myxtts ARGV` in a child; `before` is called in it first."""

    def run() -> int:
        from myxtts.cli.main import main

        if before:
            before()
        return main([str(word) for word in argv])

    return call(run, log, seconds, kill_after)


def start(function: Callable[[], int | None], log: Path) -> int:
    """Start a child and return its number, for those that run at the same time; see `finish`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        _be_child(function, log)
    return pid


def finish(pid: int, log: Path, seconds: float = 300.0) -> Ended:
    """Wait for a child that `start` began."""
    began = time.monotonic()
    code, usage = _wait(pid, Clock(pid).seconds, seconds)
    is_late = usage is None
    if is_late:
        kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8", errors="replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Ended(code, text, time.monotonic() - began, cpu, is_late=is_late)


def _be_child(function: Callable[[], int | None], log: Path) -> None:
    code = CRASH
    try:
        os.setpgid(0, 0)
        end_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for number in (1, 2):
            os.dup2(target, number)
        os.close(target)
        with open(os.devnull, encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), 0)
        # Pytest and terminals replace these; a child writes to its log alone.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = function() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def end_with_parent() -> None:
    """Have this process killed when the one that forked it ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(pid: int, clock: Callable[[], float], deadline: float):
    """The exit code and usage of a child; (0, None) where the deadline passes first."""
    pause = 0.001
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage
        left = deadline - clock()
        if left <= 0:
            return 0, None
        time.sleep(min(pause, left))
        pause = min(0.05, 1.5 * pause)


def kill_group(pid: int) -> None:
    """Kill a child with its own children, also before it has made its group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)
