"""Frames of speech for metrics of liveliness: log-mel, level and F0, without silence at the ends.

Most of these metrics are ratios of a figure of the speech to that of its recording: 1 is natural.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.cleanup import trim_silence
from myxtts.audio.io import SILENCE_PEAK
from myxtts.audio.mel import mel_and_energy
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.levels import SILENCE_DB, finite
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
from myxtts.monitoring.cores import map_on_cores

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

# A frame this far below the loudest one is a pause or the closure of a stop. Recordings made at
# home have noise 35 to 40 dB below, so `SILENCE_DB` would find no pauses in them.
QUIET_DB = 30.0
# Bands this far below the loudest one hold noise in recordings and nothing in speech of a model.
RANGE_DB = 60.0
_NEPERS_PER_DB = math.log(10.0) / 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """A sentence by frames; it has none where it is silent."""

    mel: np.ndarray  # [frames, mels], natural logarithms, at most RANGE_DB below the loudest
    level: np.ndarray  # [frames], dB, 0 is the loudest
    f0: np.ndarray  # [frames], Hz, 0 where unvoiced
    rate: float  # frames a second

    @property
    def is_loud(self) -> np.ndarray:
        """Which frames [frames] are less than QUIET_DB below the loudest."""
        return self.level > -QUIET_DB


def frames(session: "Session") -> dict[str, list[Frames]]:
    """The frames of each sentence, by source."""
    sources, spec = session.sources, session.subject.spec
    speech = [samples for own in sources.values() for samples in own]
    with session.watch("analysing", "recordings") as report:
        found = iter(map_on_cores(lambda samples: analyse(samples, spec), speech, report))
    return {source: [next(found) for _ in own] for source, own in sources.items()}


def analyse(samples: np.ndarray, spec: AudioSpec) -> Frames:
    """Analyse samples [-1, 1] of a sentence."""
    samples = audible(samples, spec)
    mel, energy = mel_and_energy(samples, spec)
    if len(mel):
        mel = np.maximum(mel, mel.max() - RANGE_DB * _NEPERS_PER_DB)
    level = 20.0 * np.log10(np.maximum(energy, np.finfo(np.float32).tiny), dtype=np.float64)
    level -= level.max(initial=-np.inf)
    rate = spec.sample_rate / spec.hop_length
    return Frames(mel.astype(np.float64), level, pitch(samples, spec), rate)


def audible(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """The samples without silence at their ends; none where all is silent."""
    samples = finite(samples).astype(np.float32)
    if len(samples) < spec.hop_length or np.abs(samples).max() < SILENCE_PEAK:
        return samples[:0]
    return trim_silence(samples, spec.sample_rate, SILENCE_DB)


def next_to_recordings(
    session: "Session", measure: Callable[[Frames], float]
) -> dict[str, np.ndarray]:
    """Pairs [sentences, 2] of a figure of each sentence and of its recording, by source.

    Their ratio is that of sums over sentences: a short sentence with an odd ratio weighs little.
    """
    found = session.shared(frames)
    natural = [measure(one) for one in found[RECORDED]]
    return {
        source: np.column_stack([[measure(one) for one in found[source]], natural])
        for source in (SPEECH, RESYNTHESIS)
        if source in found
    }


def runs(flags: np.ndarray, least: int = 1) -> np.ndarray:
    """The begin and the end [runs, 2] of each run of at least so many flags [frames]."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False])).reshape(-1, 2)
    return edges[edges[:, 1] - edges[:, 0] >= least]
