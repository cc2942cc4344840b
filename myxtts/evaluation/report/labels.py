"""Where names find room next to the points of a plot."""

from collections.abc import Sequence

import numpy as np

# Around a point: right first, where names are looked for.
_DIRECTIONS = np.array(
    [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)], np.float64
)


def place_labels(
    points: np.ndarray,
    sizes: np.ndarray,
    area: Sequence[float],
    distances: Sequence[float],
    radius: float,
) -> np.ndarray:
    """Return the middles [labels, 2] of labels of sizes [labels, 2] next to points [labels, 2].

    One after the other takes the first place, by the distances to its point, that is inside of the
    area (left, bottom, right, top) and covers neither a label before it nor any point, which has a
    radius. A row of NaN is a label without room.
    """
    middles = np.full(points.shape, np.nan)
    low, high = np.array(area[:2]), np.array(area[2:])
    for index, (point, size) in enumerate(zip(points, sizes, strict=True)):
        half = size / 2
        tried = np.concatenate([point + _DIRECTIONS * (half + distance) for distance in distances])
        inside = ((tried - half >= low) & (tried + half <= high)).all(axis=1)
        covers = _covers(tried, half + radius, points)
        covers |= _covers(tried, half + sizes[:index] / 2, middles[:index])
        if (free := inside & ~covers).any():
            middles[index] = tried[free.argmax()]
    return middles


def _covers(tried: np.ndarray, reach: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell of each place tried [places, 2] whether another is within reach, in both directions."""
    return (np.abs(tried[:, None] - others[None]) < reach).all(axis=2).any(axis=1)
