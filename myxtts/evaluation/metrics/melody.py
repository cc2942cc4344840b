"""Melody and stress: how far F0 and level move, and how fast."""

import math

import numpy as np

from myxtts.evaluation.metrics.frames import Frames, runs

SLOPE_WINDOW = 7  # frames, 81 ms: differences of single frames are mostly jitter of the estimate
FARTHEST = 10.0  # semitones from the median; beyond are errors of an octave
LEAST_VOICED = 20  # frames


def f0_spread(frames: Frames) -> float:
    """The standard deviation of F0 in semitones, in voiced frames."""
    contours = _contours(frames)
    return float(np.concatenate(contours).std()) if contours else math.nan


def f0_dynamics(frames: Frames) -> float:
    """The mean absolute slope of F0 in semitones a second, inside of voiced runs.

    A slope is that of a straight line through `SLOPE_WINDOW` frames.
    """
    slopes = [_slopes(one) for one in _contours(frames)]
    return float(np.abs(np.concatenate(slopes)).mean() * frames.rate) if slopes else math.nan


def energy_spread(frames: Frames) -> float:
    """The standard deviation of the level in dB, in frames that are voiced and loud."""
    level = frames.level[(frames.f0 > 0) & frames.is_loud]
    return float(level.std()) if len(level) >= LEAST_VOICED else math.nan


def _contours(frames: Frames) -> list[np.ndarray]:
    """F0 in semitones [frames] of each voiced run that is long enough for a slope."""
    is_voiced = frames.f0 > 0
    if not is_voiced.any():
        return []
    semitones = np.full(len(frames.f0), np.inf)
    semitones[is_voiced] = 12.0 * np.log2(frames.f0[is_voiced], dtype=np.float64)
    is_near = np.abs(semitones - np.median(semitones[is_voiced])) <= FARTHEST
    found = [semitones[begin:end] for begin, end in runs(is_near, SLOPE_WINDOW)]
    return found if sum(map(len, found)) >= LEAST_VOICED else []


def _slopes(values: np.ndarray) -> np.ndarray:
    """The slopes per frame of the least-squares lines through all windows of values."""
    place = np.arange(SLOPE_WINDOW) - SLOPE_WINDOW // 2
    return np.correlate(values, place, "valid") / np.square(place).sum()
