"""How speech sounds: as listeners would rate it, and how intelligible a copy of it is."""

import hashlib
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soxr

from myxtts.audio.io import SILENCE_PEAK
from myxtts.errors import UserError
from myxtts.evaluation.asr import Recording
from myxtts.evaluation.ceilings import answers
from myxtts.evaluation.metrics.table import SPEECH
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress
from myxtts.weights import PUBLIC

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

WINDOW_SECONDS = 9.01
# The published fits of the network's three numbers to ratings: of x squared, of x, and of 1.
RATING_FITS = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)
LEAST_ESTOI_SECONDS = 0.41  # 31 frames of 25.6 ms, each half over the last, without silence
_ESTOI_OF_TOO_FEW_FRAMES = 1e-5  # what pystoi returns for want of an answer


@dataclass(frozen=True, slots=True)
class QualityScore:
    """Predicted mean opinions from 1 (bad) to 5 (excellent); NaN where nothing is heard."""

    signal: float  # how undistorted the speech is
    background: float  # how unobtrusive what else is heard is
    overall: float


class Dnsmos:
    """DNSMOS P.835: a network that rates speech as listeners of noise suppressors did."""

    name = "DNSMOS P.835"
    sample_rate = 16000
    identity = f"{name}|{PUBLIC['dnsmos'].sha256}"

    def __init__(self, session):
        self._session = session

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Dnsmos":
        """Open the published network, and no other: the fits are to its outputs."""
        onnxruntime = _import_onnxruntime()
        options = onnxruntime.SessionOptions()
        # One thread for each recording: `score_many` has one at work for each core.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        network = _read_published(Path(path).expanduser())
        return cls(onnxruntime.InferenceSession(network, options, ["CPUExecutionProvider"]))

    def score(self, samples: np.ndarray, rate: int) -> QualityScore:
        """Rate samples [-1, 1] of one recording."""
        samples = _finite(samples).astype(np.float32)
        if _is_silent(samples):
            return QualityScore(math.nan, math.nan, math.nan)
        windows = _windows(_resampled(samples, rate, self.sample_rate), self.sample_rate)
        outputs = np.array([self._outputs(window) for window in windows], np.float64)
        ratings = map(np.polyval, RATING_FITS, outputs.T)
        return QualityScore(*(float(rating.mean()) for rating in ratings))

    def score_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[QualityScore]:
        """Rate recordings on all cores; the scores do not depend on how they are shared."""
        scores = []
        with ThreadPoolExecutor(max(1, min(available_cores(), len(recordings)))) as pool:
            for score in pool.map(lambda recording: self.score(*recording), recordings):
                scores.append(score)
                if progress:
                    progress(len(scores), len(recordings))
        return scores

    def _outputs(self, window: np.ndarray) -> np.ndarray:
        return self._session.run(None, {"input_1": window[np.newaxis]})[0][0]


def ratings(session: "Session", opinion: str) -> dict[str, np.ndarray]:
    """One of the predicted opinions, of recordings that sentences are joined to."""
    found = session.shared(_all_ratings)
    return {
        source: np.array([getattr(one, opinion) for one in own]) for source, own in found.items()
    }


def _all_ratings(session: "Session") -> dict[str, list[QualityScore]]:
    rate, rater, most = session.sample_rate, session.judges.rater, session.subject.most_rated
    parts = {name: joined(speech, rate)[:most] for name, speech in session.judged.items()}
    speech = [one for part in parts.values() for one in part]
    is_kept = [name != SPEECH for name, part in parts.items() for _ in part]

    def rate_all(recordings: list[Recording]) -> list[list[float]]:
        with session.watch("rating", "recordings") as report:
            return [list(astuple(one)) for one in rater.score_many(recordings, report)]

    found = answers(session.cache, lambda: rater.identity, speech, is_kept, rate_all)
    scores = iter(QualityScore(*values) for values in found)
    return {source: [next(scores) for _ in part] for source, part in parts.items()}


def joined(speech: Sequence[np.ndarray], rate: int) -> list[Recording]:
    """Sentences one behind the other, in recordings that are long enough to be rated.

    A shorter one would be rated as an echo of itself.
    """
    least, parts, found = WINDOW_SECONDS * rate, [], []
    for samples in speech:
        parts.append(samples)
        if sum(map(len, parts)) >= least:
            found.append((np.concatenate(parts), rate))
            parts = []
    if parts and not found:
        found.append((np.concatenate(parts), rate))
    return found


def estoi(recorded: np.ndarray, heard: np.ndarray, rate: int) -> float:
    """How intelligible a copy of a recording is, at most 1; NaN with hardly any speech in it.

    Both must be in time with each other; what one is longer than the other is not compared.
    """
    stoi = _import_stoi()
    length = min(len(recorded), len(heard))
    recorded, heard = (_finite(one[:length]).astype(np.float64) for one in (recorded, heard))
    if length < LEAST_ESTOI_SECONDS * rate or _is_silent(recorded):
        return math.nan
    if not heard.any():  # pystoi would correlate the recording with random numbers
        return 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Not enough STFT frames", RuntimeWarning)
        score = float(stoi(recorded, heard, rate, extended=True))
    return math.nan if score == _ESTOI_OF_TOO_FEW_FRAMES else score


def _resampled(samples: np.ndarray, rate: int, to_rate: int) -> np.ndarray:
    """Samples at another rate, as many as the published program has: it rounds up, with a zero.

    That one sample matters: where a short recording meets its repetition it makes or spares a
    click, and has been seen to move the background by .3.
    """
    if rate == to_rate:
        return samples
    length = math.ceil(len(samples) * (to_rate / rate))
    resampled = soxr.resample(samples, rate, to_rate)[:length]
    return np.pad(resampled, (0, length - len(resampled)))


def _windows(samples: np.ndarray, rate: int) -> Iterator[np.ndarray]:
    """The parts that the published program rates: it doubles what is shorter than one of them."""
    length = round(WINDOW_SECONDS * rate)
    while len(samples) < length:
        samples = np.concatenate([samples, samples])
    for second in range(max(1, len(samples) // rate - int(WINDOW_SECONDS))):
        # That program leaves out parts which rounding makes one sample too short (those that
        # begin at 7 to 23 s, then at 119 s): its figures are what ours are to be compared with.
        if int((second + WINDOW_SECONDS) * rate) - second * rate == length:
            yield samples[second * rate :][:length]


def _finite(samples: np.ndarray) -> np.ndarray:
    samples = np.asarray(samples)
    if not np.isfinite(samples).all():
        raise ValueError("the samples hold NaN or infinite values, whose sound cannot be judged")
    return samples


def _is_silent(samples: np.ndarray) -> bool:
    return not len(samples) or np.abs(samples).max() < SILENCE_PEAK


def _read_published(path: Path) -> bytes:
    public = PUBLIC["dnsmos"]
    get = f"`myxtts weights get {public.name}` fetches it"
    try:
        network = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): {get}") from error
    if hashlib.sha256(network).hexdigest() != public.sha256:
        raise UserError(f"{path} is not the network of {Dnsmos.name} that was published: {get}")
    return network


def _import_onnxruntime():
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime, which runs DNSMOS,", error) from error
    return onnxruntime


def _import_stoi():
    try:
        from pystoi import stoi
    except ImportError as error:
        raise _missing("pystoi, which measures intelligibility,", error) from error
    return stoi


def _missing(what: str, error: ImportError) -> UserError:
    return UserError(
        f'{what} cannot be imported ({error}); install it with pip install "myxtts[eval]"'
    )
