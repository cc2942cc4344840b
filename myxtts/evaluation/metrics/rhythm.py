"""Rhythm: how varied durations of the same sound are, and where speech pauses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.evaluation.metrics.frames import Frames, frames, runs
from myxtts.evaluation.metrics.robustness import LEAST_SEEN
from myxtts.evaluation.metrics.spectral import warp_mels
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
from myxtts.monitoring.cores import map_on_cores

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

LEAST_PAUSE = 0.15  # seconds; closures of stops are shorter


@dataclass(frozen=True, slots=True)
class PauseCounts:
    """The pauses of a sentence next to those of its recording; NaN where one is silent."""

    spoken: float  # pauses of the speech
    recorded: float
    added: float  # pauses of the speech where the recording has none
    missed: float  # pauses of the recording where the speech has none
    spoken_seconds: float  # of pauses that both have
    recorded_seconds: float


def pauses(session: "Session") -> dict[str, list[PauseCounts]]:
    """The pauses of each sentence of the speech, and of the resynthesis."""
    found = session.shared(frames)
    names = [name for name in (SPEECH, RESYNTHESIS) if name in found]
    pairs = [pair for name in names for pair in zip(found[name], found[RECORDED], strict=True)]
    counts = iter(map_on_cores(lambda pair: compare_pauses(*pair), pairs))
    return {name: [next(counts) for _ in found[name]] for name in names}


def duration_variety(session: "Session") -> dict[str, np.ndarray]:
    """Pairs [tokens, 2] of the variation of each frequent token's durations: spoken, recorded."""
    sentences, aligned = session.subject.sentences, session.subject.alignments
    spoken = variation([one.tokens for one in sentences], [one.durations for one in sentences])
    recorded = variation(
        [one.tokens for one in aligned], [one.aligned_durations for one in aligned]
    )
    both = sorted(spoken.keys() & recorded.keys())
    return {SPEECH: np.array([(spoken[one], recorded[one]) for one in both]).reshape(-1, 2)}


def variation(tokens: Sequence[np.ndarray], durations: Sequence[np.ndarray]) -> dict[int, float]:
    """The coefficient of variation of the durations of each token that is frequent enough."""
    tokens, durations = np.concatenate(tokens), np.concatenate(durations)
    found, counts = np.unique(tokens, return_counts=True)
    own = {int(token): durations[tokens == token] for token in found[counts >= LEAST_SEEN]}
    return {token: float(some.std() / some.mean()) for token, some in own.items() if some.any()}


def compare_pauses(spoken: Frames, recorded: Frames) -> PauseCounts:
    """Match pauses along the time warping of the two: those that meet are the same pause."""
    if not len(spoken.mel) or not len(recorded.mel):
        return PauseCounts(*[math.nan] * 6)
    own, natural = find_pauses(spoken), find_pauses(recorded)
    has_match, is_matched = np.zeros(len(own), bool), np.zeros(len(natural), bool)
    if len(own) and len(natural):
        _, path = warp_mels(spoken.mel, recorded.mel)
        meets = _inside(path[:, 0], own).T @ _inside(path[:, 1], natural)
        has_match, is_matched = meets.any(axis=1), meets.any(axis=0)
    return PauseCounts(
        spoken=len(own),
        recorded=len(natural),
        added=float(np.sum(~has_match)),
        missed=float(np.sum(~is_matched)),
        spoken_seconds=_frames_of(own[has_match]) / spoken.rate,
        recorded_seconds=_frames_of(natural[is_matched]) / recorded.rate,
    )


def find_pauses(frames: Frames) -> np.ndarray:
    """The begin and the end [pauses, 2], in frames, of silence between sounds."""
    found = runs(~frames.is_loud, math.ceil(LEAST_PAUSE * frames.rate))
    return found[(found[:, 0] > 0) & (found[:, 1] < len(frames.level))]


def _inside(places: np.ndarray, pauses: np.ndarray) -> np.ndarray:
    """Whether each frame of a path [steps] is in each pause: [steps, pauses]."""
    return (places[:, np.newaxis] >= pauses[:, 0]) & (places[:, np.newaxis] < pauses[:, 1])


def _frames_of(pauses: np.ndarray) -> float:
    return float(np.sum(pauses[:, 1] - pauses[:, 0]))
