"""Where the time of each step went, without waiting for the device more than the loop does.

A loop reports each phase when it ends: it waited for a batch, moved it to the device or gathered it
there, called the step, fetched the result of the step before, called its hooks. From these moments
follows when the device computed and when it was idle:

- A device that computes inside the call (a CPU) is busy exactly then.
- An asynchronous one (a GPU) begins a step when it is called or when the step before has ended.
  Where fetching a result blocked, the step ended when the result came. Where the result was there
  already, the step had ended earlier; the steps whose end was observed say about when.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

WAIT, COPY, GATHER, CALL = "wait", "copy", "gather", "call"
FETCH, HOOKS, OTHER = "fetch", "hooks", "other"
# Fetching what is there already takes less.
BLOCKED_SECONDS = 3e-4
# How many steps whose end was observed estimate how long a step takes.
REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The milliseconds of one step; `idle` is how long the device was idle before it, by what the
    loop did at that time."""

    wait_ms: float = 0.0
    copy_ms: float = 0.0
    call_ms: float = 0.0
    fetch_ms: float = 0.0
    host_ms: float = 0.0  # CPU time of the loop's thread within the call
    device_ms: float = 0.0
    compile_ms: float = 0.0  # what a first call of its kind took beyond a usual one
    idle: dict[str, float] = field(default_factory=dict)
    shape: str = ""

    def split(self, steps: int) -> "list[StepTimes]":
        """The times of each of the steps that were one call; what was compiled is the first's."""
        if steps == 1:
            return [self]
        names = ("wait_ms", "copy_ms", "call_ms", "fetch_ms", "host_ms", "device_ms")
        each = replace(
            self,
            **{name: getattr(self, name) / steps for name in names},
            compile_ms=0.0,
            idle={phase: ms / steps for phase, ms in self.idle.items()},
        )
        return [replace(each, compile_ms=self.compile_ms), *[each] * (steps - 1)]

    @property
    def compute_ms(self) -> float:
        """What the loop gave to the step: calling it, and waiting for its result."""
        return self.call_ms + self.fetch_ms

    @property
    def stall_ms(self) -> float:
        """How long the device waited before this step, for whatever reason."""
        return sum(self.idle.values())

    @property
    def utilisation(self) -> float:
        """compute / (compute + wait), from 0 to 1."""
        whole = self.device_ms + self.compile_ms + self.stall_ms
        return self.device_ms / whole if whole else 0.0


@dataclass(slots=True)
class _Submitted:
    """A step that was called and whose result has not been fetched."""

    began: float
    ended: float
    wait: float
    copy: float
    host: float
    size: int
    shape: str
    is_new: bool


class Timeline:
    """The moments of a loop, and what they say of the device.

    `is_async` says whether the device computes behind the call, as a GPU does.
    """

    def __init__(
        self,
        is_async: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ):
        self.is_async, self._clock, self._cpu_clock = is_async, clock, cpu_clock
        self._last = clock()
        self._cpu = 0.0
        self._wait = self._copy = 0.0
        self._free_at: float | None = None
        self._pending: deque[_Submitted] = deque()
        self._phases: deque[tuple[str, float, float]] = deque()
        self._rates: deque[float] = deque(maxlen=REMEMBERED)

    def restart(self) -> None:
        """Begin here: what was before belongs to no phase."""
        self._last = self._clock()

    def mark(self, phase: str) -> float:
        """Say that all since the last mark was `phase`; return its seconds."""
        began, self._last = self._last, self._clock()
        self._phases.append((phase, began, self._last))
        spent = self._last - began
        if phase == WAIT:
            self._wait += spent
        elif phase in (COPY, GATHER):
            self._copy += spent
        return spent

    def calling(self) -> None:
        """Before the call."""
        self._cpu = self._cpu_clock()

    def called(self, size: int = 1, shape: str = "", is_new: bool = False) -> None:
        """After the call of a step of such a size; `is_new` if something was traced or compiled."""
        host = self._cpu_clock() - self._cpu
        began = self._last
        self.mark(CALL)
        one = _Submitted(
            began, self._last, self._wait, self._copy, host, max(1, size), shape, is_new
        )
        self._wait = self._copy = 0.0
        self._pending.append(one)

    def fetched(self) -> StepTimes:
        """After fetching the result of the oldest step that was called."""
        requested = self._last
        spent = self.mark(FETCH)
        one = self._pending.popleft()
        start = one.began if self._free_at is None else max(one.began, self._free_at)
        end = self._end_of(one, start, requested, spent)
        idle = self._idle_between(self._free_at, start)
        self._free_at = end
        busy = end - start
        compiled = max(0.0, busy - self._usual(one.size)) if one.is_new else 0.0
        return StepTimes(
            wait_ms=1e3 * one.wait,
            copy_ms=1e3 * one.copy,
            call_ms=1e3 * (one.ended - one.began),
            fetch_ms=1e3 * spent,
            host_ms=1e3 * one.host,
            device_ms=1e3 * (busy - compiled),
            compile_ms=1e3 * compiled,
            idle={phase: 1e3 * seconds for phase, seconds in idle.items()},
            shape=one.shape,
        )

    def _end_of(self, one: _Submitted, start: float, requested: float, spent: float) -> float:
        """When the device finished a step whose result was requested at this moment."""
        if not self.is_async:
            end, is_seen = one.ended, True
        elif spent >= BLOCKED_SECONDS:
            end, is_seen = requested + spent, True
        else:
            usual = self._usual(one.size)
            end, is_seen = min(requested, start + usual) if usual else requested, False
        if is_seen and not one.is_new:
            self._rates.append((end - start) / one.size)
        return max(start, end)

    def _usual(self, size: int) -> float:
        """How long a step of a size takes, by those whose end was observed; 0 if none was."""
        return size * statistics.median(self._rates) if self._rates else 0.0

    def _idle_between(self, free_at: float | None, start: float) -> dict[str, float]:
        """What the loop did between two moments; phases that are over by then are forgotten."""
        idle: dict[str, float] = {}
        while self._phases and self._phases[0][2] <= start:
            phase, began, ended = self._phases.popleft()
            overlap = ended - max(began, free_at) if free_at is not None else 0.0
            if overlap > 0:
                idle[phase] = idle.get(phase, 0.0) + overlap
        if self._phases and free_at is not None:
            phase, began, _ = self._phases[0]
            if start > max(began, free_at):
                idle[phase] = idle.get(phase, 0.0) + start - max(began, free_at)
        return idle
