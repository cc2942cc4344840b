"""What measurements decide: which value of a setting is taken, and why the others are not."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from myxtts.config.config import XTTSConfig
from myxtts.data.batches.parts import usual_parts
from myxtts.errors import UserError

SIZE, BUDGET = "data.batch_size", "data.max_frames_per_batch"
READER, WORKERS = "data.use_tf_native_loading", "data.num_workers"
DEPTH = "data.prefetch_buffer_size"
RESIDENCE, CALLS = "data.cache_on_device", "training.steps_per_call"

DEPTHS = (1, 2, 4, 8)
STEPS_PER_CALL = (1, 4, 16)
# A batch that is smaller and almost as fast leaves memory free and makes more updates.
ALMOST = 0.95
# Smaller differences do not count, even if all rounds agree.
LEAST_WAIT, LEAST_CPU, LEAST_GAIN = 0.01, 0.05, 0.05
# A call of Python takes a millisecond or two: next to longer steps that is less than any gain.
LONG_STEP_MS = 40.0


@dataclass(frozen=True)
class Alternative:
    """A value that was not chosen, what was measured of it, and why."""

    value: Any
    measured: str
    why: str


@dataclass(frozen=True)
class Choice:
    """The chosen value of a setting, its measurement, the reason, and the alternatives."""

    setting: str
    value: Any
    measured: str
    why: str
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class Loading:
    """Measurements of one way of loading, round by round; all ways took turns."""

    stalls: tuple[float, ...]  # the share of time in which the device waited for a batch
    batch_ms: tuple[float, ...]  # time per batch without a step
    cpu_ms: tuple[float, ...]  # CPU time per batch, on all cores together

    @property
    def stall(self) -> float:
        return statistics.median(self.stalls)

    @property
    def slowdowns(self) -> list[float]:
        """How many times as long a step takes as without waiting."""
        return [1.0 / max(1e-6, 1.0 - stall) for stall in self.stalls]

    def __str__(self) -> str:
        return (
            f"the device waits {100 * self.stall:.1f} %; unused, a batch takes "
            f"{statistics.median(self.batch_ms):.1f} ms, "
            f"{statistics.median(self.cpu_ms):.1f} CPU-ms"
        )


@dataclass(frozen=True)
class Pace:
    """What the same steps of a run take, round by round; all kinds took turns."""

    step_ms: tuple[float, ...]
    cpu_ms: tuple[float, ...]  # CPU time per step, on all cores together

    @property
    def median(self) -> float:
        return statistics.median(self.step_ms)

    def __str__(self) -> str:
        cpu = statistics.median(self.cpu_ms)
        return f"a step takes {self.median:.2f} ms, {cpu:.2f} CPU-ms"


@dataclass(frozen=True)
class Throughput:
    """The real frames per second of steps of one size, round by round, or why there are none."""

    rates: tuple[float, ...] = ()
    failure: str = ""

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def __str__(self) -> str:
        return f"{self.rate:,.0f} frames/s" if self.rates else "-"


@dataclass(frozen=True)
class Circumstances:
    """What decides whether a setting has any effect in a run."""

    is_stored: bool  # every batch is read from the cache
    is_simulated: bool = False
    is_eager: bool = False
    has_gpu: bool = False
    obstacle: str = ""  # why the cache cannot lie on a device
    given: Mapping[str, str] = field(default_factory=dict)  # where a setting was given


def choose_reader(found: Mapping[bool, Loading], present: bool) -> Choice:
    """The reader for which the device waits less, or else the cheaper one, or else the present."""
    waits = "slowdowns", LEAST_WAIT, "the device waits less", "the device waits longer"
    return _choose_of_two(READER, found, present, waits)


def choose_residence(found: Mapping[str, Pace], present: str) -> Choice:
    """Where steps take less time, or else less CPU time, or else as it is."""
    steps = "step_ms", LEAST_GAIN, "a step takes less", "a step takes longer"
    return _choose_of_two(RESIDENCE, found, present, steps)


def _choose_of_two(
    setting: str, found: Mapping[Any, Any], present: Any, decisive: tuple[str, float, str, str]
) -> Choice:
    """The value of the better decisive figure, or else of less CPU time, or else the present."""
    chosen, why, why_not = present, "no difference: it stays", "no measurable difference"
    for figure, least, better, worse in (
        ("cpu_ms", LEAST_CPU, "it costs less", "it costs more"),
        decisive,
    ):
        for one, other in (tuple(found), tuple(found)[::-1]):
            if _exceeds(getattr(found[other], figure), getattr(found[one], figure), least):
                chosen, why, why_not = one, better, worse
    (other,) = (value for value in found if value != chosen)
    return Choice(
        setting, chosen, str(found[chosen]), why, (Alternative(other, str(found[other]), why_not),)
    )


def choose_least(setting: str, found: Mapping[int, Loading]) -> Choice:
    """The least number with which the device waits no longer than with the best, but for noise."""
    best = min(sorted(found), key=lambda value: found[value].stall)
    figures = {value: one.slowdowns for value, one in found.items()}
    return _choose_least(setting, found, best, figures, LEAST_WAIT, "the device waits")


def choose_calls(found: Mapping[int, Pace]) -> Choice:
    """The least number a call with which steps take no longer than with the best, but for noise."""
    best = min(sorted(found), key=lambda value: found[value].median)
    figures = {value: one.step_ms for value, one in found.items()}
    return _choose_least(CALLS, found, best, figures, LEAST_GAIN, "a step takes")


def _choose_least(
    setting: str,
    found: Mapping[int, Any],
    best: int,
    figures: Mapping[int, Sequence[float]],
    least: float,
    what: str,
) -> Choice:
    slower = {value for value in found if _exceeds(figures[value], figures[best], least)}
    chosen = min(value for value in found if value not in slower)
    lost = tuple(
        Alternative(
            value,
            str(found[value]),
            f"{what} longer" if value in slower else f"gains nothing over {chosen}",
        )
        for value in sorted(found)
        if value != chosen
    )
    why = f"the least with which {what} no longer than with any"
    return Choice(setting, chosen, str(found[chosen]), why, lost)


def choose_batch(setting: str, found: Mapping[int, Throughput]) -> Choice:
    """The smallest size that is almost as fast as the fastest."""
    working = {size: one.rate for size, one in found.items() if one.rates}
    if not working:
        failures = "; ".join(f"{size}: {one.failure}" for size, one in sorted(found.items()))
        raise UserError(
            f"no {setting} could be tried ({failures}): give a smaller --batch-size or "
            "--max-frames-per-batch, drop long utterances with --max-mel-frames, or choose a "
            "smaller --model-size"
        )
    best = max(working.values())
    chosen = min(size for size, rate in working.items() if rate >= ALMOST * best)
    lost = []
    for size, one in sorted(found.items()):
        if size != chosen:
            why = one.failure or f"only {100 * working[size] / best:.0f} % of the fastest"
            if not one.failure and working[size] >= ALMOST * best:
                why = f"not {100 * (1 - ALMOST):.0f} % faster than {chosen}"
            lost.append(Alternative(size, str(one), why))
    why = f"the smallest within {100 * (1 - ALMOST):.0f} % of the fastest"
    return Choice(setting, chosen, str(found[chosen]), why, tuple(lost))


def reason_to_stay(setting: str, config: XTTSConfig, seen: Circumstances) -> str:
    """Why a setting is left as it is, or nothing where it is to be measured."""
    data = config.data
    if setting in seen.given:
        return f"left as it is: given by {seen.given[setting]}"
    if setting == SIZE and data.max_frames_per_batch:
        return "not measured: max_frames_per_batch decides how large a batch is"
    if setting == BUDGET and not data.max_frames_per_batch:
        return "not used here: batch_size decides how large a batch is"
    if setting in (SIZE, BUDGET) and seen.is_simulated:
        return "not measured: a simulated step takes equally long for any batch"
    if setting == READER and not seen.is_stored:
        return "not used here: batches are computed, not read"
    if setting == READER and not (data.enable_memory_mapping or data.memory_cache):
        return "not measured: native loading needs enable_memory_mapping or memory_cache"
    if setting == WORKERS and seen.is_stored:
        return "not used here: everything is stored"
    if setting == DEPTH and not data.optimize_cpu_gpu_overlap:
        return "not used here: optimize_cpu_gpu_overlap is off"
    if setting == RESIDENCE:
        return _reason_for_the_host(config, seen)
    if setting == CALLS:
        return _reason_for_single_steps(config, seen)
    return ""


def _reason_for_the_host(config: XTTSConfig, seen: Circumstances) -> str:
    """Why it is not measured whether the cache is better on the device."""
    asked = config.data.cache_on_device
    if asked == "off":
        return "left as it is: the cache is not to be on the device"
    if asked == "auto" and not seen.has_gpu:
        return "not used here: without a GPU auto is off"
    if seen.is_simulated:
        return "not measured: a simulated step gathers nothing"
    if not seen.is_stored:
        return "not measured: not everything is stored"
    return f"not used here: {seen.obstacle}" if seen.obstacle else ""


def _reason_for_single_steps(config: XTTSConfig, seen: Circumstances) -> str:
    """Why it is not measured how many steps a call is to take."""
    training = config.training
    parts = training.micro_batches or usual_parts(1, training.exact_sums)
    if parts > 1:
        return f"not used here: batches are cut into {parts} parts"
    if seen.is_eager:
        return "not used here: steps run eagerly"
    return "not measured: a simulated step needs no call" if seen.is_simulated else ""


def candidates(setting: str, config: XTTSConfig, cores: int, utterances: int) -> list[Any]:
    """The values that are tried, in ascending order."""
    present = attrgetter(setting)(config)
    if setting == READER:
        return [False, True]
    if setting == DEPTH:
        return sorted({*DEPTHS, present})
    if setting == CALLS:
        return sorted({*STEPS_PER_CALL, present})
    if setting == RESIDENCE:
        return ["off", present]
    if setting == WORKERS:
        return sorted({*(2**power for power in range(cores.bit_length())), cores})
    unit = max(1, config.data.utterances_per_speaker) if setting == SIZE else 1
    sizes = {max(unit, present // 2 // unit * unit), present, 2 * present, 4 * present}
    # A batch holds no more than the corpus.
    return sorted(s for s in sizes if setting == BUDGET or s <= max(present, utterances))


def _exceeds(values: Sequence[float], others: Sequence[float], least: float) -> bool:
    """Whether rounds gave more than those next to them: by this share, and beyond their noise."""
    ratios = [a / max(1e-9, b) for a, b in zip(values, others, strict=True)]
    excess = statistics.median(ratios) - 1.0
    return excess > max(least, (max(ratios) - min(ratios)) / 2)
