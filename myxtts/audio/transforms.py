"""Fourier transforms of real frames: SciPy's where it is installed, else NumPy's, which are slower.

Speaking with an exported voice does without SciPy, which takes as much disk as all else it needs.
"""

from functools import cache
from typing import Any

import numpy as np


def rfft(frames: np.ndarray, n: int | None = None, overwrite: bool = False) -> np.ndarray:
    """Spectra [..., bins] of frames [..., samples], which may be lost where `overwrite` is set."""
    library = _scipy()
    if library is None:
        return np.fft.rfft(frames, n)
    return library.rfft(frames, n, axis=-1, overwrite_x=overwrite)


def irfft(spectra: np.ndarray, n: int) -> np.ndarray:
    """Frames [..., n] of spectra [..., bins]."""
    library = _scipy()
    return np.fft.irfft(spectra, n) if library is None else library.irfft(spectra, n, axis=-1)


def fast_length(least: int) -> int:
    """The next length whose transform is fast."""
    library = _scipy()
    return 1 << (least - 1).bit_length() if library is None else library.next_fast_len(least, True)


@cache
def _scipy() -> Any:
    # Imported when the first frame is transformed: most sentences are spoken without one.
    try:
        import scipy.fft
    except ImportError:
        return None
    return scipy.fft
