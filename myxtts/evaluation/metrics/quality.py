"""Predicted ratings by listeners (DNSMOS), and the intelligibility of a resynthesis (ESTOI)."""

import hashlib
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soxr

from myxtts.audio.cleanup import normalise_loudness
from myxtts.errors import UserError
from myxtts.evaluation.asr import Recording
from myxtts.evaluation.ceilings import answers
from myxtts.evaluation.extras import import_extra
from myxtts.evaluation.metrics.levels import finite, is_silent
from myxtts.monitoring.cores import map_on_cores
from myxtts.monitoring.progress import Progress
from myxtts.weights import PUBLIC

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

WINDOW_SECONDS = 9.01
LOUDNESS = -23.0  # LUFS, at which everything is rated
# The published fits of the network's three outputs to ratings: factors of x squared, x and 1.
RATING_FITS = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)
LEAST_ESTOI_SECONDS = 0.41  # 31 frames of 25.6 ms that overlap by half
_ESTOI_OF_TOO_FEW_FRAMES = 1e-5  # what pystoi returns instead of an error


@dataclass(frozen=True, slots=True)
class QualityScore:
    """Predicted mean opinions from 1 (bad) to 5 (excellent); NaN for silence."""

    signal: float  # 5: the speech is not distorted
    background: float  # 5: no noise is noticed
    overall: float


class Dnsmos:
    """DNSMOS P.835: a network that predicts listeners' ratings of noise-suppressed speech."""

    name = "DNSMOS P.835"
    sample_rate = 16000
    identity = f"{name}|{PUBLIC['dnsmos'].sha256}"

    def __init__(self, session):
        self._session = session

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Dnsmos":
        """Open the published network, and no other: the fits depend on its outputs."""
        onnxruntime = import_extra("onnxruntime", "onnxruntime, which runs DNSMOS,")
        options = onnxruntime.SessionOptions()
        # One thread per recording: `score_many` rates as many at a time as there are cores.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        network = _read_published(Path(path).expanduser())
        return cls(onnxruntime.InferenceSession(network, options, ["CPUExecutionProvider"]))

    def score(self, samples: np.ndarray, rate: int) -> QualityScore:
        """Rate samples [-1, 1] of one recording."""
        samples = finite(samples).astype(np.float32)
        if is_silent(samples):
            return QualityScore(math.nan, math.nan, math.nan)
        windows = _windows(_resampled(samples, rate, self.sample_rate), self.sample_rate)
        run = self._session.run
        outputs = [run(None, {"input_1": window[np.newaxis]})[0][0] for window in windows]
        ratings = map(np.polyval, RATING_FITS, np.array(outputs, np.float64).T)
        return QualityScore(*(float(rating.mean()) for rating in ratings))

    def score_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[QualityScore]:
        """Rate recordings on all cores; the scores do not depend on their number."""
        return map_on_cores(lambda recording: self.score(*recording), recordings, progress)


def ratings(session: "Session") -> dict[str, list[QualityScore]]:
    """The predicted opinions of joined sentences, by source."""
    rate, rater, most = session.sample_rate, session.judges.rater, session.subject.most_rated
    sources = {name: joined(speech, rate)[:most] for name, speech in session.judged.items()}

    def rate_all(recordings: list[Recording]) -> list[list[float]]:
        with session.watch("rating", "recordings") as report:
            return [list(astuple(one)) for one in rater.score_many(recordings, report)]

    found = answers(session.cache, lambda: rater.identity, sources, rate_all)
    return {source: [QualityScore(*values) for values in own] for source, own in found.items()}


def joined(speech: Sequence[np.ndarray], rate: int) -> list[Recording]:
    """Join sentences, all at one loudness, to recordings that are long enough to be rated.

    DNSMOS repeats a shorter recording until it is long enough. It also takes louder noise for more
    noise: the same speech 6 dB louder is rated .1 lower, so that sources of different levels could
    not be compared.
    """
    least, parts, found = WINDOW_SECONDS * rate, [], []
    for samples in speech:
        parts.append(normalise_loudness(samples, rate, LOUDNESS))
        if sum(map(len, parts)) >= least:
            found.append((np.concatenate(parts), rate))
            parts = []
    if parts and not found:
        found.append((np.concatenate(parts), rate))
    return found


def estoi(recorded: np.ndarray, heard: np.ndarray, rate: int) -> float:
    """How intelligible a resynthesis of a recording is, at most 1; NaN with too little speech.

    Both must be aligned in time; samples beyond the end of the shorter one are ignored.
    """
    pystoi = import_extra("pystoi", "pystoi, which measures intelligibility,")
    length = min(len(recorded), len(heard))
    recorded, heard = finite(recorded[:length]), finite(heard[:length])
    if length < LEAST_ESTOI_SECONDS * rate or is_silent(recorded):
        return math.nan
    if not heard.any():  # pystoi would correlate the recording with random numbers
        return 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Not enough STFT frames", RuntimeWarning)
        score = float(pystoi.stoi(recorded, heard, rate, extended=True))
    return math.nan if score == _ESTOI_OF_TOO_FEW_FRAMES else score


def _resampled(samples: np.ndarray, rate: int, to_rate: int) -> np.ndarray:
    """Samples at another rate, as many as in the published program, which rounds up with a zero.

    That sample matters: it decides whether there is a click where a short recording is repeated,
    which has changed the background by .3.
    """
    if rate == to_rate:
        return samples
    length = math.ceil(len(samples) * (to_rate / rate))
    resampled = soxr.resample(samples, rate, to_rate)[:length]
    return np.pad(resampled, (0, length - len(resampled)))


def _windows(samples: np.ndarray, rate: int) -> Iterator[np.ndarray]:
    """The windows that the published program rates; it doubles a recording that is too short."""
    length = round(WINDOW_SECONDS * rate)
    while len(samples) < length:
        samples = np.concatenate([samples, samples])
    for second in range(max(1, len(samples) // rate - int(WINDOW_SECONDS))):
        # That program drops windows that are one sample too short by rounding (those that begin
        # at 7 to 23 s, then at 119 s). So do we, to get the same figures.
        if int((second + WINDOW_SECONDS) * rate) - second * rate == length:
            yield samples[second * rate :][:length]


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
