"""Judges what inputs from strangers do: many in one process, which is watched from outside.

An input may be used or refused. It must not raise, hang, crash, cost more than its size allows,
write outside of its own folder or run code. One that hangs is killed, and the next one is tried in
a new process.
"""

import argparse
import contextlib
import json
import os
import select
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.drills import children
from benchmarks.drills.cases import (
    ACCEPTED,
    BAD,
    CRASHED,
    HUNG,
    REFUSED,
    TRACEBACK,
    UNBOUNDED,
    WRONG,
    Outcome,
)
from benchmarks.drills.measuring import Clock, Peak, family

LONGEST_MESSAGE = 4000  # characters of an error
MOST_LINES = 16
_EXAMPLES = 6  # of bad inputs in the detail of a case
_POLL_SECONDS = 0.05
_MEBIBYTE = 2**20


@dataclass(frozen=True)
class Bounds:
    """What an input of n bytes may cost: a constant, and a multiple of n."""

    cpu_seconds: float = 2.0
    cpu_per_byte: float = 2e-6
    megabytes: float = 300.0
    memory_per_byte: float = 50.0
    written_megabytes: float = 100.0
    written_per_byte: float = 50.0
    # For the disk, and for what waits on purpose: so many times the CPU seconds, and some more.
    patience: float = 4.0

    def cpu(self, size: int) -> float:
        return self.cpu_seconds + self.cpu_per_byte * size

    def memory(self, size: int) -> float:
        return self.megabytes + self.memory_per_byte * size / _MEBIBYTE

    def written(self, size: int) -> float:
        return self.written_megabytes + self.written_per_byte * size / _MEBIBYTE

    def wall(self, size: int) -> float:
        return 5.0 + self.patience * self.cpu(size)


@dataclass(frozen=True)
class Input:
    """One input of `size` bytes.

    `run` is called in an empty folder of its own and does what a command does: it raises a
    UserError, or returns an exit code or None. `ran` and `../canary` are where a hostile input
    tries to leave a mark.
    """

    name: str
    size: int
    run: Callable[[Path], int | None]


class Bad(Exception):
    """Raised by an input's `run` where the program's answer is wrong: a result, and a detail."""

    def __init__(self, result: str, detail: str):
        super().__init__(result, detail)
        self.result, self.detail = result, detail


def try_all(
    inputs: Sequence[Input],
    folder: Path,
    bounds: Bounds,
    warm_up: Callable[[], object] | None = None,
) -> Outcome:
    """Try inputs one after another; `warm_up` is called first, and its cost is not counted."""
    found: list[Outcome] = []
    while len(found) < len(inputs):
        found += _Worker(inputs, len(found), folder, bounds, warm_up).results()
    return summarise(inputs, found)


def summarise(inputs: Sequence[Input], found: Sequence[Outcome]) -> Outcome:
    """One outcome of many inputs: the first bad one, or else the most frequent."""
    counts = Counter(outcome.result for outcome in found)
    causes: dict[str, list[str]] = {}
    for one, outcome in zip(inputs, found, strict=True):
        if outcome.result in BAD:
            cause = f"{outcome.result}: {outcome.detail}"
            causes.setdefault(cause, []).append(one.name)
    if not causes:
        return Outcome(counts.most_common(1)[0][0], f"{len(found)} inputs", dict(counts))
    worst = next(outcome.result for outcome in found if outcome.result in BAD)
    told = [
        f"{cause} ({len(names)} x, such as {names[0]})"
        for cause, names in list(causes.items())[:_EXAMPLES]
    ]
    return Outcome(worst, "; ".join(told), dict(counts))


