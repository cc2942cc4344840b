"""Loss components in the log: their weights at the start, and their means after each epoch."""

import logging
from collections.abc import Mapping

from myxtts.training.loop import Listener, StepRecord

logger = logging.getLogger(__name__)

WEIGHTED = "weighted/"
# Shown first, in this order; the other terms follow as they come.
LEADING = ("mel_loss", "stop_loss", "voice_similarity_loss")


class LogHook(Listener):
    """Logs the loss weights at the start, and each epoch's mean losses, raw and weighted."""

    def __init__(self, weights: Mapping[str, float]):
        self.weights = dict(weights)
        self._means = Means()

    def start(self, step: int) -> None:
        logger.info("Loss weights: %s", listed(self.weights))
        self._means = Means()

    def after_step(self, record: StepRecord) -> None:
        self._means.add(record.metrics)

    def after_epoch(self, epoch: int, step: int) -> None:
        means, self._means = self._means.values(), Means()
        raw = {name: value for name, value in means.items() if name.endswith("_loss")}
        weighted = {
            name.removeprefix(WEIGHTED): raw.pop(name)
            for name in list(raw)
            if name.startswith(WEIGHTED)
        }
        if raw:
            logger.info("Train loss components: %s", listed(raw))
        if weighted:
            total = f", loss={means['loss']:.4g}" if "loss" in means else ""
            logger.info("Train loss components, weighted: %s%s", listed(weighted), total)


class Means:
    """The running mean of each metric over the steps that had it."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def values(self) -> dict[str, float]:
        return {name: total / self._counts[name] for name, total in self._sums.items()}


def listed(values: Mapping[str, float]) -> str:
    names = [*(name for name in LEADING if name in values), *values]
    return ", ".join(f"{name}={values[name]:.4g}" for name in dict.fromkeys(names))
