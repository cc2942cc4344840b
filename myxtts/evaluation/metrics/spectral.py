"""How near speech is to a recording of the same words, and how loud, clipped and silent it is."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from scipy.spatial.distance import cdist

from myxtts.audio.cleanup import trim_silence
from myxtts.audio.io import SILENCE_PEAK
from myxtts.audio.mel import log_mel
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.quality import estoi

CEPSTRA = 13
LEAST_VOICED = 10  # pairs of frames, below which a correlation is an accident
LEAST_VARIATION = 10.0  # cents: what varies less is one tone, and correlates with nothing
SILENCE_DB = 40.0  # below the loudest block, as where silence is trimmed
FULL_SCALE = 1.0 - 2.0**-15
_BLOCK_SECONDS = 0.01
# Quieter waves are flat at the top because 16 bits cannot tell their samples apart.
_LEAST_CLIPPED_PEAK = 0.1
_LEAST_CLIPPED_RUN = 3
_DECIBELS_PER_CEPSTRUM = 10.0 / math.log(10.0) * math.sqrt(2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """Which frames of speech and of a recording are the same moment, and how far they differ."""

    distortion: float  # dB, the mean along the path
    path: np.ndarray  # [steps, 2]: a frame of the speech and one of the recording


@dataclass(frozen=True, slots=True)
class PitchLikeness:
    """How alike two melodies are; NaN where too little of both is voiced."""

    correlation: float  # of the logarithms; NaN also where one of them is a single tone
    rmse_cents: float
    voicing_error: float  # share of frames of which only one is voiced


@dataclass(frozen=True, slots=True)
class SpeechLikeness:
    """How near speech is to a recording, both without the silence at their ends."""

    distortion: float  # mel-cepstral, in dB, after warping
    pitch: PitchLikeness
    warped_estoi: float
    length_ratio: float  # speech over recording


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


def compare_speech(spoken: np.ndarray, recorded: np.ndarray, spec: AudioSpec) -> SpeechLikeness:
    """Measure how near samples [-1, 1] of speech are to a recording of the same words.

    All is NaN where one of them is silent or shorter than a frame.
    """
    spoken, recorded = (_audible(one, spec) for one in (spoken, recorded))
    if not len(spoken) or not len(recorded):
        nothing = PitchLikeness(math.nan, math.nan, math.nan)
        return SpeechLikeness(math.nan, nothing, math.nan, math.nan)
    warp = warp_mels(log_mel(spoken, spec), log_mel(recorded, spec))
    return SpeechLikeness(
        warp.distortion,
        compare_pitch(pitch(spoken, spec), pitch(recorded, spec), warp.path),
        warped_estoi(spoken, recorded, warp.path, spec),
        len(spoken) / len(recorded),
    )


def warp_mels(spoken: np.ndarray, recorded: np.ndarray) -> Warp:
    """Warp log-mels [frames, mels] onto each other; their mel-cepstral distortion, in dB."""
    distances = cdist(mel_cepstra(spoken), mel_cepstra(recorded)) * _DECIBELS_PER_CEPSTRUM
    path = shortest_path(distances)
    return Warp(float(distances[path[:, 0], path[:, 1]].mean()), path)


def mel_cepstra(mel: np.ndarray, count: int = CEPSTRA) -> np.ndarray:
    """Mel cepstra 1 to `count` [frames, count] of log-mels [frames, mels], without the loudness.

    They are those of the power, so that the distortion is what smoothed mels differ by in dB.
    """
    mel = np.asarray(mel, np.float64)
    return scipy.fft.dct(mel, axis=1)[:, 1 : count + 1] / mel.shape[1]


def shortest_path(distances: np.ndarray) -> np.ndarray:
    """The cheapest way [steps, 2] through distances [rows, columns], from corner to corner.

    A step goes on by a row, by a column or by both, which is preferred where it costs the same.
    """
    rows, columns = distances.shape
    if rows > columns:  # diagonals are stored as long as there are rows
        return shortest_path(distances.T)[:, ::-1]
    # Row k is the diagonal of all i + j = k, by i, and infinite where that is outside.
    diagonals = np.full((rows + columns - 1, rows), np.inf)
    _unskewed(diagonals, columns)[...] = distances
    steps = np.empty(diagonals.shape, np.int8)
    # What it costs to reach the diagonal before the last, and the last, with a place for i = -1.
    before, last = np.full((2, rows + 1), np.inf)
    before[0] = 0.0
    for diagonal, step in zip(diagonals, steps, strict=True):
        ways = np.stack([before[:-1], last[:-1], last[1:]])
        step[:] = ways.argmin(axis=0)
        before, last = last, np.concatenate([[np.inf], diagonal + ways.min(axis=0)])
    return _walk_back(_unskewed(steps, columns))


def compare_pitch(spoken: np.ndarray, recorded: np.ndarray, path: np.ndarray) -> PitchLikeness:
    """Compare F0 in Hz per frame, 0 where unvoiced, along a path [steps, 2]."""
    spoken, recorded = spoken[path[:, 0]], recorded[path[:, 1]]
    is_voiced = (spoken > 0) & (recorded > 0)
    voicing_error = float(np.mean((spoken > 0) != (recorded > 0)))
    if is_voiced.sum() < LEAST_VOICED:
        return PitchLikeness(math.nan, math.nan, voicing_error)
    cents = 1200.0 * np.log2(np.stack([spoken[is_voiced], recorded[is_voiced]], dtype=np.float64))
    has_melody = cents.std(axis=1).min() >= LEAST_VARIATION
    return PitchLikeness(
        float(np.corrcoef(cents)[0, 1]) if has_melody else math.nan,
        float(np.sqrt(np.mean(np.square(cents[0] - cents[1])))),
        voicing_error,
    )


def warped_estoi(
    spoken: np.ndarray, recorded: np.ndarray, path: np.ndarray, spec: AudioSpec
) -> float:
    """The ESTOI of speech that was warped onto a recording's time along a path of their frames.

    Warping forgives rhythm, and pieces that meet are not what was said: the figure is below that
    of speech in time with the recording, and compares with none but its like.
    """
    return estoi(recorded, warped(spoken, path, spec), spec.sample_rate)


def warped(spoken: np.ndarray, path: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """Speech in the time of a recording [frames * hop_length], along a path of their frames.

    Pieces of two hops overlap by half. Each is looked for around its place in the speech, where
    it goes on best from the piece before (WSOLA), so that their waves do not cancel each other.
    """
    hop, reach = spec.hop_length, spec.hop_length // 2
    padded = np.pad(np.asarray(spoken, np.float32), 2 * hop)
    window = np.hanning(2 * hop + 1)[:-1].astype(np.float32)
    result = np.zeros((path[-1, 1] + 2) * hop, np.float32)
    place = None
    for frame, source in enumerate(_sources(path)):
        start = round((source + 1.5) * hop)  # half a hop before the frame's middle, padded
        if place is not None:
            start += _best_shift(padded, start, place + hop, reach, 2 * hop)
        place = start
        result[frame * hop :][: 2 * hop] += window * padded[start : start + 2 * hop]
    return result[hop // 2 : len(result) - hop + hop // 2]


def measure_levels(samples: np.ndarray, rate: int) -> Levels:
    """Measure samples [-1, 1]: what is 40 dB below the loudest 10 ms, or below -60 dBFS, is silent.

    A signal without a sound has no loudness and no pauses, one without samples nothing at all.
    """
    samples = _finite(samples)
    if not len(samples):
        return Levels(*[math.nan] * 8)
    return Levels(
        **_sounds_and_pauses(samples, rate),
        peak=float(np.abs(samples).max()),
        clipped=float(_is_clipped(samples).mean()),
        dc_offset=float(samples.mean()),
    )


def _audible(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """The samples without the silence at their ends: none, where all of it is."""
    samples = _finite(samples).astype(np.float32)
    if len(samples) < spec.hop_length or np.abs(samples).max() < SILENCE_PEAK:
        return samples[:0]
    return trim_silence(samples, spec.sample_rate, SILENCE_DB)


def _finite(samples: np.ndarray) -> np.ndarray:
    samples = np.asarray(samples, np.float64)
    if not np.isfinite(samples).all():
        raise ValueError("the samples hold NaN or infinite values, whose sound cannot be measured")
    return samples


def _unskewed(diagonals: np.ndarray, columns: int) -> np.ndarray:
    """The view [rows, columns] of what is stored by diagonals [rows + columns - 1, rows]."""
    down, right = diagonals.strides
    shape = (diagonals.shape[1], columns)
    return np.lib.stride_tricks.as_strided(diagonals, shape, (down + right, down))


def _walk_back(steps: np.ndarray) -> np.ndarray:
    """The path [length, 2] to the last corner; steps are 0 by both, 1 by a row, 2 by a column."""
    row, column = steps.shape[0] - 1, steps.shape[1] - 1
    path = [(row, column)]
    while row or column:
        step = steps[row, column]
        row, column = row - (step != 2), column - (step != 1)
        path.append((row, column))
    return np.array(path[::-1], np.intp)


def _sources(path: np.ndarray) -> np.ndarray:
    """The frame of the speech, in the mean, that each frame of the recording is paired with."""
    spoken, recorded = path.T
    return np.bincount(recorded, spoken) / np.bincount(recorded)


def _best_shift(padded: np.ndarray, start: int, wanted: int, reach: int, length: int) -> int:
    """How far from a start, within reach, a piece is most like the one that is wanted."""
    first = max(0, start - reach)
    around = padded[first : start + reach + length]
    piece = padded[wanted : wanted + length]
    piece = np.pad(piece, (0, length - len(piece)))
    likeness = np.correlate(around, piece, "valid")
    power = np.cumsum(np.square(np.pad(around, (1, 0)), dtype=np.float64))
    likeness = likeness / np.sqrt(power[length:] - power[:-length] + 1e-9)
    return first + int(likeness.argmax()) - start


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
