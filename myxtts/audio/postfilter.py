"""A post-filter that sharpens predicted mels: it restores the modulation that averaging removes.

A model that is trained by an L1 loss predicts too little of what moves fast, over time and over
frequency. The gains say how much: the modulation spectrum of recordings over that of the mels that
the model predicts along their true alignments. (Takamichi et al., "Postfilters to modify the
modulation spectrum for statistical parametric speech synthesis", 2016.)
"""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

WINDOW, HOP = 32, 8  # frames: .37 s and .09 s
BINS = WINDOW // 2 + 1
# Beyond that there is next to nothing to be amplified but the errors of the model. The share of the
# logarithm that is restored is a compromise: a real speaker gains from all of it, clean synthetic
# recordings lose.
MOST_LOST, STRENGTH = 3.0, 0.6
MOST_GAIN = MOST_LOST**STRENGTH
SHAPE = np.sqrt(np.hanning(WINDOW + 1)[:-1])[:, None]


def modulation_gains(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The gains [modulation bins, mels] that make predicted mels move more as recorded ones do.

    Each pair is a recorded and a predicted log-mel [frames, mels] of the same frames. A gain is at
    least 1: nothing is smoothed.
    """
    powers = [np.stack([_power(recorded), _power(predicted)]) for recorded, predicted in pairs]
    recorded, predicted = np.sum(powers, axis=0)
    least = np.maximum(recorded, np.finfo(np.float64).tiny) / MOST_LOST**2
    lost = np.maximum(1.0, recorded / np.maximum(predicted, least))
    return (lost ** (STRENGTH / 2)).astype(np.float32)


def sharpen(mel: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """A log-mel [frames, mels] with its modulation amplified; its mean in each band stays."""
    mean = mel.mean(axis=0)
    cepstra = _padded_cepstra(mel - mean)
    amplify = _known_filters(gains.tobytes(), gains.dtype.str, gains.shape)
    windows = np.matmul(_windows(cepstra).swapaxes(0, 1), amplify).swapaxes(0, 1)
    found = np.zeros((len(cepstra) // HOP, HOP, mel.shape[1]))
    for part in range(WINDOW // HOP):
        rows = windows[:, :, part * HOP : (part + 1) * HOP].swapaxes(1, 2)
        found[part : part + len(rows)] += rows
    inner = found.reshape(-1, mel.shape[1])[WINDOW : WINDOW + len(mel)]
    return (inner @ cosines(mel.shape[1]).T + mean).astype(mel.dtype)


def window_filters(gains: np.ndarray) -> np.ndarray:
    """What becomes of a window, as matrices [mels, frames before, frames after].

    They transform, amplify, transform back and shape. Every frame has so many windows, whose
    squared shapes add up to the same everywhere.
    """
    spectra = np.fft.rfft(np.eye(WINDOW) * SHAPE, axis=1)  # of each frame of a window
    amplified = np.fft.irfft(spectra[None] * gains.T[:, None, :], WINDOW, axis=2)
    return amplified * SHAPE[:, 0] / (np.square(SHAPE).sum() / HOP)


@lru_cache(maxsize=4)
def _known_filters(gains: bytes, kind: str, shape: tuple[int, int]) -> np.ndarray:
    return window_filters(np.frombuffer(gains, kind).reshape(shape))


@lru_cache(maxsize=4)
def cosines(mels: int) -> np.ndarray:
    """The orthonormal cosine transform [mels, cepstra]; its transpose is the way back."""
    at, order = np.arange(mels) + 0.5, np.arange(mels)
    table = np.cos(np.pi / mels * at[:, None] * order) * np.sqrt(2.0 / mels)
    table[:, 0] *= np.sqrt(0.5)
    return table


def _power(mel: np.ndarray) -> np.ndarray:
    """The power [modulation bins, mels] of all windows of a mel, without its mean."""
    windows = _windows(_padded_cepstra(mel - mel.mean(axis=0)))
    spectra = np.fft.rfft(windows.swapaxes(1, 2) * SHAPE, axis=1)
    return np.square(np.abs(spectra)).sum(axis=0)


def _padded_cepstra(mel: np.ndarray) -> np.ndarray:
    """Cepstra [frames, cepstra]; the first and the last are repeated, to have windows around."""
    behind = WINDOW + -len(mel) % HOP
    padded = np.pad(mel.astype(np.float64), ((WINDOW, behind), (0, 0)), mode="edge")
    return padded @ cosines(mel.shape[1])


def _windows(cepstra: np.ndarray) -> np.ndarray:
    """All windows [windows, cepstra, frames] of cepstra."""
    return np.lib.stride_tricks.sliding_window_view(cepstra, WINDOW, axis=0)[::HOP]
