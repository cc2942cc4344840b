"""Plots of a voice's speakers: the plane of their embeddings, and their style weights."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from myxtts.evaluation.report.labels import place_labels
from myxtts.evaluation.report.plots import BLUE, GREY, ORANGE, new_figure, save_figure

# With more bars than this, a map of colours is easier to read.
_READABLE_BARS, _READABLE_PANELS = 16, 20
_READABLE_COLUMNS = 100
_READABLE_NAMES = 150
# A difference below this share of the vectors' length is rounding, and has no direction.
_ROUNDING = 1e-6
# Distances of a name from its point and the point's radius, in pixels; a line leads to far names.
_DISTANCES, _RADIUS = (5, 14, 26, 40), 3.5


def principal_plane(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors [n, dim] on the two axes of most variance [n, 2], and its shares [2].

    The point farthest out on an axis is on its positive side, so that the same vectors always give
    the same plot.
    """
    points, lengths, _ = np.linalg.svd(_centred(vectors), full_matrices=False)
    points = points[:, :2] * lengths[:2]
    farthest = points[np.abs(points).argmax(axis=0), [0, 1]]
    total = np.sum(lengths**2)
    shares = lengths[:2] ** 2 / total if total else np.zeros(2)
    return points * np.where(farthest < 0, -1.0, 1.0), shares


