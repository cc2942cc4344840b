"""Fundamental frequency per mel frame, from the magnitudes of the mel's own frames, in two twins.

The magnitudes up to 1.8 kHz, turned back into a function of the lag by cosines, are the
autocorrelation of a frame whose spectrum was compressed by a square root, so that no formant
outweighs the harmonics. Divided by that of the window it is r(lag), and d(lag) = 1 - r(lag) takes
the place of YIN's difference function (de Cheveigné and Kawahara, 2002): a frame is voiced where
d falls below `VOICED_BELOW` times its mean over the shorter lags. All of this is linear in the
magnitudes, so one product of a frame with a table scores every lag.

Of the peaks of the score the first is taken that is nearly as high as the highest, and a parabola
through r refines it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from myxtts.audio.mel import (
    frame_products,
    hann_window,
    mask_frames_tf,
    mel_and_energy,
    mel_and_energy_tf,
    mel_energy_and_product,
    mel_energy_and_product_tf,
    product_tf,
    used_bins,
)
from myxtts.config.audio_spec import AudioSpec

if TYPE_CHECKING:
    import tensorflow as tf


VOICED_BELOW = 0.6
# A peak may be this much lower than the highest and still win, so that of a period and its
# multiples, whose peaks are all equally high, the period itself is taken.
_HEIGHT_MARGIN = 0.08
# Frames between so many of the longest periods tell them apart and do not blur the pitch.
_PERIODS = (2.7, 6.0)
# Full weight up to the first frequency, none from the second one on, in Hz.
_ROLL_OFF = (1000.0, 1800.0)
# Below this lag, in seconds, every second lag at this rate is not enough.
_FINE_LAGS = 80 / 22050
_LAG_RATE = 11025
# The refined lag stays within this share of the best one.
_REFINED_BY = 0.04
_SILENCE_RMS = 1e-4


def pitch(
    samples: np.ndarray, spec: AudioSpec, fmin: float = 65.0, fmax: float = 600.0
) -> np.ndarray:
    """Return F0 in Hz per mel frame, float32 [frames], 0 where unvoiced."""
    plan = _plan(spec, fmin, fmax)
    (scores,) = frame_products(samples, plan.spec, (plan.table,))
    return _best(scores, plan)


def mel_energy_and_pitch(
    samples: np.ndarray, spec: AudioSpec, fmin: float = 65.0, fmax: float = 600.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the log-mel [frames, n_mels], the energy [frames] and F0 [frames], from one pass."""
    plan = _plan(spec, fmin, fmax)
    if plan.spec != spec:
        return *mel_and_energy(samples, spec), pitch(samples, spec, fmin, fmax)
    mel, energy, scores = mel_energy_and_product(samples, spec, plan.table)
    return mel, energy, _best(scores, plan)


def pitch_tf(
    samples: "tf.Tensor",
    lengths: "tf.Tensor | None",
    spec: AudioSpec,
    fmin: float = 65.0,
    fmax: float = 600.0,
) -> "tf.Tensor":
    """Return F0 [batch, frames] of padded signals [batch, samples], 0 where unvoiced.

    `lengths` [batch] are the true lengths, or None. Padding never changes a frame, and frames past
    a row's own count are 0.
    """
    plan = _plan(spec, fmin, fmax)
    scores, counts = product_tf(samples, plan.spec, lengths, plan.table)
    return mask_frames_tf(_best_tf(scores, plan), counts)


def mel_energy_and_pitch_tf(
    samples: "tf.Tensor",
    lengths: "tf.Tensor | None",
    spec: AudioSpec,
    fmin: float = 65.0,
    fmax: float = 600.0,
) -> "tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]":
    """Return log-mels, energies and F0 of padded signals from one pass, and the frame counts."""
    plan = _plan(spec, fmin, fmax)
    if plan.spec != spec:
        mel, energy, counts = mel_and_energy_tf(samples, spec, lengths)
        return mel, energy, pitch_tf(samples, lengths, spec, fmin, fmax), counts
    mel, energy, counts, scores = mel_energy_and_product_tf(samples, spec, lengths, plan.table)
    return mel, energy, mask_frames_tf(_best_tf(scores, plan), counts), counts


