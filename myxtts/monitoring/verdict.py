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
# A device that takes this much longer than at its best has slowed down.
SLOWED = 1.5
# The loop's own thread is at work for so much of a call where Python runs each operation.
BUSY_CALLER = 0.7
# Fewer counted steps are too few to predict a gain from.
LEAST_STEPS = 10
# A larger gain is not given as a number, unless a trial measured it.
MOST_PREDICTED = 10.0
# Below this share of computing, the device's own time is not known well enough.
LEAST_COMPUTING = 0.01

INPUT, COMPILATION, HOST, LOGGING, DEVICE, OVERLAP = (
    "input", "compilation", "host compute", "logging", "device", "overlap",
)  # fmt: skip
LAUNCH = "launch"
STEPS_AT_ONCE = 16
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
    OVERLAP: Remedy(
        "waiting for batches that are made only when the step asks for them",
        "switch overlap back on (optimize_cpu_gpu_overlap: true, no --disable-cpu-gpu-overlap)",
    ),
    timers.GATHER: Remedy(
        "starting to gather batches on the device",
        "gather those of {many} steps at once (--steps-per-call {many})",
    ),
    LAUNCH: Remedy(
        "the host, which starts one step after the other",
        "let it start {many} steps at once (--steps-per-call {many})",
    ),
    COMPILATION: Remedy(
        "compiling for new shapes",
        "round the shapes up so that few are left (a larger pad_to_multiple)",
    ),
    HOST: Remedy(
        "Python, which starts every operation by itself",
        "run steps as a graph (enable_graph_mode: true, no --enable-eager-debug)",
    ),
    LOGGING: Remedy("what is done next to the steps", "do it less often ({setting})"),
    DEVICE: Remedy(
        "a device that has slowed down",
        "see what else uses it and whether it is throttled (`myxtts monitor`)",
    ),
}

