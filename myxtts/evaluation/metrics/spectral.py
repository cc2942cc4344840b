"""How near speech is to a recording of the same words: spectrum, pitch, intelligibility."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.fft
from scipy.spatial.distance import cdist

from myxtts.audio.cleanup import trim_silence
from myxtts.audio.io import SILENCE_PEAK
from myxtts.audio.mel import log_mel
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.levels import SILENCE_DB, finite
from myxtts.evaluation.metrics.quality import estoi
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
from myxtts.monitoring.cores import available_cores

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

CEPSTRA = 13
LEAST_VOICED = 10  # pairs of frames, below which a correlation is an accident
LEAST_VARIATION = 10.0  # cents: what varies less is one tone, and correlates with nothing
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


def likeness(session: "Session", name: str) -> dict[str, np.ndarray]:
    """One figure of how near speech, and resynthesis, are to the recordings."""
    return session.shared(_all_likeness)[name]


def _all_likeness(session: "Session") -> dict[str, dict[str, np.ndarray]]:
    sources, spec = session.sources, session.subject.spec
    recorded = sources[RECORDED]
    pairs = {name: sources[name] for name in (SPEECH, RESYNTHESIS) if name in sources}
    rows: dict[str, list[dict[str, float]]] = {source: [] for source in pairs}
    done, total = 0, len(pairs) * len(recorded)
    with (
        session.watch("comparing", "recordings") as report,
        ThreadPoolExecutor(available_cores()) as pool,
    ):
        for source, speech in pairs.items():
            for one in pool.map(compare_speech, speech, recorded, [spec] * len(speech)):
                rows[source].append(_figures(one))
                report(done := done + 1, total)
    return {
        name: {source: np.array([row[name] for row in own]) for source, own in rows.items()}
        for name in rows[SPEECH][0]
    }


def _figures(found: "SpeechLikeness") -> dict[str, float]:
    return {
        "mcd": found.distortion,
        "f0_correlation": found.pitch.correlation,
        "f0_rmse": found.pitch.rmse_cents,
        "voicing_error": found.pitch.voicing_error,
        "warped_estoi": found.warped_estoi,
        "length_ratio": found.length_ratio,
    }


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


def _audible(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """The samples without the silence at their ends: none, where all of it is."""
    samples = finite(samples).astype(np.float32)
    if len(samples) < spec.hop_length or np.abs(samples).max() < SILENCE_PEAK:
        return samples[:0]
    return trim_silence(samples, spec.sample_rate, SILENCE_DB)


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