class _Plan(NamedTuple):
    """Everything derived from the spec and the range of F0; lags are in samples."""

    spec: AudioSpec  # of the frames: the mel's own, where these are neither too short nor too long
    table: np.ndarray  # [bins, 2 * lags + 1]: the score of each lag, r of each, and r(0)
    lags: int  # how many
    inner: tuple[np.ndarray, ...]  # all lags but the outer two, how far the one before, and after
    least: float  # r(0) of what is no silence


@lru_cache(maxsize=8)
def _plan(spec: AudioSpec, fmin: float, fmax: float) -> _Plan:
    if not 0 < fmin < fmax <= spec.sample_rate / 2:
        raise ValueError(f"no F0 range between fmin={fmin} and fmax={fmax} in {spec}")
    spec = _analysed(spec, fmin)
    lags = _lags(spec.sample_rate, fmin, fmax)
    weight = _bin_weights(spec)
    window = np.abs(np.fft.rfft(hann_window(spec).astype(np.float64)))
    score = _correlation(spec, weight, lags, np.square(window))
    score += VOICED_BELOW * _mean_difference(spec, weight, lags, np.square(window))
    refined = _correlation(spec, weight, lags, window)
    table = np.concatenate([score - weight[:, None], refined, weight[:, None]], axis=1)
    least = 2.0 * np.sqrt(2.0) * _SILENCE_RMS * float(hann_window(spec).sum())
    steps = np.diff(lags)
    inner = tuple(some.astype(np.float32) for some in (lags[1:-1], steps[:-1], steps[1:]))
    return _Plan(spec, table.astype(np.float32), len(lags), inner, least)


def _analysed(spec: AudioSpec, fmin: float) -> AudioSpec:
    """Return the spec whose frames are analysed; other than the mel's have the same centres."""
    periods = spec.win_length / spec.sample_rate * fmin
    bins = _roll_off_bins(spec)
    if _PERIODS[0] <= periods <= _PERIODS[1] and bins <= used_bins(spec):
        return spec
    size = 2 ** int(np.ceil(np.log2(max(3.0 * spec.sample_rate / fmin, spec.hop_length))))
    return replace(spec, n_fft=size, win_length=size)


def _lags(rate: int, fmin: float, fmax: float) -> np.ndarray:
    """Return all lags between the shortest and the longest period, and one more at each end."""
    step = max(1.0, rate / _LAG_RATE)
    first, last = rate / fmax - step, rate / fmin
    fine = np.arange(first, max(_FINE_LAGS * rate + step, first + 1.5 * step), step)
    return np.concatenate([fine, np.arange(fine[-1] + 2 * step, last + 4 * step, 2 * step)])


