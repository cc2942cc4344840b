"""What measurements decide: which value of a setting is taken, and why the others are not."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from myxtts.config.config import XTTSConfig
from myxtts.errors import UserError

SIZE, BUDGET = "data.batch_size", "data.max_frames_per_batch"
READER, WORKERS = "data.use_tf_native_loading", "data.num_workers"
DEPTH = "data.prefetch_buffer_size"

DEPTHS = (1, 2, 4, 8)
# A batch that is smaller and almost as fast leaves memory free and makes more updates.
ALMOST = 0.95
# Smaller differences do not count, even if all rounds agree.
LEAST_WAIT, LEAST_CPU = 0.01, 0.05


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
    given: Mapping[str, str] = field(default_factory=dict)  # where a setting was given


def choose_reader(found: Mapping[bool, Loading], present: bool) -> Choice:
    """The reader for which the device waits less, or else the cheaper one, or else the present."""
    chosen, why, why_not = present, "no difference: it stays", "no measurable difference"
    for figure, least, better, worse in (
        ("cpu_ms", LEAST_CPU, "it costs less", "it costs more"),
        ("slowdowns", LEAST_WAIT, "the device waits less", "the device waits longer"),
    ):
        for reader in found:
            others, own = (getattr(found[one], figure) for one in (not reader, reader))
            if _exceeds(others, own, least):
                chosen, why, why_not = reader, better, worse
    lost = Alternative(not chosen, str(found[not chosen]), why_not)
    return Choice(READER, chosen, str(found[chosen]), why, (lost,))


def choose_least(setting: str, found: Mapping[int, Loading]) -> Choice:
    """The least number with which the device waits no longer than with the best, but for noise."""
    best = min(sorted(found), key=lambda value: found[value].stall)
    least = found[best].slowdowns
    slower = {value for value in found if _exceeds(found[value].slowdowns, least, LEAST_WAIT)}
    chosen = min(value for value in found if value not in slower)
    lost = tuple(
        Alternative(
            value,
            str(found[value]),
            "the device waits longer" if value in slower else f"gains nothing over {chosen}",
        )
        for value in sorted(found)
        if value != chosen
    )
    why = "the least with which the device waits no longer than with any"
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
    return ""


def candidates(setting: str, config: XTTSConfig, cores: int, utterances: int) -> list[Any]:
    """The values that are tried, in ascending order."""
    present = attrgetter(setting)(config)
    if setting == READER:
        return [False, True]
    if setting == DEPTH:
        return sorted({*DEPTHS, present})
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
