"""From the times of steps to a verdict: what holds training up, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The share of a step that is spent waiting for data.
NOT_INPUT_BOUND, HIGHLY_INPUT_BOUND = 0.05, 0.20
# The time that a batch keeps the step waiting.
GOOD_MS, MODERATE_MS = 100.0, 500.0


@dataclass(frozen=True)
class Times:
    """How some milliseconds are distributed."""

    mean: float
    median: float
    p99: float

    def __str__(self) -> str:
        return f"mean {self.mean:.1f} ms, median {self.median:.1f} ms, p99 {self.p99:.1f} ms"


def performance_report(data_ms: Sequence[float], compute_ms: Sequence[float]) -> str:
    """Describe the times of equally many steps, at least one, and judge them."""
    data, compute = distribution(data_ms), distribution(compute_ms)
    share = waiting_share(data.mean, compute.mean)
    return "\n".join(
        (
            f"Performance over {len(data_ms):,} steps:",
            f"  data:    {data}",
            f"  compute: {compute}",
            f"  waiting: {100 * share:.1f} % of the step; loading is {loading_grade(data.mean)}",
            f"  {verdict(data.mean, compute.mean)}",
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


def verdict(data_ms: float, compute_ms: float) -> str:
    """Name the bottleneck of steps that take so long on average, and the remedy."""
    share = waiting_share(data_ms, compute_ms)
    waits = f"{100 * share:.1f} % of the step waits for data"
    if share < NOT_INPUT_BOUND:
        return (
            f"Not input-bound, {waits}: the bottleneck is compute ({compute_ms:.1f} ms a step), "
            "which a smaller model, mixed precision or a faster device shortens."
        )
    if share <= HIGHLY_INPUT_BOUND:
        return (
            f"Moderately input-bound, {waits}: the bottleneck is still compute, but loading "
            f"({data_ms:.1f} ms a batch) costs time; raise the prefetch buffer "
            "(--prefetch-buffer-size), or keep the cache in memory (--memory-cache)."
        )
    return (
        f"Highly input-bound, {waits}: the bottleneck is loading ({data_ms:.1f} ms a batch); "
        "prepare all features first (--preprocessing-mode precompute), keep them on a faster disk "
        "(--cache-dir) or in memory (--memory-cache), and stop what else uses the CPU."
    )
