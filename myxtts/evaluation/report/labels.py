"""Placement of labels next to the points of a plot."""

from collections.abc import Sequence

import numpy as np

# Around a point: right first, where readers expect a label.
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
    """Return the centres [labels, 2] of labels of sizes [labels, 2] next to points [labels, 2].

    Each label takes the first place, by distance to its point, that is inside of the area (left,
    bottom, right, top) and covers neither an earlier label nor a point of this radius. The row of
    a label without room is NaN.
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
    """Whether each place [places, 2] has another point within reach on both axes."""
    return (np.abs(tried[:, None] - others[None]) < reach).all(axis=2).any(axis=1)
