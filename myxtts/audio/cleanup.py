"""Optional cleaning of a recording: silence cut off its ends, and one loudness for all."""

from functools import lru_cache

import numpy as np

PEAK_LIMIT = 0.99

_TRIM_BLOCK_SECONDS = 0.01
_LOUDNESS_BLOCK_SECONDS = 0.4
_LOUDNESS_STEPS_PER_BLOCK = 4
_RESPONSE_SECONDS = 0.2
_USUAL_SIZE = 1 << 19  # samples, of which 8 spectra are 32 MB
_LOUDNESS_OFFSET = -0.691  # makes a 997 Hz sine read its RMS level
_ABSOLUTE_GATE = -70.0
_RELATIVE_GATE = -10.0


def trim_silence(
    samples: np.ndarray, sample_rate: int, top_db: float = 40.0, keep_seconds: float = 0.05
) -> np.ndarray:
    """Cut off both ends what is `top_db` below the loudest 10 ms, but for `keep_seconds`."""
    block = max(1, round(sample_rate * _TRIM_BLOCK_SECONDS))
    power = _block_power(samples, block)
    if not power.any():
        return samples
    loud = np.flatnonzero(power >= power.max() * 10.0 ** (-top_db / 10.0))
    keep = round(sample_rate * keep_seconds)
    return samples[max(0, loud[0] * block - keep) : (loud[-1] + 1) * block + keep]


def normalise_loudness(samples: np.ndarray, sample_rate: int, target_db: float) -> np.ndarray:
    """Scale to `target_db` LUFS, or as near as a peak of 0.99 allows; silence stays as it is."""
    measured = loudness(samples, sample_rate)
    if measured == -np.inf:
        return samples
    peak = float(np.abs(samples).max())
    gain = min(10.0 ** ((target_db - measured) / 20.0), PEAK_LIMIT / peak)
    return samples * np.float32(gain)


def loudness(samples: np.ndarray, sample_rate: int) -> float:
    """Measure the integrated loudness of a mono signal in LUFS by ITU-R BS.1770-4.

    It is -inf where no block is above -70 LUFS. A signal shorter than 0.4 s is one block.
    """
    if len(samples) == 0:
        return -np.inf
    weighted = _weighted(samples, sample_rate)
    powers = _gating_blocks(weighted, sample_rate)
    powers = powers[_lufs(powers) > _ABSOLUTE_GATE]
    if len(powers) == 0:
        return -np.inf
    powers = powers[_lufs(powers) > _lufs(powers.mean()) + _RELATIVE_GATE]
    return float(_lufs(powers.mean()))


def _weighted(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Filter by K-weighting, as a product of spectra: scipy.signal takes half a second to import.

    The filter's response has died away within the padding.
    """
    size = 1 << (len(samples) + round(_RESPONSE_SECONDS * sample_rate)).bit_length()
    make = _usual_response if size <= _USUAL_SIZE else _response
    spectrum = np.fft.rfft(samples.astype(np.float64), size)
    return np.fft.irfft(spectrum * make(size, sample_rate), size)[: len(samples)]


def _response(size: int, sample_rate: int) -> np.ndarray:
    """The spectrum of the K-weighting filter, [size // 2 + 1]."""
    turns = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    powers = np.stack([np.ones_like(turns), turns, turns * turns])
    response = np.ones_like(turns)
    for section in _k_weighting(sample_rate):
        response *= (section[:3] @ powers) / (section[3:] @ powers)
    return response


# It takes longer to make than the two transforms, and sentences have one of a few sizes.
_usual_response = lru_cache(maxsize=8)(_response)


def _block_power(samples: np.ndarray, block: int) -> np.ndarray:
    """Return the mean square of each block, the last one perhaps shorter."""
    starts = np.arange(0, len(samples), block)
    if len(starts) == 0:
        return np.zeros(0)
    sums = np.add.reduceat(np.square(samples, dtype=np.float64), starts)
    return sums / np.minimum(block, len(samples) - starts)


def _gating_blocks(weighted: np.ndarray, sample_rate: int) -> np.ndarray:
    """Return the mean square of 0.4 s blocks that overlap by three quarters."""
    block = round(sample_rate * _LOUDNESS_BLOCK_SECONDS)
    if len(weighted) < block:
        return np.array([np.mean(np.square(weighted))])
    total = np.concatenate([[0.0], np.cumsum(np.square(weighted))])
    count = (len(weighted) - block) * _LOUDNESS_STEPS_PER_BLOCK // block + 1
    starts = np.arange(count) * block // _LOUDNESS_STEPS_PER_BLOCK
    # The running sum may be off by rounding, and a power is never negative.
    return np.maximum(total[starts + block] - total[starts], 0.0) / block


def _lufs(power: np.ndarray) -> np.ndarray:
    return _LOUDNESS_OFFSET + 10.0 * np.log10(np.maximum(power, 1e-30))


@lru_cache(maxsize=8)
def _k_weighting(sample_rate: int) -> np.ndarray:
    """Return the two sections of the K-weighting filter at any rate, [2, 6].

    The standard tabulates them for 48 kHz only. These are the analogue prototypes behind that
    table, a shelf of 4 dB at 1.68 kHz and a high-pass at 38 Hz, taken through the bilinear
    transform.
    """
    return np.array([_high_shelf(sample_rate), _high_pass(sample_rate)])


def _high_shelf(sample_rate: int) -> list[float]:
    frequency, gain_db, quality = 1681.974450955533, 3.999843853973347, 0.7071752369554196
    k = np.tan(np.pi * frequency / sample_rate)
    high = 10.0 ** (gain_db / 20.0)
    band = high**0.4996667741545416
    norm = 1.0 + k / quality + k * k
    numerator = [high + band * k / quality + k * k, 2 * (k * k - high)]
    numerator.append(high - band * k / quality + k * k)
    denominator = [norm, 2 * (k * k - 1.0), 1.0 - k / quality + k * k]
    return [value / norm for value in numerator + denominator]


def _high_pass(sample_rate: int) -> list[float]:
    frequency, quality = 38.13547087602444, 0.5003270373238773
    k = np.tan(np.pi * frequency / sample_rate)
    norm = 1.0 + k / quality + k * k
    # The standard leaves the numerator of this section unscaled.
    return [1.0, -2.0, 1.0, 1.0, 2 * (k * k - 1.0) / norm, (1.0 - k / quality + k * k) / norm]
