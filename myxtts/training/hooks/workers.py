"""How the time of several workers compares: which is the slowest, and what it waits for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

# A worker that takes so much longer than the median is named.
NOTABLE = 0.05


@dataclass
class WorkerTimes:
    """The mean times of the steps of every worker, from the metrics that all of them share."""

    count: int
    name: Callable[[int], str]
    _data: np.ndarray = field(init=False)
    _compute: np.ndarray = field(init=False)
    _reduce: float = 0.0
    _steps: int = 0

    def __post_init__(self) -> None:
        self._data, self._compute = np.zeros(self.count), np.zeros(self.count)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Take note of a step; what it says of the workers is of the step before."""
        if "worker/0/compute_ms" not in metrics or not metrics["worker/0/compute_ms"]:
            return  # the first step has none before it
        self._steps += 1
        for rank in range(self.count):
            self._data[rank] += metrics[f"worker/{rank}/data_ms"]
            self._compute[rank] += metrics[f"worker/{rank}/compute_ms"]
        self._reduce += metrics.get("reduce_ms", 0.0)

    def __str__(self) -> str:
        if not self._steps:
            return ""
        data, compute = self._data / self._steps, self._compute / self._steps
        return (
            f"{self.count} workers: computing {_listed(compute)} ms a step, waiting for data "
            f"{_listed(data)} ms, adding up gradients {self._reduce / self._steps:.1f} ms on the "
            f"chief; {self._slowest(data, compute)}"
        )

    def _slowest(self, data: np.ndarray, compute: np.ndarray) -> str:
        taken = data + compute
        worst = int(np.argmax(taken))
        usual = float(np.median(np.delete(taken, worst)))
        share = taken[worst] / max(usual, 1e-9) - 1.0
        if share < NOTABLE:
            return "none holds the others up"
        waits = data[worst] - np.median(data) > compute[worst] - np.median(compute)
        reason = "it waits for data" if waits else "it computes longer"
        return f"{self.name(worst)} holds the others up by {share:.0%}: {reason}"


def _listed(values: np.ndarray) -> str:
    return " / ".join(f"{value:.1f}" for value in values)
