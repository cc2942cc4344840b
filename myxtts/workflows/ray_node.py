"""What runs on the nodes of a Ray cluster: one worker of a run, as a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import myxtts
from myxtts.monitoring.cores import available_cores
from myxtts.workflows.gang import die_with_parent

NEWS_SECONDS = 1.0
# Whoever reads them comes every second; a driver that hangs is no reason to run out of memory.
_MOST_LINES = 5000
_LAST_LINES = 20
_READ_SECONDS = 5.0  # a process that outlives the worker may hold its output open


@dataclass(frozen=True)
class Place:
    """Where a worker is, and what keeps it from training there."""

    host: str
    port: int
    cores: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Order:
    """What a node is to run: its own Python with these arguments, in a folder."""

    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    threads: int  # its share of the host's cores
    keeps_all_output: bool


@dataclass(frozen=True)
class News:
    """What a worker has printed since the last time, and its exit code once it has ended."""

    lines: list[tuple[bool, str]]  # whether to stderr, and a line
    last_lines: list[str]
    code: int | None


class NodeWorker:
    """An actor: it finds a port, starts a process, and says what becomes of it.

    The process dies with its actor, so whatever ends the actor leaves nothing behind.
    """

    def __init__(self) -> None:
        # Held until the worker starts, so that two workers of a host have two ports.
        self._port = socket.socket()
        self._port.bind(("", 0))
        self._process: subprocess.Popen[str] | None = None
        self._lines: deque[tuple[bool, str]] = deque(maxlen=_MOST_LINES)
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._code: int | None = None
        self._has_started, self._has_ended = threading.Event(), threading.Event()

    def describe(self, package: str, folder: str, marker: str) -> Place:
        """Where this is; `marker` is a file that was just made in the run's folder."""
        from ray.util import get_node_ip_address

        problems = []
        if myxtts.__version__ != package:
            problems.append(f"it has myxtts {myxtts.__version__}, not {package}")
        if not Path(marker).exists():
            run = Path(marker).parent
            problems.append(f"it does not see the run folder {run}, or has another of that name")
        if not Path(folder).is_dir():
            problems.append(f"it does not see the folder {folder}, where the command was given")
        host, port = get_node_ip_address(), self._port.getsockname()[1]
        return Place(host, port, available_cores(), tuple(problems))

    def start(self, order: Order) -> None:
        """Start the worker, and return at once."""
        # In a thread that lives as long as the worker: it dies with the thread that started it.
        threading.Thread(target=self._run, args=(order,), name="worker", daemon=True).start()

    def news(self) -> News:
        """What was printed since the last call; comes when the worker ends, or after a moment."""
        self._has_ended.wait(NEWS_SECONDS)
        code = self._code  # before the lines, of which it is the end
        lines = []
        while self._lines:
            lines.append(self._lines.popleft())
        return News(lines, [] if code is None else list(self._last_lines), code)

    def send_signal(self, number: int) -> None:
        """Pass a signal on to the worker, once it has started."""
        self._has_started.wait()
        if self._process is not None:
            self._process.send_signal(number)

    def _run(self, order: Order) -> None:
        code = 1
        try:
            self._port.close()
            self._process = _start(order)
            self._has_started.set()
            code = self._read_to_the_end(self._process, order.keeps_all_output)
        except OSError as error:
            self._last_lines.append(str(error))
        finally:
            self._code = code
            self._has_started.set()
            self._has_ended.set()

    def _read_to_the_end(self, process: "subprocess.Popen[str]", keeps_all: bool) -> int:
        def read(pipe: IO[str], is_error: bool) -> None:
            for line in pipe:
                if keeps_all:
                    self._lines.append((is_error, line))
                else:
                    self._last_lines.append(line)

        pipes = ((process.stdout, False), (process.stderr, True))
        readers = [threading.Thread(target=read, args=one, daemon=True) for one in pipes]
        for reader in readers:
            reader.start()
        code = process.wait()
        for reader in readers:
            reader.join(_READ_SECONDS)
        return code


def _start(order: Order) -> "subprocess.Popen[str]":
    threads = {"TF_NUM_INTRAOP_THREADS": str(order.threads)}
    environment = threads | os.environ | order.environment
    # Ray allows one for each CPU that was asked for, which here only stands for a place.
    environment.pop("OMP_NUM_THREADS", None)
    return subprocess.Popen(
        [sys.executable, *order.arguments],
        cwd=order.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=_in_child,
    )


def _in_child() -> None:
    die_with_parent()
    # Ray's processes block Ctrl-C, and what they start would inherit that.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
