"""Whose voice is heard: what a model says in several voices, against recordings of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec

Recordings = Sequence[np.ndarray]
# Recordings and their sample rate -> the embedding of each, or what is wrong with it.
Embed = Callable[[Recordings, int], Sequence[np.ndarray | AudioError]]
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


@dataclass(frozen=True, slots=True)
class Spread:
    """How some cosines are spread; NaN where there are none."""

    mean: float
    low: float  # 5 % are below
    median: float
    high: float  # 5 % are above
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class VoiceCosines:
    """Sorted cosines between single recordings: of one voice, and of different ones."""

    same: np.ndarray
    different: np.ndarray
    # What tells voices apart best: as many pairs of one voice are below it as others are not.
    threshold: float  # NaN without others
    equal_error_rate: float  # the share of pairs that are on its wrong side


@dataclass(frozen=True, slots=True)
class VoicePlace:
    """Where a model's sentences are among recordings; NaN where there is nothing to compare with.

    A percentile is that of a sentence beside a recording of the voice, in the mean over all such
    pairs: 50 among pairs of one voice is as near as recordings of it are to each other.
    """

    sentences: int  # in which a voice is heard at all; the others do not count
    similarity: float  # the mean cosine to recordings of the voice
    among_same: float
    among_different: float
    accepted: float  # share of pairs that the threshold takes for one voice


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


def compare_recordings(
    known: Mapping[str, Recordings], embed: Embed, sample_rate: int
) -> VoiceCosines:
    """Compare each recording of some voices with all others, by an encoder."""
    groups = [_heard(embed(list(group), sample_rate)) for group in known.values()]
    if not any(groups):
        raise ValueError("there is no recording in which a voice is heard")
    voices = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    vectors = _units([vector for group in groups for vector in group])
    first, second = np.triu_indices(len(vectors), k=1)
    cosines = (vectors @ vectors.T)[first, second]
    is_same = voices[first] == voices[second]
    same, different = np.sort(cosines[is_same]), np.sort(cosines[~is_same])
    return VoiceCosines(same, different, *_equal_error(same, different))


def spread(cosines: np.ndarray) -> Spread:
    """Sum up cosines in some figures."""
    if not len(cosines):
        return Spread(*[math.nan] * 4, pairs=0)
    low, median, high = np.quantile(cosines, (0.05, 0.5, 0.95)).tolist()
    return Spread(float(np.mean(cosines)), low, median, high, len(cosines))


def place_voice(
    spoken: Recordings, recorded: Recordings, among: VoiceCosines, embed: Embed, sample_rate: int
) -> VoicePlace:
    """Place what a model says in a voice among the cosines of recordings.

    The voice's own recordings should say other sentences than the model, as do most pairs of
    recordings.
    """
    said, own = (_heard(embed(list(part), sample_rate)) for part in (spoken, recorded))
    if not said or not own:
        return VoicePlace(len(said), *[math.nan] * 4)
    cosines = _units(said) @ _units(own).T
    is_known = math.isfinite(among.threshold)
    return VoicePlace(
        len(said),
        float(cosines.mean()),
        _percentile(cosines, among.same),
        _percentile(cosines, among.different),
        float(np.mean(cosines >= among.threshold)) if is_known else math.nan,
    )


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


def _equal_error(same: np.ndarray, different: np.ndarray) -> tuple[float, float]:
    """The threshold at which both errors are equal, or nearly so, and their mean there."""
    if not len(same) or not len(different):
        return math.nan, math.nan
    thresholds = np.union1d(same, different)
    rejected = np.searchsorted(same, thresholds) / len(same)
    accepted = 1.0 - np.searchsorted(different, thresholds) / len(different)
    best = np.abs(rejected - accepted).argmin()
    # All between this one and the one below it part the pairs alike.
    middle = thresholds[max(0, best - 1) : best + 1].mean()
    return float(middle), float(rejected[best] + accepted[best]) / 2


def _percentile(cosines: np.ndarray, among: np.ndarray) -> float:
    """The mean share, of 100, of sorted cosines that are less; equal ones count half."""
    if not len(among):
        return math.nan
    below = np.searchsorted(among, cosines, "left") + np.searchsorted(among, cosines, "right")
    return float(100.0 * below.mean() / (2 * len(among)))


def _share_nearest(vectors: np.ndarray, centroids: np.ndarray, own: int) -> float:
    return float(np.mean(np.argmax(vectors @ centroids.T, axis=1) == own))


def _heard(found: Sequence[np.ndarray | AudioError]) -> list[np.ndarray]:
    """The embeddings without those of recordings in which nobody is heard."""
    return [one for one in found if not isinstance(one, AudioError)]


def _units(vectors: Sequence[np.ndarray]) -> np.ndarray:
    rows = np.stack([np.asarray(vector, np.float64) for vector in vectors])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
