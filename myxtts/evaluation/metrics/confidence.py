"""Confidence intervals of figures over sentences, by bootstrap."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_DRAWS_AT_ONCE = 1_000_000
# Draws of sentences [rounds, sentences, ...] -> a figure per round [rounds].
Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, the bounds of its confidence interval, and the number of sentences."""

    low: float
    value: float
    high: float
    sentences: int


def mean(draws: np.ndarray) -> np.ndarray:
    """The mean over sentences."""
    return draws.mean(axis=1)


def ratio_of_sums(draws: np.ndarray) -> np.ndarray:
    """The sum of the first values over the sum of the second: the WER, of errors and words."""
    sums = draws.sum(axis=1)
    of = sums[:, 1]
    return np.divide(sums[:, 0], of, out=np.full(len(sums), np.nan), where=of != 0)


def interval(
    values: Sequence[float] | Sequence[tuple[float, float]] | np.ndarray,
    statistic: Statistic = mean,
    level: float = 0.95,
    rounds: int = 2000,
    seed: int = 0,
) -> Interval:
    """Bootstrap a statistic of sentences: of values [sentences], or of pairs [sentences, 2].

    Sentences without a value (NaN) do not count. With a single sentence the bounds are NaN.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level of confidence is between 0 and 1, not {level}")
    if rounds < 1:
        raise ValueError(f"a bootstrap takes at least one round, not {rounds}")
    values = np.asarray(values, np.float64)
    values = values[~np.isnan(values).any(axis=tuple(range(1, values.ndim)))]
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, 0)
    value = float(statistic(values[np.newaxis])[0])
    if len(values) == 1:
        return Interval(math.nan, value, math.nan, 1)
    figures = np.concatenate(
        [statistic(values[drawn]) for drawn in _draw(len(values), rounds, seed)]
    )
    low, high = np.quantile(figures, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), value, float(high), len(values))


def _draw(count: int, rounds: int, seed: int) -> Iterator[np.ndarray]:
    """Yield indices of sentences [some rounds, count], drawn with replacement."""
    rng = np.random.default_rng(seed)
    some = max(1, _DRAWS_AT_ONCE // count)
    for start in range(0, rounds, some):
        yield rng.integers(count, size=(min(some, rounds - start), count))
