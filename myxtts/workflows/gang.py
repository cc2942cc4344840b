"""Start the workers of a run, watch them, and start them again where one of them dies."""

import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from myxtts.cluster.presence import LOST
from myxtts.cluster.rendezvous import free_ports
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores

logger = logging.getLogger(__name__)

INTERRUPTED = 130
# Restarts in a row without a new checkpoint: then something is wrong that will not go away.
RESTARTS = 3
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 20.0  # for the others to end by themselves when one has ended
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class WorkerProcess(Protocol):
    """A worker that was started, wherever it runs."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""

    def send_signal(self, number: int) -> None: ...

    def kill(self) -> None: ...


Start = Callable[[], Sequence[WorkerProcess]]


def train_on_devices(devices: int, words: Sequence[str], folder: Path) -> int:
    """Run a command that trains as so many workers of this machine; return its exit code."""
    if devices < 1:
        raise UserError(f"--devices must be 1 or more, not {devices}")
    starts = words_of_starts(without_option(words, "--devices"), folder)
    program = [sys.executable, "-m", "myxtts.cli.main"]
    return supervise(lambda: start_local([*program, *next(starts)], devices), folder)


def supervise(start: Start, folder: Path) -> int:
    """Keep the workers of a run going until it has ended, and return its exit code.

    A worker that dies ends the step for all. All are started again and resume from the last
    checkpoint. A fault that a restart cannot help, such as bad settings, ends the run.
    """
    in_vain, before = 0, last_checkpoint(folder)
    while True:
        workers = start()
        with _forwarding_signals(workers) as is_asked_to_end:
            code = wait_for(workers)
        if code in (0, UserError.exit_code, INTERRUPTED):
            return code
        if is_asked_to_end():
            return INTERRUPTED
        now = last_checkpoint(folder)
        in_vain = 0 if now > before else in_vain + 1
        if in_vain > RESTARTS:
            raise UserError(
                f"the workers died {in_vain} times without a new checkpoint in {folder}: "
                "see what they printed last"
            )
        before = now
        logger.warning("a worker died (exit code %d): all start again after step %d", code, now)


def wait_for(workers: Sequence[WorkerProcess]) -> int:
    """Wait until all have ended, and return what decides: the code of the first real fault.

    When one has failed the others lose it and end too; those that do not are killed.
    """
    ended_at = None
    while any(one.poll() is None for one in workers):
        if ended_at is None and any(one.poll() for one in workers):
            ended_at = time.monotonic()
        if ended_at is not None and time.monotonic() - ended_at > _GRACE_SECONDS:
            for one in workers:
                one.kill()
        time.sleep(_POLL_SECONDS)
    codes = [one.poll() for one in workers]
    for decisive in (UserError.exit_code, INTERRUPTED):
        if decisive in codes:
            return decisive
    faults = [code for code in codes if code]
    return next((code for code in faults if code != LOST), faults[0] if faults else 0)


def start_local(command: Sequence[str], count: int) -> list[subprocess.Popen]:
    """Start the workers of one machine, each with its own GPU or share of the cores."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    return [
        subprocess.Popen(
            command,
            env=os.environ | worker_environment(addresses, rank) | _own_device(rank, count),
            start_new_session=True,  # Ctrl-C is for us, who pass it on
            preexec_fn=die_with_parent,
        )
        for rank in range(count)
    ]


def worker_environment(addresses: Sequence[str], rank: int) -> dict[str, str]:
    """What tells a process which worker it is."""
    task = {"type": "worker", "index": rank}
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": list(addresses)}, "task": task})}


def without_option(words: Sequence[str], name: str) -> list[str]:
    """A command line without an option and its value."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word == name or word.startswith(f"{name}="):
            skip = not skip and word == name
            continue
        kept.append(word)
    return kept


def words_of_starts(words: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """The command line of each start of a run: once it has saved something, it is resumed."""
    before = checkpoints(folder)
    while True:
        has_saved = bool(checkpoints(folder) - before)
        yield resuming(words) if has_saved else list(words)


def resuming(words: Sequence[str]) -> list[str]:
    """A command line that resumes from the last checkpoint, whatever it began with."""
    return [word for word in without_option(words, "--resume-from") if word != "--reset-training"]


def last_checkpoint(folder: Path) -> int:
    """The steps of the last checkpoints of a run, of both its stages; 0 where there is none."""
    stages = (folder, folder / "stage2")
    return sum(max((step for step, _ in checkpoints(stage)), default=0) for stage in stages)


def checkpoints(folder: Path) -> set[tuple[int, int]]:
    """The checkpoints in a folder, by their steps and when they were written."""
    paths = (folder / "checkpoints").glob("step-*")
    steps = ((path.name.partition("-")[2], path) for path in paths)
    return {(int(step), path.stat().st_mtime_ns) for step, path in steps if step.isdigit()}


def _own_device(rank: int, count: int) -> dict[str, str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    listed = [one for one in visible.split(",") if one]
    threads = str(max(1, available_cores() // count))
    return {
        "CUDA_VISIBLE_DEVICES": listed[rank % len(listed)] if listed else str(rank),
        "TF_NUM_INTRAOP_THREADS": os.environ.get("TF_NUM_INTRAOP_THREADS", threads),
    }


def die_with_parent() -> None:
    """A launcher that is killed takes its workers along: nobody would watch them."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


@contextmanager
def _forwarding_signals(workers: Sequence[WorkerProcess]) -> Iterator[Callable[[], bool]]:
    """Pass signals on: the first to the chief, from whom all learn; a second one to all."""
    received: list[int] = []

    def forward(number: int, frame: Any) -> None:
        received.append(number)
        for one in workers[: 1 if len(received) == 1 else None]:
            one.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
