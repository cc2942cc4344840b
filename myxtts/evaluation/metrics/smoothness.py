"""Over-smoothing: how much a mel varies over time, over bands and in its modulation spectrum.

A model that is trained with an L1 loss predicts the median of what could be said. It varies less
than any recording. All figures are powers of natural logarithms of the mel, so a mel with half the
deviation from its mean has a quarter of them.
"""

import math

import numpy as np

from myxtts.evaluation.metrics.frames import Frames

LEAST_LOUD = 10  # frames
MODULATION_HZ = (4.0, 32.0)  # from syllables to the edges of sounds
SEGMENT = 64  # frames, .74 s at 86 Hz, which resolves 1.3 Hz
_STEP = SEGMENT // 4
_LEAST_LOUD_SHARE = 0.75  # of a segment, so that pauses do not decide


def mel_variance(frames: Frames) -> float:
    """The variance over time of each mel band, in loud frames; the mean over bands."""
    loud = _loud(frames)
    return float(loud.var(axis=0).mean()) if len(loud) else math.nan


def spectral_detail(frames: Frames) -> float:
    """The variance of differences between neighbouring bands; the mean over loud frames."""
    loud = _loud(frames)
    return float(np.diff(loud, axis=1).var(axis=1).mean()) if len(loud) else math.nan


def modulation(frames: Frames) -> float:
    """The power at which mel bands are modulated with 4 to 32 Hz: the mean of its logarithm.

    It is a geometric mean over modulation frequencies: the power falls steeply with the frequency,
    and a sum would be that of the lowest ones.
    """
    hertz, power = modulation_spectrum(frames)
    power = power[(hertz >= MODULATION_HZ[0]) & (hertz <= MODULATION_HZ[1])]
    if not len(power) or not power.all():
        return math.nan
    return float(np.exp(np.log(power).mean()))


def modulation_spectrum(frames: Frames) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies in Hz and the power [frequencies] of mel bands over time, by Welch's method.

    It is the mean over bands and over segments most of which is loud. It is empty without any.
    """
    starts = np.arange(0, len(frames.mel) - SEGMENT + 1, _STEP)
    is_loud = [frames.is_loud[at : at + SEGMENT].mean() >= _LEAST_LOUD_SHARE for at in starts]
    starts = starts[np.array(is_loud, bool)]
    if not len(starts):
        return np.zeros(0), np.zeros(0)
    segments = np.stack([frames.mel[at : at + SEGMENT] for at in starts])
    segments -= segments.mean(axis=1, keepdims=True)
    window = np.hanning(SEGMENT + 1)[:-1, np.newaxis]
    spectra = np.fft.rfft(segments * window, axis=1)
    power = np.square(np.abs(spectra)).mean(axis=(0, 2)) / np.square(window).sum()
    return np.fft.rfftfreq(SEGMENT, 1.0 / frames.rate), power


def _loud(frames: Frames) -> np.ndarray:
    """The mel of loud frames [loud, mels]; none where there are too few."""
    loud = frames.mel[frames.is_loud]
    return loud if len(loud) >= LEAST_LOUD else loud[:0]
