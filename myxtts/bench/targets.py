"""The targets that the documents set for speed, and whether what was measured meets them."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from myxtts.bench.loaders import NAIVE, DataBench
from myxtts.bench.modes import AUTO, PRECOMPUTE, RUNTIME, ModeResult, ModesBench
from myxtts.bench.timing import Bar
from myxtts.monitoring.verdict import GOOD_MS

if TYPE_CHECKING:
    from myxtts.bench.step import StepCosts

RULES = {"at least": operator.ge, "at most": operator.le, "below": operator.lt}
NOT_HERE = "the earlier program is not part of this one; its way of loading is the naive loader"


@dataclass(frozen=True)
class Figures:
    """All that was measured."""

    modes: ModesBench
    loaders: DataBench
    steps: "StepCosts"
    step_ms: float  # of the simulated device; 0 where the real step was taken
    no_driver: str  # why no driver was asked how busy the GPU is
    tensorflow: str = ""  # what it says of itself


@dataclass(frozen=True)
class Target:
    """What is aimed at, in the words it was set in, what was measured, and the rule that judges.

    Where nothing was measured, `note` says why; else what exactly was.
    """

    what: str
    aim: str
    measured: float | None
    rule: str
    limit: float
    unit: str = "x"
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        return None if self.measured is None else RULES[self.rule](self.measured, self.limit)

    def __str__(self) -> str:
        named = f"target: {self.what}, {self.aim}"
        if self.measured is None:
            return f"{named}: not measured: {self.note}"
        note = f" ({self.note})" if self.note else ""
        verdict = "met" if self.is_met else "NOT met"
        return (
            f"{named}: measured {self.measured:,.4g} {self.unit}{note}: {verdict}, "
            f"the rule being {self.rule} {self.limit:g} {self.unit}"
        )


def targets(found: Figures) -> list[Target]:
    """Every target of the documents, with what was measured for it."""
    modes, loaders = found.modes, found.loaders
    precompute, runtime = modes[PRECOMPUTE], modes[RUNTIME]
    chosen, naive = loaders[loaders.chosen].cost, loaders[NAIVE].cost
    speed = precompute.samples_per_second / runtime.samples_per_second
    faster = chosen.samples_per_second / naive.samples_per_second
    loading = "loading alone, for the step is simulated" if found.step_ms else ""
    percent = precompute.gpu_percent
    driver = "NVML: the time in which some kernel ran"
    if percent is None:
        driver = found.no_driver or "the driver does not tell"
    return [
        _busy("precompute", "70-90 %", precompute, 70, modes.device),
        _busy("auto", "40-70 %", modes[AUTO], 40, modes.device),
        _busy("runtime", "20-50 %", runtime, 20, modes.device),
        Target("GPU % by the driver, precompute", "70-90 %", percent, "at least", 70, "%", driver),
        Target(
            *("CPU during training, precompute", "40-60 %", precompute.cpu_percent),
            *("at most", 60, "%", loading),
        ),
        Target("training speed, precompute over runtime", "2-3 x", speed, "at least", 2),
        Target("step speed, graph over eager", "5-10 x", found.steps.ratio, "at least", 5),
        Target(
            *("loading a batch", f"< {GOOD_MS:g} ms", chosen.ms_per_batch, "below", GOOD_MS, "ms"),
            f"reader {loaders.chosen!r}, as fast as it goes",
        ),
        Target("loading speed over np.load per utterance", "3-5 x", faster, "at least", 3),
        Target(
            "training speed over the earlier program", "2-5 x", None, "at least", 2, "x", NOT_HERE
        ),
    ]


def bars(found: Figures) -> list[Bar]:
    """What is asked of a simulated device beyond the documents: that precompute is the best mode.

    A real step may be so long that every mode keeps up with it, and chance decides which is best.
    """
    if not found.step_ms:
        return []
    busy = {name: 100 * found.modes[name].utilisation for name in (PRECOMPUTE, AUTO, RUNTIME)}
    best = busy.pop(PRECOMPUTE)
    what = f"device busy, precompute at {found.step_ms:g} ms a step"
    return [
        Bar(what, best, 98, at_most=False, unit="%"),
        *(
            Bar(f"device busy, precompute over {name}", best / other, 1, at_most=False)
            for name, other in busy.items()
        ),
    ]


def summary(aims: Sequence[Target]) -> str:
    """Count the targets that are met, those that are not, and those that nobody knows of."""
    met = [aim.is_met for aim in aims]
    return (
        f"{met.count(True)} of {len(met)} targets met, {met.count(False)} not met, "
        f"{met.count(None)} not measured"
    )


def unmet(aims: Sequence[Target], limits: Sequence[Bar]) -> list[str]:
    """Name what was measured and is not met."""
    return [one.what for one in (*limits, *aims) if one.is_met is False]


def _busy(mode: str, aim: str, result: ModeResult, limit: float, device: str) -> Target:
    percent = 100 * result.utilisation
    return Target(f"GPU utilisation, {mode}", aim, percent, "at least", limit, "%", device)