def _roll_off_bins(spec: AudioSpec) -> int:
    return min(int(_ROLL_OFF[1] * spec.n_fft / spec.sample_rate), spec.n_fft // 2) + 1


def _bin_weights(spec: AudioSpec) -> np.ndarray:
    """Return how much each bin counts, [bins]: each for itself and for its negative frequency.

    A constant offset, as wide as the window makes it, does not count.
    """
    bins = np.arange(_roll_off_bins(spec))
    low, high = _ROLL_OFF
    beyond = np.clip((bins * spec.sample_rate / spec.n_fft - low) / (high - low), 0.0, 1.0)
    weight = 1.0 + np.cos(np.pi * beyond)
    weight[: round(2 * spec.n_fft / spec.win_length)] = 0.0
    return weight


def _correlation(
    spec: AudioSpec, weight: np.ndarray, lags: np.ndarray, window: np.ndarray
) -> np.ndarray:
    """Return what each bin adds to r at each lag, [bins, lags].

    `window` [n_fft // 2 + 1] is the spectrum by whose transform the lags are divided.
    """
    cosines = np.cos(2.0 * np.pi / spec.n_fft * np.outer(np.arange(len(window)), lags))
    sides = np.full(len(window), 2.0)
    sides[0] = sides[-1] = 1.0
    of_window = (sides * window) @ cosines / np.sum(sides * window)
    return weight[:, None] * cosines[: len(weight)] / of_window


def _mean_difference(
    spec: AudioSpec, weight: np.ndarray, lags: np.ndarray, window: np.ndarray
) -> np.ndarray:
    """Return what each bin adds to the mean of r(0) - r over the shorter lags, [bins, lags]."""
    every = np.arange(1.0, lags[-1] + 1.0)
    difference = weight[:, None] - _correlation(spec, weight, every, window)
    mean = np.cumsum(difference, axis=1) / every
    return np.stack([np.interp(lags, every, row) for row in mean])


def _best(scores: np.ndarray, plan: _Plan) -> np.ndarray:
    """Return F0 [frames] of scores [frames, 2 * lags + 1]."""
    count = plan.lags
    score, power = scores[:, :count], scores[:, -1]
    inner = score[:, 1:-1]
    rows = np.arange(len(scores))
    highest = inner[rows, inner.argmax(axis=1)]  # a third of the time of max()
    limit = highest - _HEIGHT_MARGIN * power
    rises = score[:, 1:] >= score[:, :-1]
    is_peak = rises[:, :-1] > rises[:, 1:]
    is_peak &= inner > limit[:, None]
    first = is_peak.argmax(axis=1)
    at = rows * scores.shape[1] + count + first
    flat = scores.reshape(-1)
    values = [flat[at + offset] for offset in range(3)]
    lag = _refined(values, [some[first] for some in plan.inner], _clip)
    is_voiced = is_peak[rows, first] & (highest > 0.0) & (power > plan.least)
    return np.where(is_voiced, np.float32(plan.spec.sample_rate) / lag, np.float32(0.0))


def _best_tf(scores: "tf.Tensor", plan: _Plan) -> "tf.Tensor":
    """Return F0 [batch, frames] of scores [batch, frames, 2 * lags + 1]."""
    import tensorflow as tf

    count = plan.lags
    score, power = scores[..., :count], scores[..., -1]
    inner = score[..., 1:-1]
    highest = tf.reduce_max(inner, axis=-1)
    limit = highest - _HEIGHT_MARGIN * power
    rises = score[..., 1:] >= score[..., :-1]
    is_peak = rises[..., :-1] & ~rises[..., 1:] & (inner > limit[..., None])
    first = tf.argmax(tf.cast(is_peak, tf.int8), axis=-1, output_type=tf.int32)
    shape = tf.shape(scores)
    rows = tf.reshape(tf.range(shape[0] * shape[1]), shape[:2])
    at, flat = rows * shape[2] + count + first, tf.reshape(scores, [-1])
    values = [tf.gather(flat, at + offset) for offset in range(3)]
    around = [tf.gather(some, first) for some in plan.inner]
    lag = _refined(values, around, tf.clip_by_value)
    is_voiced = tf.reduce_any(is_peak, axis=-1) & (highest > 0.0) & (power > plan.least)
    return tf.where(is_voiced, plan.spec.sample_rate / lag, 0.0)


def _clip(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    return np.minimum(np.maximum(values, low), high)  # `np.clip` itself takes longer


def _refined(values: Sequence, around: Sequence, clip: Callable) -> Any:
    """Return the lag where a parabola through three values is highest, in either twin's arrays."""
    before, here, after = values
    lag, left, right = around
    rise, fall = (here - before) / left, (here - after) / right
    bend = clip((rise + fall) / (left + right), 1e-9, np.inf)
    shift = 0.5 * (rise * right - fall * left) / (left + right) / bend
    return lag + clip(shift, -_REFINED_BY * lag, _REFINED_BY * lag)