# Instead of the remedy above, where the features are stored already.
_WITH_STORED_FEATURES = (
    "read the cache into memory (--memory-cache) or prepare more batches ahead "
    "(--prefetch-buffer-size), and let `myxtts profile` name the stage"
)

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
    many times as fast the run should be with it: at least, if it is `MOST_PREDICTED`, and NaN where
    only a trial can show it."""

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
    """Name what costs most of the time that the device could have computed.

    An eager run is named as such first, unless a graph was tried: how much it loses cannot be seen
    from inside.
    """
    costs = avoidable(evidence)
    if evidence.is_eager and not evidence.graph_ms:
        return _eager(evidence, _share(costs[HOST], evidence))
    stage = max(costs, key=costs.__getitem__)
    share = _share(costs[stage], evidence)
    if share < NOT_INPUT_BOUND:
        return _healthy(evidence)
    left = evidence.wall_ms - costs[stage]
    if stage == INPUT and _is_overlap_to_blame(evidence):
        stage = OVERLAP
        left = evidence.wall_ms - min(evidence.wait_ms, evidence.device_ms)
    elif stage == INPUT:
        stage = slowest_stage(evidence.stages)
    return _held_back(stage, share, _gain(stage, left, evidence), evidence)


def avoidable(evidence: Evidence) -> dict[str, float]:
    """The milliseconds of each step that a change could save, by what they are lost to."""
    return {
        INPUT: evidence.wait_ms,
        timers.HAND_OVER: evidence.copy_ms,
        timers.GATHER: evidence.gather_ms,
        COMPILATION: evidence.compile_ms,
        LOGGING: evidence.hooks_ms,
        # A GPU that waits for its launcher runs graphs as fast as it can be told to.
        LAUNCH if _is_launched(evidence) else HOST: evidence.host_ms + _lost_to_python(evidence),
        DEVICE: _lost_to_slowing(evidence),
    }


def slowest_stage(stages: Mapping[str, float]) -> str:
    """The stage at which the makers of batches work most, or just the input if none is known."""
    known = {name: ms for name, ms in stages.items() if name in timers.STAGES}
    return max(known, key=known.__getitem__) if known else INPUT


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
            f"{100 * _share(evidence.copy_ms + evidence.gather_ms, evidence):.1f} %, for logging "
            f"{100 * _share(evidence.hooks_ms, evidence):.1f} %, for the host "
            f"{100 * _share(evidence.host_ms, evidence):.1f} %; compiling "
            f"{100 * _share(evidence.compile_ms, evidence):.1f} %",
            f"  loading is {waiting_grade(_share(evidence.wait_ms, evidence))}",
            f"  {diagnose(evidence)}",
        )
    )


def distribution(ms: Sequence[float] | np.ndarray) -> Times:
    """Return mean, median and 99th percentile."""
    median, p99 = np.percentile(ms, [50, 99])
    return Times(float(np.mean(ms)), float(median), float(p99))


def waiting_share(data_ms: float, compute_ms: float) -> float:
    """Return the share of a step that waits for its batch, from 0 to 1."""
    step_ms = data_ms + compute_ms
    return data_ms / step_ms if step_ms else 0.0


def loading_grade(data_ms: float) -> str:
    """Return the word for the time that loading a batch takes by itself: good, moderate or slow."""
    if data_ms < GOOD_MS:
        return "good"
    return "moderate" if data_ms < MODERATE_MS else "slow"


def waiting_grade(share: float) -> str:
    """Return the word for loading next to steps, by the share of time that the device waits.

    The verdict judges by the same thresholds, so that the two never contradict each other.
    """
    if share < NOT_INPUT_BOUND:
        return "good"
    return "moderate" if share <= HIGHLY_INPUT_BOUND else "slow"


def _is_overlap_to_blame(evidence: Evidence) -> bool:
    """Whether making batches during the step would hide the wait, or nothing else is left to do."""
    setup = evidence.setup
    if setup.overlaps:
        return False
    return setup.mode == "precompute" or evidence.wait_ms <= evidence.device_ms


def _gain(stage: str, left: float, evidence: Evidence) -> float:
    """How many times as fast a step is that takes `left` ms; NaN where nothing can be predicted.

    What a trial measured is taken as it is.
    """
    if _is_measured(stage, evidence):
        return evidence.wall_ms / max(evidence.after.get(stage, left), 1e-9)
    is_known = evidence.device_ms >= LEAST_COMPUTING * evidence.wall_ms
    if evidence.steps < LEAST_STEPS or not is_known:
        return math.nan
    return min(evidence.wall_ms / max(left, 1e-9), MOST_PREDICTED)


def _is_measured(stage: str, evidence: Evidence) -> bool:
    """Whether a trial really made the change."""
    return stage in evidence.after or (stage == HOST and bool(evidence.graph_ms))


def _is_launched(evidence: Evidence) -> bool:
    """Whether the device computes graphs behind the call."""
    return evidence.is_async and not evidence.is_eager


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


def _eager(evidence: Evidence, share: float) -> Verdict:
    cause = evidence.setup.why_eager
    change = f"run steps as a graph (remove {cause})" if cause else REMEDIES[HOST].change
    sentence = (
        f"Held back by {HOST}: steps run eagerly{f', because of {cause}' if cause else ''}, so "
        f"that Python starts every operation by itself ({evidence.wall_ms:.1f} ms a step); "
        f"{change}: `myxtts profile` measures what that gains here, and "
        "benchmarks/training_step.py for the built-in sizes."
    )
    return Verdict(HOST, share, sentence, change, math.nan, evidence.utilisation)


def _held_back(stage: str, share: float, gain: float, evidence: Evidence) -> Verdict:
    remedy = REMEDIES[stage]
    setting = HOOK_SETTINGS.get(_slowest_hook(evidence), "log_interval")
    many = max(STEPS_AT_ONCE, 4 * evidence.setup.steps_per_call)
    change = remedy.change.format(setting=setting, many=many)
    if stage == INPUT and evidence.setup.mode == "precompute":
        change = _WITH_STORED_FEATURES
    sentence = (
        f"{_degree(stage, share)} {100 * share:.1f} % of the time goes to {remedy.what}"
        f"{_detail(stage, evidence)}; {change}: {_outlook(stage, gain, evidence)}."
    )
    return Verdict(stage, share, sentence, change, gain, evidence.utilisation)


def _outlook(stage: str, gain: float, evidence: Evidence) -> str:
    """What the change promises, in words."""
    if math.isnan(gain):
        few = f"{evidence.steps} steps are too few to predict the gain, "
        few = few if evidence.steps < LEAST_STEPS else ""
        return f"{few}`myxtts profile` measures what that gains"
    if gain >= MOST_PREDICTED and not _is_measured(stage, evidence):
        return f"predicted more than {MOST_PREDICTED:.0f} x as fast"
    return f"predicted {gain:.2f} x as fast"


def _degree(stage: str, share: float) -> str:
    if stage in (*timers.STAGES, INPUT, OVERLAP):
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
        busy = sum(ms for name, ms in evidence.stages.items() if name != timers.TRANSFER)
        return f" ({evidence.stages[stage]:.1f} of {busy:.1f} ms of work for each batch)"
    return ""


def _slowest_hook(evidence: Evidence) -> str:
    return max(evidence.hooks, key=evidence.hooks.__getitem__, default="")


def _share(ms: float, evidence: Evidence) -> float:
    return ms / evidence.wall_ms if evidence.wall_ms else 0.0
