"""The targets that the documents set for speed, and whether what was measured meets them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from myxtts.bench.loaders import NAIVE, DataBench
from myxtts.bench.modes import AUTO, PRECOMPUTE, RUNTIME, ModesBench
from myxtts.bench.timing import Target
from myxtts.monitoring.verdict import GOOD_MS

if TYPE_CHECKING:
    from myxtts.bench.step import StepCosts

NOT_HERE = "the earlier program is not part of this one; its way of loading is the naive loader"


@dataclass(frozen=True)
class Figures:
    """All that was measured."""

    modes: ModesBench
    loaders: DataBench
    steps: "StepCosts"
    step_ms: float  # of the simulated device; 0 where the real step was taken
    no_driver: str  # why no driver reports how busy the GPU is
    tensorflow: str = ""  # what it says of itself


def targets(found: Figures) -> list[Target]:
    """Every target of the documents, with what was measured for it."""
    modes, loaders = found.modes, found.loaders
    precompute, runtime = modes[PRECOMPUTE], modes[RUNTIME]
    chosen, naive = loaders[loaders.chosen].cost, loaders[NAIVE].cost
    speed = precompute.samples_per_second / runtime.samples_per_second
    faster = chosen.samples_per_second / naive.samples_per_second
    loading = "loading alone: the step is simulated" if found.step_ms else ""
    percent = precompute.gpu_percent
    driver = "NVML: the time in which some kernel ran"
    if percent is None:
        driver = found.no_driver or "the driver does not report it"
    least = partial(Target, at_most=False)
    busy = partial(least, unit="%", note=modes.device)
    return [
        busy("GPU utilisation, precompute", 100 * precompute.utilisation, 70, aim="70-90 %"),
        busy("GPU utilisation, auto", 100 * modes[AUTO].utilisation, 40, aim="40-70 %"),
        busy("GPU utilisation, runtime", 100 * runtime.utilisation, 20, aim="20-50 %"),
        busy("GPU % by the driver, precompute", percent, 70, aim="70-90 %", note=driver),
        Target(
            *("CPU during training, precompute", precompute.cpu_percent, 60),
            unit="%",
            aim="40-60 %",
            note=loading,
        ),
        least("training speed, precompute over runtime", speed, 2, aim="2-3 x"),
        least("step speed, graph over eager", found.steps.ratio, 5, aim="5-10 x"),
        Target(
            *("loading a batch", chosen.ms_per_batch, GOOD_MS),
            unit="ms",
            aim=f"< {GOOD_MS:g} ms",
            note=f"reader {loaders.chosen!r}, as fast as it goes",
        ),
        least("loading speed over np.load per utterance", faster, 3, aim="3-5 x"),
        least("training speed over the earlier program", None, 2, aim="2-5 x", note=NOT_HERE),
    ]


def mode_targets(found: Figures) -> list[Target]:
    """Targets of a simulated device beyond the documents: precompute is the best mode.

    A real step may be so long that every mode keeps up with it, and chance decides which is best.
    """
    if not found.step_ms:
        return []
    busy = {name: 100 * found.modes[name].utilisation for name in (PRECOMPUTE, AUTO, RUNTIME)}
    best = busy.pop(PRECOMPUTE)
    what = f"device busy, precompute at {found.step_ms:g} ms a step"
    return [
        Target(what, best, 98, at_most=False, unit="%"),
        *(
            Target(f"device busy, precompute over {name}", best / other, 1, at_most=False)
            for name, other in busy.items()
        ),
    ]


def summary(aims: Sequence[Target]) -> str:
    """Count the targets that are met, not met and not measured."""
    met = [aim.is_met for aim in aims]
    return (
        f"{met.count(True)} of {len(met)} targets met, {met.count(False)} not met, "
        f"{met.count(None)} not measured"
    )