def nearest_others(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the nearest other vector [n] for vectors [n, dim], and the cosine [n].

    More than two vectors are centred first: speakers have much in common, so all cosines would be
    similar. A vector equal to the mean has no direction, and a cosine of 0 to all others.
    """
    if len(vectors) < 2:
        raise ValueError(f"{len(vectors)} vectors have no others to be near to")
    directions = _directions(vectors)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines.argmax(axis=1)
    return nearest, np.clip(cosines.max(axis=1), -1.0, 1.0)


def write_voices(path: Path, names: Sequence[str], vectors: np.ndarray) -> Path:
    """Draw the speakers' vectors [speakers, dim] as points of a plane, with their names."""
    width = min(7 + 0.045 * len(names), 14)
    figure = new_figure(width, 0.75 * width)
    draw_voices(figure.subplots(), names, vectors)
    return save_figure(figure, path)


def write_styles(path: Path, names: Sequence[str], weights: np.ndarray) -> Path:
    """Draw how much each speaker attends to each token: weights [speakers, heads, tokens]."""
    speakers, _, tokens = weights.shape
    if speakers <= _READABLE_BARS and tokens <= _READABLE_PANELS:
        figure = _style_bars(names, weights)
    else:
        figure = _style_maps(names, weights)
    figure.suptitle("How much each speaker attends to each style token")
    return save_figure(figure, path)


def draw_voices(axes, names: Sequence[str], vectors: np.ndarray) -> None:
    """Draw the plane, and as many names as fit."""
    points, shares = principal_plane(vectors)
    axes.scatter(*points.T, s=12, color=BLUE, zorder=3)
    axes.set(
        xlabel=f"first axis: {shares[0]:.0%} of the variance",
        ylabel=f"second axis: {shares[1]:.0%} of the variance",
        title=f"How the {len(names)} voices differ",
    )
    axes.grid(alpha=0.25)
    axes.margins(0.1)
    # Equal distances on both axes are equal differences.
    axes.set_aspect("equal", adjustable="datalim")
    unnamed = _name_points(axes, names, points)
    if unnamed:
        axes.set_title(f"{axes.get_title()} (names without room: {unnamed})")


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Centre more than two vectors, and scale them to length 1, or to 0 if they are rounding."""
    given = np.asarray(vectors, np.float64)
    centred = _centred(given) if len(given) > 2 else given
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    is_noise = lengths <= _ROUNDING * np.linalg.norm(given, axis=1).max()
    return np.where(is_noise, 0.0, centred / np.where(is_noise, 1.0, lengths))


def _centred(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, np.float64)
    return vectors - vectors.mean(axis=0)


def _name_points(axes, names: Sequence[str], points: np.ndarray) -> int:
    """Write the names next to their points; return how many do not fit."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    style = {"fontsize": 8 if len(names) <= 40 else 7 if len(names) <= 80 else 6}
    style |= {"parse_math": False, "ha": "center", "va": "center"}  # a name may have a "$"
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    axes.figure.draw_without_rendering()  # settles the layout, and with it where points are
    at = axes.transData.transform(points)
    sizes = np.array([_measure(axes.text(0, 0, name, **style), renderer) for name in names])
    middles = place_labels(at, sizes, axes.bbox.extents, _DISTANCES, _RADIUS)
    for name, point, offset, size in zip(names, points, middles - at, sizes, strict=True):
        if np.isfinite(offset).all():
            is_far = (np.abs(offset) > size / 2 + _DISTANCES[0]).any()
            axes.annotate(
                name,
                point,
                offset * 72 / axes.figure.dpi,
                textcoords="offset points",
                arrowprops=dict(arrowstyle="-", color=GREY, lw=0.5) if is_far else None,
                **style,
            )
    return int(np.isnan(middles).any(axis=1).sum())


def _measure(text, renderer) -> tuple[float, float]:
    """Return the width and height of a text in pixels, and remove it."""
    size = text.get_window_extent(renderer).size
    text.remove()
    return size


def _style_bars(names: Sequence[str], weights: np.ndarray):
    """One panel per token: a bar per speaker, the mean of its heads, and a dot per head."""
    speakers, heads, tokens = weights.shape
    columns = min(tokens, 5)
    rows = math.ceil(tokens / columns)
    figure = new_figure(2 + 1.8 * columns, 0.6 + rows * (0.9 + 0.2 * speakers))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    places = np.arange(speakers)
    for token, axes in enumerate(panels):
        if token >= tokens:
            axes.remove()
            continue
        axes.set_title(f"token {token}", fontsize=9)
        axes.barh(places, weights[:, :, token].mean(axis=1), color=BLUE)
        for head in range(heads if heads > 1 else 0):
            axes.plot(weights[:, head, token], places, ".", color=ORANGE, ms=4)
        axes.axvline(1 / tokens, color=GREY, ls="--", lw=0.8)
        axes.set_yticks(places, names, fontsize=8, parse_math=False)
    panels[0].set(xlim=(0, None), ylim=(speakers - 0.5, -0.5))
    dots = "; dots: each head" if heads > 1 else ""
    figure.supxlabel(f"weight{dots}; dashed: all tokens alike", fontsize=9)
    return figure


def _style_maps(names: Sequence[str], weights: np.ndarray):
    """Speakers from top to bottom, tokens from left to right: the mean of heads, and each head."""
    speakers, heads, tokens = weights.shape
    maps = {"mean of heads" if heads > 1 else "": weights.mean(axis=1)}
    if 1 < heads <= _READABLE_COLUMNS // tokens - 1:
        maps |= {f"head {head}": weights[:, head] for head in range(heads)}
    figure = new_figure(2.5 + 0.16 * tokens * len(maps), 1.5 + min(0.13 * speakers, 20))
    panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    highest = max(values.max() for values in maps.values())
    for axes, (title, values) in zip(panels, maps.items(), strict=True):
        image = axes.imshow(
            values, aspect="auto", cmap="Blues", interpolation="nearest", vmin=0, vmax=highest
        )
        axes.set_title(title, fontsize=9)
        axes.set_xticks(np.arange(0, tokens, math.ceil(tokens / 25)))
        axes.tick_params(axis="x", labelsize=7)
        axes.set_xlabel("token", fontsize=8)
    places = np.arange(0, speakers, math.ceil(speakers / _READABLE_NAMES))
    panels[0].set_yticks(places, [names[at] for at in places], fontsize=7, parse_math=False)
    figure.colorbar(image, ax=list(panels), label="weight", fraction=0.03)
    return figure