class _Worker:
    """A process that tries inputs from one on, until the last or until it has to be killed."""

    def __init__(self, inputs, start: int, folder: Path, bounds: Bounds, warm_up):
        self.inputs, self.start, self.folder, self.bounds = inputs, start, folder, bounds
        folder.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _work(inputs, start, folder, bounds, warm_up, writing)
        os.close(writing)
        self.reading, self.clock = reading, Clock(self.pid)

    def results(self) -> list[Outcome]:
        """How inputs ended, in their order; at least one of them."""
        found: list[Outcome] = []
        with open(self.reading, "rb", buffering=0) as pipe:
            buffer, began = b"", None  # no input runs
            while True:
                if began is not None and (fault := self._fault(len(found), began)):
                    self._kill()
                    return [*found, fault]
                if not select.select([pipe], [], [], _POLL_SECONDS)[0]:
                    continue
                chunk = pipe.read(1 << 16)
                if not chunk:
                    break
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in map(json.loads, lines):
                    if line == "began":
                        began = self.clock.seconds()
                    else:
                        began = None
                        found.append(Outcome(*line))
        _, status = os.waitpid(self.pid, 0)
        if self.start + len(found) < len(self.inputs):
            code = os.waitstatus_to_exitcode(status)
            found.append(Outcome(CRASHED, f"the process ended with {code}"))
        return found

    def _fault(self, number: int, began: float) -> Outcome | None:
        """What is wrong with the input that runs now, as seen from outside."""
        size = self.inputs[self.start + number].size
        seconds = self.clock.seconds() - began
        if seconds > self.bounds.wall(size):
            return Outcome(HUNG, f"no end after {self.bounds.wall(size):.0f} s")
        if seconds < 2 * _POLL_SECONDS:
            return None
        # Twice what is allowed is enough to end it: the process itself measures what is exact.
        resident = sum(map(_resident, family(self.pid)))
        if resident > 2 * self.bounds.memory(size) + _resident(psutil.Process()):
            return Outcome(UNBOUNDED, "memory beyond twice the bound")
        return None

    def _kill(self) -> None:
        for process in reversed(family(self.pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        os.waitpid(self.pid, 0)


def _resident(process: psutil.Process) -> float:
    try:
        return process.memory_info().rss / _MEBIBYTE
    except psutil.NoSuchProcess:
        return 0.0


def _work(inputs, start, folder: Path, bounds: Bounds, warm_up, writing: int) -> None:
    """The worker's life: try each input, and tell when it begins and how it ended."""
    code = 1
    try:
        children.end_with_parent()
        with open(writing, "wb", buffering=0) as pipe:
            if warm_up:
                warm_up()
            for number in range(start, len(inputs)):
                pipe.write(b'"began"\n')
                outcome = judge(inputs[number], folder / f"{number:04d}", bounds)
                answer = [outcome.result, outcome.detail]
                pipe.write(json.dumps(answer).encode() + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def judge(one: Input, folder: Path, bounds: Bounds) -> Outcome:
    """Try an input in this process; its folder is kept where the outcome is bad."""
    own, canary = folder / "input", folder / "canary"
    own.mkdir(parents=True)
    canary.mkdir()
    (canary / "precious").write_text("not to be touched", encoding="utf-8")
    outside = _contents(folder, own)
    heap, before = Peak(), _spent()
    with _place(own), _output(folder / "output") as output:
        outcome = _attempt(one, own, output)
    spent = [now - then for now, then in zip(_spent(), before, strict=True)]
    if outcome.result not in BAD and (own / "ran").exists():
        outcome = Outcome(WRONG, "it ran code")
    changed = {name for name, _ in outside ^ _contents(folder, own)} - {output.name}
    if outcome.result not in BAD and changed:
        outcome = Outcome(WRONG, f"it changed {', '.join(sorted(changed))} outside of its folder")
    if outcome.result not in BAD:
        outcome = _check_cost(one.size, bounds, spent, heap.megabytes()) or outcome
    if outcome.result not in BAD:
        shutil.rmtree(folder)
    return outcome


def _attempt(one: Input, own: Path, output: Path) -> Outcome:
    """Run an input as a command is run, and read what its user would read."""
    from myxtts.cli import terminal

    try:
        code = terminal.run(lambda _: one.run(own), argparse.Namespace(verbose=False))
    except SystemExit:
        return Outcome(CRASHED, "the command did not understand the drill's own words")
    except Bad as error:
        return Outcome(error.result, error.detail)
    except BaseException as error:
        traceback.print_exc()
        return Outcome(TRACEBACK, _cause(error))
    sys.stdout.flush()
    sys.stderr.flush()
    text = output.read_text(encoding="utf-8", errors="replace")
    if "Traceback (most recent call last)" in text:
        return Outcome(TRACEBACK, f"printed: {text.strip().splitlines()[-1][:200]}")
    if code == 0:
        return Outcome(ACCEPTED)
    return _judge_refusal(code, text)


def _judge_refusal(code: int | None, text: str) -> Outcome:
    _, found, message = text.partition("error: ")
    if code != 2 or not found or not message.strip():
        return Outcome(CRASHED, f"exit code {code} without an error message")
    if len(message) > LONGEST_MESSAGE or len(message.strip().splitlines()) > MOST_LINES:
        return Outcome(UNBOUNDED, "an error message that fills the screen")
    return Outcome(REFUSED)


def _check_cost(size: int, bounds: Bounds, spent: Sequence[float], peak: float) -> Outcome | None:
    cpu, written = spent
    if cpu > bounds.cpu(size):
        return Outcome(UNBOUNDED, "CPU seconds beyond the bound")
    if peak > bounds.memory(size):
        return Outcome(UNBOUNDED, "memory beyond the bound")
    if written > bounds.written(size):
        return Outcome(UNBOUNDED, "bytes written beyond the bound")
    return None


def _cause(error: BaseException) -> str:
    """The kind of an exception and the last line of the package that it went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/myxtts/" in f.filename]
    where = "outside of the package"
    if frames:
        where = f"myxtts/{frames[-1].filename.rpartition('/myxtts/')[2]}:{frames[-1].name}"
    return f"{type(error).__name__} in {where}"


def _contents(folder: Path, own: Path) -> set[tuple[str, bytes]]:
    """Everything below a folder but an input's own part of it, as names and contents."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(place, name) != own]
        for name in (*folders, *names):
            path = Path(place, name)
            is_file = path.is_file() and not path.is_symlink()
            found.add((str(path.relative_to(folder)), path.read_bytes() if is_file else b""))
    return found


@contextlib.contextmanager
def _place(folder: Path):
    """Work in a folder, with temporary files in it."""
    before, environment = os.getcwd(), dict(os.environ)
    os.chdir(folder)
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


@contextlib.contextmanager
def _output(path: Path):
    """Send what this process and its children print to a file."""
    kept = [os.dup(number) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in (1, 2):
        os.dup2(target, number)
    os.close(target)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    try:
        yield path
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _spent() -> tuple[float, float]:
    """CPU seconds of this process and of its children that have ended, and megabytes written."""
    times = os.times()
    cpu = times.user + times.system + times.children_user + times.children_system
    return cpu, psutil.Process().io_counters().write_chars / _MEBIBYTE


def numbered(inputs: Iterable[Input]) -> list[Input]:
    """Inputs with names that are unique in their case."""
    return [Input(f"{number}-{one.name}", one.size, one.run) for number, one in enumerate(inputs)]
