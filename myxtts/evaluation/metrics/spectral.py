"""Similarity of speech to a recording of the same words: spectrum, pitch, intelligibility."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.fft
from scipy.spatial.distance import cdist

from myxtts.audio.mel import log_mel
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.frames import audible
from myxtts.evaluation.metrics.quality import estoi
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
from myxtts.monitoring.cores import map_on_cores

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

CEPSTRA = 13
LEAST_VOICED = 10  # pairs of frames that a correlation needs
LEAST_VARIATION = 10.0  # cents, below which a pitch is constant and has no correlation
_DECIBELS_PER_CEPSTRUM = 10.0 / math.log(10.0) * math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class PitchLikeness:
    """How similar two pitch contours are; NaN where too few frames are voiced in both."""

    correlation: float  # of the logarithms; NaN also where one is constant
    rmse_cents: float
    voicing_error: float  # share of frames where only one is voiced


@dataclass(frozen=True, slots=True)
class SpeechLikeness:
    """How similar speech is to a recording, both without silence at their ends."""

    distortion: float  # mel-cepstral, in dB, after warping
    pitch: PitchLikeness
    # Warping removes differences in rhythm but adds artefacts at joints, so it is lower than the
    # ESTOI of aligned speech, and must only be compared with other warped ESTOIs.
    warped_estoi: float
    length_ratio: float  # speech over recording


def likeness(session: "Session") -> dict[str, list[SpeechLikeness]]:
    """How similar each sentence of the speech, and of the resynthesis, is to its recording."""
    sources, spec = session.sources, session.subject.spec
    names = [name for name in (SPEECH, RESYNTHESIS) if name in sources]
    pairs = [pair for name in names for pair in zip(sources[name], sources[RECORDED], strict=True)]
    with session.watch("comparing", "recordings") as report:
        found = iter(map_on_cores(lambda pair: compare_speech(*pair, spec), pairs, report))
    return {name: [next(found) for _ in sources[name]] for name in names}


def compare_speech(spoken: np.ndarray, recorded: np.ndarray, spec: AudioSpec) -> SpeechLikeness:
    """Compare samples [-1, 1] of speech with a recording of the same words.

    All figures are NaN where one of them is silent or shorter than a frame.
    """
    spoken, recorded = (audible(one, spec) for one in (spoken, recorded))
    if not len(spoken) or not len(recorded):
        nothing = PitchLikeness(math.nan, math.nan, math.nan)
        return SpeechLikeness(math.nan, nothing, math.nan, math.nan)
    distortion, path = warp_mels(log_mel(spoken, spec), log_mel(recorded, spec))
    return SpeechLikeness(
        distortion,
        compare_pitch(pitch(spoken, spec), pitch(recorded, spec), path),
        estoi(recorded, warped(spoken, path, spec), spec.sample_rate),
        len(spoken) / len(recorded),
    )


def warp_mels(spoken: np.ndarray, recorded: np.ndarray) -> tuple[float, np.ndarray]:
    """Warp log-mels [frames, mels] onto each other.

    Return their mel-cepstral distortion in dB, the mean along the path, and the path [steps, 2] of
    pairs of frames.
    """
    distances = cdist(mel_cepstra(spoken), mel_cepstra(recorded)) * _DECIBELS_PER_CEPSTRUM
    path = shortest_path(distances)
    return float(distances[path[:, 0], path[:, 1]].mean()), path


def mel_cepstra(mel: np.ndarray, count: int = CEPSTRA) -> np.ndarray:
    """Mel cepstra 1 to `count` [frames, count] of log-mels [frames, mels], without the loudness.

    They are cepstra of the power, so the distortion is the difference of smoothed mels in dB.
    """
    mel = np.asarray(mel, np.float64)
    return scipy.fft.dct(mel, axis=1)[:, 1 : count + 1] / mel.shape[1]


def shortest_path(distances: np.ndarray) -> np.ndarray:
    """The path of least cost [steps, 2] through distances [rows, columns], corner to corner.

    A step is one row, one column or both; both is preferred at equal cost.
    """
    rows, columns = distances.shape
    if rows > columns:  # a stored diagonal is as long as there are rows
        return shortest_path(distances.T)[:, ::-1]
    # Row k is the diagonal of all i + j = k, by i; infinite outside of the distances.
    diagonals = np.full((rows + columns - 1, rows), np.inf)
    _unskewed(diagonals, columns)[...] = distances
    steps = np.empty(diagonals.shape, np.int8)
    # The costs to reach the last two diagonals, with an entry for i = -1.
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


def warped(spoken: np.ndarray, path: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """Warp speech to the time of a recording [frames * hop_length], along a path of frames.

    Segments of two hops overlap by half. Each is shifted to where it best continues the one before
    (WSOLA), so that their waves do not cancel each other.
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


def _unskewed(diagonals: np.ndarray, columns: int) -> np.ndarray:
    """A view [rows, columns] of an array stored by diagonals [rows + columns - 1, rows]."""
    down, right = diagonals.strides
    shape = (diagonals.shape[1], columns)
    return np.lib.stride_tricks.as_strided(diagonals, shape, (down + right, down))


def _walk_back(steps: np.ndarray) -> np.ndarray:
    """The path [length, 2] to the last corner; steps are 0: both, 1: a row, 2: a column."""
    row, column = steps.shape[0] - 1, steps.shape[1] - 1
    path = [(row, column)]
    while row or column:
        step = steps[row, column]
        row, column = row - (step != 2), column - (step != 1)
        path.append((row, column))
    return np.array(path[::-1], np.intp)


def _sources(path: np.ndarray) -> np.ndarray:
    """The mean frame of the speech that each frame of the recording is paired with."""
    spoken, recorded = path.T
    return np.bincount(recorded, spoken) / np.bincount(recorded)


def _best_shift(padded: np.ndarray, start: int, wanted: int, reach: int, length: int) -> int:
    """The shift from a start, within reach, where a segment is most like the wanted one."""
    first = max(0, start - reach)
    around = padded[first : start + reach + length]
    segment = padded[wanted : wanted + length]
    segment = np.pad(segment, (0, length - len(segment)))
    likeness = np.correlate(around, segment, "valid")
    power = np.cumsum(np.square(np.pad(around, (1, 0)), dtype=np.float64))
    likeness = likeness / np.sqrt(power[length:] - power[:-length] + 1e-9)
    return first + int(likeness.argmax()) - start
