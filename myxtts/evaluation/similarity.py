"""Whose voice is heard: what a model says in several voices, against recordings of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec

Recordings = Sequence[np.ndarray]
# Recordings and their sample rate -> the embedding of each.
Embed = Callable[[Recordings, int], Sequence[np.ndarray]]
# A pitch heard in fewer of the frames is a tracker's accident: the voice is hoarse.
LEAST_VOICED = 0.05


@dataclass(frozen=True, eq=False)
class VoiceTrial:
    """Sentences in one voice: as the model says them, as recorded, and as a vocoder copies that."""

    name: str
    spoken: Recordings
    recorded: Recordings
    copied: Recordings


@dataclass(frozen=True, slots=True)
class VoiceScore:
    """How much one voice is itself; similarities are mean cosines to other recordings of it."""

    name: str
    right: float  # share of the model's sentences that are nearest to this voice
    right_copied: float  # the same of the copies: what the vocoder leaves to be told
    similarity: float
    copied_similarity: float
    natural_similarity: float
    nearest_stranger: float  # the greatest mean cosine of the model's sentences to another voice
    pitch_ratio: float  # median pitch over that of the copies; NaN where there is none to hear

    @property
    def share(self) -> float:
        """The similarity, as a share of what recordings of one voice have among each other."""
        return self.similarity / self.natural_similarity


def score_voices(
    trials: Sequence[VoiceTrial],
    known: Mapping[str, Recordings],
    embed: Embed,
    spec: AudioSpec,
) -> list[VoiceScore]:
    """Judge each trial by an encoder, among voices of which other recordings are known."""
    names = list(known)
    examples = {name: _units(embed(list(known[name]), spec.sample_rate)) for name in names}
    centroids = _units([rows.mean(axis=0) for rows in examples.values()])
    return [_score(trial, names, examples, centroids, embed, spec) for trial in trials]


def mean_score(scores: Sequence[VoiceScore], name: str) -> VoiceScore:
    """The means over voices; of the pitch, how far off it is on average, as a ratio above 1.

    Voices in which no pitch is heard do not count there: `pitched` counts the others.
    """
    fields = [
        *("right", "right_copied", "similarity", "copied_similarity"),
        *("natural_similarity", "nearest_stranger"),
    ]
    means = {field: float(np.mean([getattr(one, field) for one in scores])) for field in fields}
    off = [abs(math.log(one.pitch_ratio)) for one in pitched(scores)]
    ratio = math.exp(np.mean(off)) if off else math.nan
    return VoiceScore(name, **means, pitch_ratio=ratio)


def pitched(scores: Sequence[VoiceScore]) -> list[VoiceScore]:
    """The voices in which a pitch is heard."""
    return [one for one in scores if math.isfinite(one.pitch_ratio)]


def median_pitch(recordings: Recordings, spec: AudioSpec) -> float:
    """The median F0 in Hz over all voiced frames; NaN where hardly any is voiced."""
    found = np.concatenate([pitch(samples, spec) for samples in recordings])
    is_voiced = found > 0
    return float(np.median(found[is_voiced])) if is_voiced.mean() >= LEAST_VOICED else math.nan


def _score(
    trial: VoiceTrial,
    names: list[str],
    examples: Mapping[str, np.ndarray],
    centroids: np.ndarray,
    embed: Embed,
    spec: AudioSpec,
) -> VoiceScore:
    own = names.index(trial.name)
    spoken, recorded, copied = (
        _units(embed(list(part), spec.sample_rate))
        for part in (trial.spoken, trial.recorded, trial.copied)
    )
    to_others = np.array(
        [(spoken @ examples[name].T).mean() for name in names if name != trial.name]
    )
    return VoiceScore(
        trial.name,
        right=_share_nearest(spoken, centroids, own),
        right_copied=_share_nearest(copied, centroids, own),
        similarity=float((spoken @ examples[trial.name].T).mean()),
        copied_similarity=float((copied @ examples[trial.name].T).mean()),
        natural_similarity=float((recorded @ examples[trial.name].T).mean()),
        nearest_stranger=float(to_others.max()) if len(to_others) else float("nan"),
        pitch_ratio=median_pitch(trial.spoken, spec) / median_pitch(trial.copied, spec),
    )


def _share_nearest(vectors: np.ndarray, centroids: np.ndarray, own: int) -> float:
    return float(np.mean(np.argmax(vectors @ centroids.T, axis=1) == own))


def _units(vectors: Sequence[np.ndarray]) -> np.ndarray:
    rows = np.stack([np.asarray(vector, np.float64) for vector in vectors])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
