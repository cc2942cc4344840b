"""From numbers to a verdict: what holds training back, what that costs, and what to do about it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.monitoring import timers
from myxtts.monitoring.evidence import Evidence

# The share of a step that is spent waiting: below the first it is not input-bound, above the
# second highly so.
NOT_INPUT_BOUND, HIGHLY_INPUT_BOUND = 0.05, 0.20
# The time that a batch keeps the step waiting.
GOOD_MS, MODERATE_MS = 100.0, 500.0
# A device that takes so much longer than it did is no longer what it was.
SLOWED = 1.5
# The loop's own thread is at work for so much of a call where Python runs each operation.
BUSY_CALLER = 0.7

INPUT, COMPILATION, HOST, LOGGING, DEVICE = (
    "input", "compilation", "host compute", "logging", "device",
)  # fmt: skip
HEALTHY = "healthy"


@dataclass(frozen=True)
class Remedy:
    """What a stage that costs time does, and the one change that helps."""

    what: str
    change: str


REMEDIES: Mapping[str, Remedy] = {
    timers.READ: Remedy(
        "reading from the disk",
        "read the cache into memory once (--memory-cache), or put it on a faster disk "
        "(--cache-dir)",
    ),
    timers.DECODE: Remedy(
        "decoding recordings", "compute the features once (--preprocessing-mode precompute)"
    ),
    timers.FEATURES: Remedy(
        "computing features", "compute them once (--preprocessing-mode precompute)"
    ),
    timers.TOKENS: Remedy(
        "turning text into tokens",
        "do it once, before training: batches of the cache hold tokens (`myxtts prepare`)",
    ),
    timers.BATCHING: Remedy(
        "putting batches together",
        "prepare batches while the step computes (no --disable-cpu-gpu-overlap), and more of them "
        "(--prefetch-buffer-size)",
    ),
    timers.HAND_OVER: Remedy(
        "moving batches to the device", "move them ahead of their step (--prefetch-to-gpu)"
    ),
    INPUT: Remedy(
        "waiting for data",
        "prepare the features (--preprocessing-mode precompute), and let `myxtts profile` name "
        "the stage",
    ),
    COMPILATION: Remedy(
        "compiling for new shapes",
        "round the shapes up so that few are left (a larger pad_to_multiple)",
    ),
    HOST: Remedy(
        "Python, which starts every operation by itself",
        "run steps as a graph (enable_graph_mode: true, no --enable-eager-debug)",
    ),
    LOGGING: Remedy("what is done beside the steps", "do it less often ({setting})"),
    DEVICE: Remedy(
        "a device that has slowed down",
        "see what else uses it and whether it is throttled (`myxtts monitor`)",
    ),
}


# How often a hook has much to do, where that is not each time that something is logged.
HOOK_SETTINGS = {
    "ValidationHook": "--validation-interval",
    "SavingHook": "--save-interval",
    "SampleHook": "sample_interval",
    "EvaluationHook": "--evaluation-interval",
}


@dataclass(frozen=True)
class Verdict:
    """The stage that holds a run back, the share of its time that this costs, one change, and how
    many times as fast the run should be with it (NaN where only trying it can tell)."""

    stage: str
    share: float
    sentence: str
    change: str = ""
    gain: float = 1.0
    utilisation: float = 1.0

    @property
    def is_healthy(self) -> bool:
        return self.stage == HEALTHY

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Times:
    """How some milliseconds are distributed."""

    mean: float
    median: float
    p99: float

    def __str__(self) -> str:
        return f"mean {self.mean:.1f} ms, median {self.median:.1f} ms, p99 {self.p99:.1f} ms"


def diagnose(evidence: Evidence) -> Verdict:
    """Name what costs most of the time that the device could have computed."""
    costs = avoidable(evidence)
    stage = max(costs, key=costs.get)
    share = costs[stage] / evidence.wall_ms if evidence.wall_ms else 0.0
    if share < NOT_INPUT_BOUND:
        return _healthy(evidence)
    left = evidence.wall_ms - costs[stage]
    if stage == HOST and evidence.is_eager and not evidence.graph_ms:
        left = math.nan  # only running it as a graph can tell
    if stage == INPUT:
        stage = slowest_stage(evidence.stages)
    left = evidence.after.get(stage, left)
    gain = evidence.wall_ms / left if math.isnan(left) or left > 0 else math.inf
    return _held_back(stage, share, gain, evidence)


def avoidable(evidence: Evidence) -> dict[str, float]:
    """The milliseconds of each step that a change could save, by what they are lost to."""
    return {
        INPUT: evidence.wait_ms,
        timers.HAND_OVER: evidence.copy_ms,
        COMPILATION: evidence.compile_ms,
        LOGGING: evidence.hooks_ms,
        HOST: evidence.host_ms + _lost_to_python(evidence),
        DEVICE: _lost_to_slowing(evidence),
    }


def slowest_stage(stages: Mapping[str, float]) -> str:
    """The stage at which the makers of batches work most, or just the input if none is known."""
    known = {name: ms for name, ms in stages.items() if name in timers.STAGES}
    return max(known, key=known.get) if known else INPUT


def performance_report(
    data_ms: Sequence[float], compute_ms: Sequence[float], evidence: Evidence
) -> str:
    """Describe the times of equally many steps, at least one, and judge them."""
    data, compute = distribution(data_ms), distribution(compute_ms)
    return "\n".join(
        (
            f"Performance over {len(data_ms):,} steps:",
            f"  data:    {data}",
            f"  compute: {compute}",
            f"  device:  busy {100 * evidence.utilisation:.1f} % of the time; waiting for data "
            f"{100 * _share(evidence.wait_ms, evidence):.1f} %, for copies "
            f"{100 * _share(evidence.copy_ms, evidence):.1f} %, for logging "
            f"{100 * _share(evidence.hooks_ms, evidence):.1f} %, for the host "
            f"{100 * _share(evidence.host_ms, evidence):.1f} %; compiling "
            f"{100 * _share(evidence.compile_ms, evidence):.1f} %",
            f"  loading is {loading_grade(data.mean)}",
            f"  {diagnose(evidence)}",
        )
    )


def distribution(ms: Sequence[float]) -> Times:
    """Return mean, median and 99th percentile."""
    median, p99 = np.percentile(ms, [50, 99])
    return Times(float(np.mean(ms)), float(median), float(p99))


def waiting_share(data_ms: float, compute_ms: float) -> float:
    """Return the share of a step that waits for its batch, from 0 to 1."""
    step_ms = data_ms + compute_ms
    return data_ms / step_ms if step_ms else 0.0


def loading_grade(data_ms: float) -> str:
    """Return the word for a wait per batch: good, moderate or slow."""
    if data_ms < GOOD_MS:
        return "good"
    return "moderate" if data_ms < MODERATE_MS else "slow"


def _lost_to_python(evidence: Evidence) -> float:
    """What an eager step loses: its difference to a graph, where that was measured.

    Otherwise at most the time in which the caller's own thread is at work: on a CPU that thread
    computes as well.
    """
    if evidence.is_eager and evidence.graph_ms:
        return max(0.0, evidence.device_ms - evidence.graph_ms)
    if not evidence.is_eager or evidence.call_cpu_ms < BUSY_CALLER * evidence.device_ms:
        return 0.0
    return min(evidence.call_cpu_ms, evidence.device_ms)


def _lost_to_slowing(evidence: Evidence) -> float:
    if evidence.slowdown < SLOWED:
        return 0.0
    return evidence.device_ms - evidence.best_device_ms


def _healthy(evidence: Evidence) -> Verdict:
    busy = evidence.utilisation
    sentence = (
        f"Healthy: the device computes {100 * busy:.1f} % of the time "
        f"({evidence.device_ms:.1f} of {evidence.wall_ms:.1f} ms a step), and nothing else costs "
        f"{100 * NOT_INPUT_BOUND:.0f} % of it; only a faster device, a smaller model or lower "
        "precision would make it faster."
    )
    return Verdict(HEALTHY, 1.0 - busy, sentence, utilisation=busy)


def _held_back(stage: str, share: float, gain: float, evidence: Evidence) -> Verdict:
    remedy = REMEDIES[stage]
    setting = HOOK_SETTINGS.get(_slowest_hook(evidence), "log_interval")
    change = remedy.change.format(setting=setting)
    known = math.isfinite(gain)
    then = f"predicted {gain:.2f} x as fast" if known else "`myxtts profile` tells what that gains"
    sentence = (
        f"{_degree(stage, share)} {100 * share:.1f} % of the time goes to {remedy.what}"
        f"{_detail(stage, evidence)}; {change}: {then}."
    )
    return Verdict(stage, share, sentence, change, gain, evidence.utilisation)


def _degree(stage: str, share: float) -> str:
    if stage in timers.STAGES or stage == INPUT:
        degree = "Highly" if share > HIGHLY_INPUT_BOUND else "Moderately"
        return f"{degree} input-bound" + ("" if stage == INPUT else f" ({stage})") + ":"
    return f"Held back by {stage}:"


def _detail(stage: str, evidence: Evidence) -> str:
    if stage == LOGGING and evidence.hooks:
        name = _slowest_hook(evidence)
        return f", most of it to {name} ({evidence.hooks[name]:.1f} ms a step)"
    if stage == COMPILATION:
        return f" ({evidence.compilations} compilations for {evidence.shapes} shapes)"
    if stage == DEVICE:
        return f" (a step takes {evidence.slowdown:.1f} x as long as at its fastest)"
    if stage in evidence.stages:
        busy = sum(evidence.stages.values())
        return f" ({evidence.stages[stage]:.1f} of {busy:.1f} ms of work for each batch)"
    return ""


def _slowest_hook(evidence: Evidence) -> str:
    return max(evidence.hooks, key=evidence.hooks.get, default="")


def _share(ms: float, evidence: Evidence) -> float:
    return ms / evidence.wall_ms if evidence.wall_ms else 0.0
