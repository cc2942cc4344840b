"""Log-mel to waveform without a trained vocoder: fast Griffin-Lim in NumPy, in float32.

A step takes the spectrum of the waveform so far, keeps its phases, puts the wanted magnitudes in
their place and goes back. The fast variant (Perraudin, Balazs and Søndergaard, 2013) overshoots
along the last change by `momentum`. Frames, window and reflected ends are those of `audio.mel`.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from myxtts.audio.mel import edge_padding, hann_window, mel_filterbank
from myxtts.audio.transforms import irfft, rfft
from myxtts.config.audio_spec import AudioSpec

ITERATIONS = 32
MOMENTUM = 0.99

_INVERSION_STEPS = 10
_TINY = np.float32(1e-12)
# The work of a step on 64 frames stays in a core's L2 cache, as in `audio.mel`.
_BLOCK_FRAMES = 64


def griffin_lim(
    mel: np.ndarray,
    spec: AudioSpec,
    seed: int = 0,
    iterations: int = ITERATIONS,
    momentum: float = MOMENTUM,
) -> np.ndarray:
    """Return a waveform, float32 [frames * hop_length], for a log-mel [frames, n_mels].

    The seed draws the phases to start from: the same seed gives the same samples.
    """
    if len(mel) == 0:
        return np.zeros(0, np.float32)
    magnitude = linear_magnitude(mel, spec)
    spectrum = magnitude * _random_phases(magnitude.shape, seed)
    samples = _to_samples(spectrum, spec)
    previous = np.zeros_like(spectrum)
    for _ in range(iterations):
        _renew_phases(spectrum, previous, samples, magnitude, spec, momentum)
        samples = _to_samples(spectrum, spec)
    return samples


def linear_magnitude(mel: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """Return magnitudes [frames, used bins], none negative, whose log-mel is the given one.

    Many fit: a band is one number and many bins. Starting smooth and multiplying by the ratio
    that is still missing (Richardson-Lucy) keeps them smooth across bins, which sounds better
    than the sparse ones of least squares.
    """
    filters, means = _sparse_filters(spec)
    target = np.exp(np.asarray(mel, np.float32)).T
    found = means @ (target / filters.sum(axis=1)[:, None])
    for _ in range(_INVERSION_STEPS):
        found *= means @ (target / np.maximum(filters @ found, _TINY))
    return np.ascontiguousarray(found.T)


@lru_cache(maxsize=8)
def _sparse_filters(spec: AudioSpec) -> Any:
    """Return the mel filters [n_mels, used bins], and the shares of the bands in a bin, turned.

    A bin belongs to two bands at most, so sparse products do a fortieth of the work, without the
    threads of BLAS. Above `fmax` the magnitude is zero, and bins without a filter are skipped.
    """
    filters = mel_filterbank(spec)
    filters = filters[:, : int(np.flatnonzero(filters.any(axis=0))[-1]) + 1]
    shares = filters / np.maximum(filters.sum(axis=0), _TINY)
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return filters, np.ascontiguousarray(shares.T)
    return csr_array(filters), csr_array(shares.T)


def _random_phases(shape: tuple[int, ...], seed: int) -> np.ndarray:
    angles = np.random.default_rng(seed).random(shape, np.float32) * np.float32(2.0 * np.pi)
    return np.cos(angles) + np.complex64(1j) * np.sin(angles)


def _renew_phases(
    spectrum: np.ndarray,
    previous: np.ndarray,
    samples: np.ndarray,
    magnitude: np.ndarray,
    spec: AudioSpec,
    momentum: float,
) -> None:
    """Fill `spectrum` with the magnitudes in the phases of the samples, pushed on by momentum.

    `previous` is the spectrum of the samples of the step before, and becomes that of this one.
    """
    bins = magnitude.shape[1]
    push = np.float32(momentum / (1.0 + momentum))
    padded = np.pad(samples, edge_padding(spec), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, spec.n_fft)[:: spec.hop_length]
    for rows in _blocks(len(spectrum)):
        now = rfft(frames[rows] * hann_window(spec), overwrite=True)[:, :bins]
        pushed = np.multiply(previous[rows], -push, out=previous[rows])
        pushed += now
        scale = np.maximum(np.abs(pushed), _TINY)
        np.divide(magnitude[rows], scale, out=scale)
        np.multiply(pushed, scale, out=spectrum[rows])
        previous[rows] = now


def _to_samples(spectrum: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """Overlap and add the windowed frames of a spectrum, and cut the reflected ends off."""
    count, hop = len(spectrum), spec.hop_length
    parts = -(-spec.n_fft // hop)  # how many hops a frame spans
    total = np.zeros((count + parts - 1, hop), np.float32)
    window = hann_window(spec)
    wide = np.zeros((_BLOCK_FRAMES, parts * hop), np.float32)
    for rows in _blocks(count):
        size = rows.stop - rows.start
        frames = irfft(spectrum[rows], spec.n_fft)
        np.multiply(frames, window, out=wide[:size, : spec.n_fft])
        hops = wide[:size].reshape(size, parts, hop)
        for part in range(parts):
            total[rows.start + part : rows.stop + part] += hops[:, part]
    padding = edge_padding(spec)
    kept = slice(padding, padding + count * hop)
    return total.reshape(-1)[kept] / _window_power(count, spec)[kept]


@lru_cache(maxsize=8)
def _window_power(count: int, spec: AudioSpec) -> np.ndarray:
    """Return the sum of the squared windows over each sample of so many frames."""
    power = np.zeros((count - 1) * spec.hop_length + spec.n_fft, np.float32)
    square = np.square(hann_window(spec))
    for start in range(0, count * spec.hop_length, spec.hop_length):
        power[start : start + spec.n_fft] += square
    return np.maximum(power, _TINY)


def _blocks(count: int) -> list[slice]:
    starts = range(0, count, _BLOCK_FRAMES)
    return [slice(start, min(start + _BLOCK_FRAMES, count)) for start in starts]
