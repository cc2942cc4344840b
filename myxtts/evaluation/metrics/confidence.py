"""How sure a figure over some sentences is: the interval that other sentences would leave it in."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_DRAWS_AT_ONCE = 1_000_000
# Draws of sentences [rounds, sentences, ...] -> a figure of each [rounds].
Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure between the bounds that it has with some confidence, from so many sentences."""

    low: float
    value: float
    high: float
    sentences: int


def mean(draws: np.ndarray) -> np.ndarray:
    """The mean of a value of each sentence."""
    return draws.mean(axis=1)


def ratio_of_sums(draws: np.ndarray) -> np.ndarray:
    """The sum of what is first over the sum of what is second: of errors over words, the WER."""
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

    Sentences without a value (NaN) do not count. One alone tells nothing of how others would
    do, so its bounds are NaN.
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
    """Yield numbers of sentences [some rounds, count], drawn with repetition."""
    rng = np.random.default_rng(seed)
    some = max(1, _DRAWS_AT_ONCE // count)
    for start in range(0, rounds, some):
        yield rng.integers(count, size=(min(some, rounds - start), count))
