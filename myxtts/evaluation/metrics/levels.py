"""How loud, clipped and silent speech is."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.io import SILENCE_PEAK

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

SILENCE_DB = 40.0  # below the loudest block, as where silence is trimmed
FULL_SCALE = 1.0 - 2.0**-15
_BLOCK_SECONDS = 0.01
# Quieter waves are flat at the top because 16 bits cannot tell their samples apart.
_LEAST_CLIPPED_PEAK = 0.1
_LEAST_CLIPPED_RUN = 3


@dataclass(frozen=True, slots=True)
class Levels:
    """How loud a signal is, and where it is not; NaN where that cannot be told."""

    loudness: float  # dBFS, the RMS of what is not silent
    peak: float  # of a full scale of 1
    clipped: float  # share of samples at full scale, or in a row at the signal's own extreme
    silent: float  # share
    leading_silence: float  # seconds
    trailing_silence: float
    longest_pause: float  # seconds of silence between sounds
    dc_offset: float


def levels(session: "Session", name: str) -> dict[str, np.ndarray]:
    """One figure of the levels of each sentence."""
    found = session.shared(_all_levels)
    return {source: np.array([getattr(one, name) for one in own]) for source, own in found.items()}


def _all_levels(session: "Session") -> "dict[str, list[Levels]]":
    rate = session.sample_rate
    return {
        source: [measure_levels(one, rate) for one in speech]
        for source, speech in session.judged.items()
    }


def measure_levels(samples: np.ndarray, rate: int) -> Levels:
    """Measure samples [-1, 1]: what is 40 dB below the loudest 10 ms, or below -60 dBFS, is silent.

    A signal without a sound has no loudness and no pauses, one without samples nothing at all.
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
    """Samples as float64; NaN and infinite ones raise an error."""
    samples = np.asarray(samples, np.float64)
    if not np.isfinite(samples).all():
        raise ValueError("the samples hold NaN or infinite values, whose sound cannot be measured")
    return samples


def _sounds_and_pauses(samples: np.ndarray, rate: int) -> dict[str, float]:
    power = _block_power(samples, max(1, round(rate * _BLOCK_SECONDS)))
    least = max(power.max() * 10.0 ** (-SILENCE_DB / 10.0), SILENCE_PEAK**2)
    sounds = np.flatnonzero(power >= least)
    found = dict.fromkeys(("leading_silence", "trailing_silence", "longest_pause"), math.nan)
    found |= {"silent": 1.0 - len(sounds) / len(power), "loudness": math.nan}
    if len(sounds):
        pauses = np.diff(sounds, prepend=-1, append=len(power)) - 1  # blocks before each and behind
        found["loudness"] = 10.0 * math.log10(power[sounds].mean())
        found["leading_silence"] = float(pauses[0]) * _BLOCK_SECONDS
        found["trailing_silence"] = float(pauses[-1]) * _BLOCK_SECONDS
        found["longest_pause"] = float(pauses[1:-1].max(initial=0)) * _BLOCK_SECONDS
    return found


def _block_power(samples: np.ndarray, block: int) -> np.ndarray:
    """The mean square of each block, the last one perhaps shorter."""
    starts = np.arange(0, len(samples), block)
    sums = np.add.reduceat(np.square(samples), starts)
    return sums / np.minimum(block, len(samples) - starts)


def _is_clipped(samples: np.ndarray) -> np.ndarray:
    """Tell of each sample whether it is at full scale, or in a row of the loudest ones."""
    is_clipped = np.abs(samples) >= FULL_SCALE
    for extreme in (samples.max(), samples.min()):
        if abs(extreme) >= _LEAST_CLIPPED_PEAK:
            is_clipped |= _in_runs(samples == extreme)
    return is_clipped


def _in_runs(flags: np.ndarray) -> np.ndarray:
    """Keep the flags of which so many are in a row."""
    run = np.ones(_LEAST_CLIPPED_RUN, np.int64)
    begins = np.convolve(flags, run, "valid") == len(run)
    return np.convolve(begins, run) > 0
