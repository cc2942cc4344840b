"""What was measured of a run, added up step by step, for a verdict and a page."""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from myxtts.monitoring.timeline import COPY, GATHER, HOOKS, WAIT, StepTimes

# A device has slowed down if it did the same so much faster before: blocks of steps are compared.
BLOCKS, LEAST_BLOCK = 8, 10


@dataclass(frozen=True)
class Setup:
    """The settings of a run that decide which advice makes sense."""

    why_eager: str = ""  # the flag, setting or variable that switched graphs off
    mode: str = ""  # preprocessing mode; empty where it is not known
    overlaps: bool = True  # batches are made while the step computes
    steps_per_call: int = 1


UNKNOWN = Setup()


@dataclass(frozen=True)
class Evidence:
    """Means per step in milliseconds, of steps that were counted; the first one never is."""

    steps: int
    wall_ms: float
    device_ms: float
    wait_ms: float = 0.0  # the device had nothing to do while its loop waited for a batch
    copy_ms: float = 0.0  # ... moved one to the device
    gather_ms: float = 0.0  # ... started to gather one on the device
    hooks_ms: float = 0.0  # ... called its hooks
    host_ms: float = 0.0  # ... did anything else
    compile_ms: float = 0.0
    call_cpu_ms: float = 0.0  # CPU time of the loop's own thread within the calls
    load_ms: float = 0.0  # what the loop waited for a batch, whether or not the device did
    compilations: int = 0
    shapes: int = 0
    is_eager: bool = False
    is_async: bool = False
    graph_ms: float = 0.0  # of an eager step: what the device takes as a graph (0: not tried)
    slowdown: float = 1.0  # how much longer a step takes now than at the device's best
    best_device_ms: float = 0.0  # the mean if the device had always been at its best
    stages: Mapping[str, float] = field(default_factory=dict)  # work of the data engine's threads
    hooks: Mapping[str, float] = field(default_factory=dict)
    # What a step took where the change that helps a stage was really made.
    after: Mapping[str, float] = field(default_factory=dict)
    setup: Setup = UNKNOWN

    @property
    def utilisation(self) -> float:
        """compute / (compute + wait): the share of time in which the device computed."""
        return self.device_ms / self.wall_ms if self.wall_ms else 0.0


class Recorder:
    """Collects the times of a run's steps; the first one, which compiles, does not count."""

    def __init__(self, is_async: bool = False, is_eager: bool = False, setup: Setup = UNKNOWN):
        self.is_async, self.is_eager, self.setup = is_async, is_eager, setup
        self.first: StepTimes | None = None
        self.steps = array("q")
        self.series = {name: array("f") for name in _SERIES}
        self.shapes: Counter[str] = Counter()
        self.compiled: dict[str, float] = {}  # ms by shape
        self.compilations = 0
        self.stages: dict[str, float] = {}  # ms
        self.hooks: dict[str, float] = {}  # ms
        self._shape_numbers = array("l")
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, times: StepTimes) -> None:
        """Take one step."""
        if times.shape:
            self.shapes[times.shape] += 1
        if times.compile_ms:
            self.compilations += 1
            known = self.compiled.get(times.shape, 0.0)
            self.compiled[times.shape] = known + times.compile_ms
        if self.first is None:
            self.first = times
            return
        idle = times.idle
        named = tuple(idle.get(phase, 0.0) for phase in (WAIT, COPY, GATHER, HOOKS))
        other = max(0.0, times.stall_ms - sum(named))
        call_cpu = times.host_ms
        rest = times.compile_ms, call_cpu, times.wait_ms, times.compute_ms
        values = times.device_ms, *named, other, *rest
        self.steps.append(step)
        for series, value in zip(self.series.values(), values, strict=True):
            series.append(value)
        self._shape_numbers.append(self._known.setdefault(times.shape, len(self._known)))

    def add_hook(self, name: str, ms: float) -> None:
        """Add the time of one hook, once there are counted steps."""
        if self.first is not None:
            self.hooks[name] = self.hooks.get(name, 0.0) + ms

    def evidence(self) -> Evidence:
        """The means of all counted steps; there must be at least one."""
        count = max(1, len(self))
        means = {name: float(np.sum(values)) / count for name, values in self.series.items()}
        slowed, best = slowing(self.series["device"], self._shape_numbers)
        names = ("device", "wait", "copy", "gather", "hooks", "host", "compile")
        parts: dict[str, Any] = {f"{name}_ms": means[name] for name in names}
        return Evidence(
            steps=len(self),
            wall_ms=sum(parts.values()),
            **parts,
            call_cpu_ms=means["call CPU"],
            load_ms=means["data"],
            compilations=self.compilations,
            shapes=len(self.shapes),
            is_eager=self.is_eager,
            is_async=self.is_async,
            slowdown=slowed,
            best_device_ms=best,
            stages={name: ms / count for name, ms in self.stages.items()},
            hooks={name: ms / count for name, ms in self.hooks.items()},
            setup=self.setup,
        )


_SERIES = (
    *("device", "wait", "copy", "gather", "hooks", "host", "compile"),
    *("call CPU", "data", "compute"),
)


def slowing(device_ms: ArrayLike, shapes: ArrayLike) -> tuple[float, float]:
    """How much longer the latest steps take than the fastest stretch of the run, and the mean of
    all steps if they had been as fast as there.

    Steps are compared with the fastest of their shape, by the medians of an eighth of the run
    each: single slow steps do not count. Too few steps to say give 1.
    """
    device_ms, shapes = np.asarray(device_ms, np.float64), np.asarray(shapes)
    mean = float(device_ms.mean()) if len(device_ms) else 0.0
    if len(device_ms) < BLOCKS * LEAST_BLOCK:
        return 1.0, mean
    relative = np.empty_like(device_ms)
    for shape in np.unique(shapes):
        own = shapes == shape
        relative[own] = device_ms[own] / max(1e-9, float(np.percentile(device_ms[own], 10)))
    blocks = [float(np.median(block)) for block in np.array_split(relative, BLOCKS)]
    fastest = max(1e-9, min(blocks))
    return max(1.0, blocks[-1] / fastest), mean * min(1.0, fastest / float(relative.mean()))
