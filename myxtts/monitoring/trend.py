"""Whether a loss still falls: the slope of its last values, compared with their noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOO_EARLY, IMPROVES, LEVEL, WORSENS = "too early", "improves", "level", "worsens"
LEAST, MOST = 4, 12  # values that are looked at
LEAST_CHANGE = 0.002  # of the loss, from the first of these values to the last

_OF_SECOND_DIFFERENCES = 6.0  # their variance, where that of the values is 1
# Two-sided 95 % quantiles of Student's t for 2 to 10 degrees of freedom.
_T = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)

_SENTENCES = {
    TOO_EARLY: "It is too early to say whether it improves: {count} of {least} validations.",
    IMPROVES: "It still improves: the loss fell by {percent:.1f} % over the last {count} "
    "validations. Training longer helps.",
    LEVEL: "It hardly improves any more: over the last {count} validations the loss changed by "
    "no more than its noise. Listen, and stop when you like it.",
    WORSENS: "It becomes worse on sentences that it was not trained on: the loss rose by "
    "{percent:.1f} % over the last {count} validations. More recordings help; the best voice is "
    "kept.",
}


@dataclass(frozen=True, slots=True)
class Trend:
    """What the last values of a loss do; `change` is relative to the first of them."""

    kind: str
    count: int
    change: float = 0.0

    @property
    def sentence(self) -> str:
        percent = 100 * abs(self.change)
        return _SENTENCES[self.kind].format(count=self.count, least=LEAST, percent=percent)


def trend_of(points: Sequence[tuple[float, float]]) -> Trend:
    """The trend of (step, loss): the least-squares slope of the later half, if beyond its noise.

    The noise is that of second differences: a loss that falls ever more slowly is no noise.
    """
    known = [(step, loss) for step, loss in points if math.isfinite(loss)]
    if len(known) < LEAST:
        return Trend(TOO_EARLY, len(known))
    last = np.array(known[-min(MOST, max(LEAST, len(known) // 2)) :], np.float64)
    steps, losses = last[:, 0] - last[:, 0].mean(), last[:, 1]
    count, spread = len(last), float(steps @ steps)
    slope = float(steps @ losses) / spread if spread else 0.0
    noise = float(np.mean(np.diff(losses, 2) ** 2)) / _OF_SECOND_DIFFERENCES
    error = math.sqrt(noise / spread) if spread else math.inf
    fitted = float(losses.mean() + slope * steps[0])
    change = slope * float(steps[-1] - steps[0]) / max(abs(fitted), 1e-12)
    if abs(slope) <= _T[min(count - 2, 10) - 2] * error or abs(change) < LEAST_CHANGE:
        return Trend(LEVEL, count, change)
    return Trend(IMPROVES if slope < 0 else WORSENS, count, change)
