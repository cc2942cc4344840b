"""Levels of speech: loudness, clipping and silence."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.io import SILENCE_PEAK

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

SILENCE_DB = 40.0  # below the loudest block, as in trimming
FULL_SCALE = 1.0 - 2.0**-15
_BLOCK_SECONDS = 0.01
# Quieter waves have flat tops because 16 bits round their samples to the same value.
_LEAST_CLIPPED_PEAK = 0.1
_LEAST_CLIPPED_RUN = 3


@dataclass(frozen=True, slots=True)
class Levels:
    """Loudness, clipping and silence of a signal; NaN where it has none."""

    loudness: float  # dBFS, the RMS of what is not silent
    peak: float  # of a full scale of 1
    clipped: float  # share of samples at full scale, or in a run at the signal's own extreme
    silent: float  # share
    leading_silence: float  # seconds
    trailing_silence: float
    longest_pause: float  # seconds of silence between sounds
    dc_offset: float


def levels(session: "Session") -> dict[str, np.ndarray]:
    """The levels of each sentence, by source."""
    return session.each(measure_levels)


def measure_levels(samples: np.ndarray, rate: int) -> Levels:
    """Measure samples [-1, 1]; 40 dB below the loudest 10 ms, or below -60 dBFS, is silence.

    A silent signal has neither loudness nor pauses, one without samples no levels at all.
    """
    samples = finite(samples)
    if not len(samples):
        return Levels(*[math.nan] * 8)
    return Levels(
        **_sounds_and_pauses(samples, rate),
        peak=float(np.abs(samples).max()),
        clipped=float(_is_clipped(samples).mean()),
        dc_offset=float(samples.mean()),
    )


def finite(samples: np.ndarray) -> np.ndarray:
    """Samples as float64; raise where one is NaN or infinite."""
    samples = np.asarray(samples, np.float64)
    if not np.isfinite(samples).all():
        raise ValueError("the samples hold NaN or infinite values, whose sound cannot be measured")
    return samples


def is_silent(samples: np.ndarray) -> bool:
    """Whether samples [-1, 1] never exceed -60 dBFS."""
    return not len(samples) or bool(np.abs(samples).max() < SILENCE_PEAK)


def _sounds_and_pauses(samples: np.ndarray, rate: int) -> dict[str, float]:
    power = _block_power(samples, max(1, round(rate * _BLOCK_SECONDS)))
    least = max(power.max() * 10.0 ** (-SILENCE_DB / 10.0), SILENCE_PEAK**2)
    sounds = np.flatnonzero(power >= least)
    found = dict.fromkeys(("leading_silence", "trailing_silence", "longest_pause"), math.nan)
    found |= {"silent": 1.0 - len(sounds) / len(power), "loudness": math.nan}
    if len(sounds):
        pauses = np.diff(sounds, prepend=-1, append=len(power)) - 1  # blocks before and after each
        found["loudness"] = 10.0 * math.log10(power[sounds].mean())
        found["leading_silence"] = float(pauses[0]) * _BLOCK_SECONDS
        found["trailing_silence"] = float(pauses[-1]) * _BLOCK_SECONDS
        found["longest_pause"] = float(pauses[1:-1].max(initial=0)) * _BLOCK_SECONDS
    return found


def _block_power(samples: np.ndarray, block: int) -> np.ndarray:
    """The mean square of each block; the last one may be shorter."""
    starts = np.arange(0, len(samples), block)
    sums = np.add.reduceat(np.square(samples), starts)
    return sums / np.minimum(block, len(samples) - starts)


def _is_clipped(samples: np.ndarray) -> np.ndarray:
    """Whether each sample is at full scale, or in a run of the loudest ones."""
    is_clipped = np.abs(samples) >= FULL_SCALE
    for extreme in (samples.max(), samples.min()):
        if abs(extreme) >= _LEAST_CLIPPED_PEAK:
            is_clipped |= _in_runs(samples == extreme)
    return is_clipped


def _in_runs(flags: np.ndarray) -> np.ndarray:
    """Keep the flags that are in a run of at least `_LEAST_CLIPPED_RUN`."""
    run = np.ones(_LEAST_CLIPPED_RUN, np.int64)
    begins = np.convolve(flags, run, "valid") == len(run)
    return np.convolve(begins, run) > 0
