"""An accelerator that is not there: it takes steps as a GPU does, and leaves the CPU free."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Handle:
    """A call in the device's queue, and when its steps start and end by the device's clock."""

    start: float
    end: float
    steps: int = 1


class SimulatedStep:
    """The step of a device that computes behind the call, one batch after the other.

    The device's seconds are those from the start of the first step to the end of the last one: it
    is busy during steps, and idle where a step came after the one before had ended.
    """

    is_async, is_eager, is_new, device = True, False, False, "simulated"

    def __init__(
        self,
        step_ms: float,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ):
        if not step_ms > 0:
            raise ValueError(f"a step takes more than 0 ms, got {step_ms}")
        self.step_seconds = step_ms / 1e3
        self.busy_seconds = self.idle_seconds = 0.0
        self._clock, self._sleep = clock, sleep
        self._free: float | None = None  # when all that was submitted has ended

    def place(self, batch: Any) -> Any:
        """A batch needs no copy on a device that is not there."""
        return batch

    def __call__(self, batch: Any = None, number: int = 0) -> Handle:
        """Queue the step of a batch and return at once; it starts when the one before has ended."""
        return self._queue(1)

    def take_all(self, batches: Sequence[Any], first: int) -> Handle:
        """Queue the steps of several batches: one follows the other without the host."""
        return self._queue(len(batches))

    def _queue(self, steps: int) -> Handle:
        now = self._clock()
        start = now if self._free is None else max(now, self._free)
        if self._free is not None:
            self.idle_seconds += start - self._free
        self.busy_seconds += steps * self.step_seconds
        self._free = start + steps * self.step_seconds
        return Handle(start, self._free, steps)

    def read(self, handle: Handle) -> dict[str, float]:
        """Block until a step has ended, and return when that was."""
        while (left := handle.end - self._clock()) > 0:
            self._sleep(left)
        return {"end": handle.end}

    def read_all(self, handle: Handle) -> list[dict[str, float]]:
        """Block until all steps of a call have ended, and return when each did."""
        end = self.read(handle)["end"]
        left = [self.step_seconds * at for at in range(handle.steps - 1, -1, -1)]
        return [{"end": end - seconds} for seconds in left]

    @property
    def utilisation(self) -> float:
        """busy / (busy + idle), from 0 to 1."""
        return self.busy_seconds / (self.busy_seconds + self.idle_seconds)
