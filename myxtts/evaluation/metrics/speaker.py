"""Speaker similarity: the embeddings of speech compared with those of recordings."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

Recordings = Sequence[np.ndarray]
Embedding = np.ndarray | None  # of length 1; None without speech
# Recordings and their sample rate -> the embedding of each, or an error.
Embed = Callable[[Recordings, int], Sequence[np.ndarray | AudioError]]
# A pitch in a smaller share of frames is an error of the tracker: the voice is hoarse.
LEAST_VOICED = 0.05


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of cosines; NaN where there are none."""

    mean: float
    low: float  # 5 % are below
    median: float
    high: float  # 5 % are above
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class VoiceCosines:
    """Sorted cosines between single recordings: of one speaker, and of different ones."""

    same: np.ndarray
    different: np.ndarray
    threshold: float  # where both kinds of errors are equal; NaN with a single speaker
    equal_error_rate: float  # the share of pairs on the wrong side of it


@dataclass(frozen=True, slots=True)
class VoicePlace:
    """How a model's sentences compare with recordings; NaN where there is nothing to compare.

    Percentiles are means over all pairs of a sentence and a recording of its speaker. 50 among
    pairs of one speaker is as similar as recordings of one speaker are to each other.
    """

    sentences: int  # with speech; the others do not count
    similarity: float  # the mean cosine to recordings of the speaker
    among_same: float
    among_different: float
    accepted: float  # share of pairs above the threshold


@dataclass(frozen=True, slots=True, eq=False)
class SpeakerFindings:
    """How similar each sentence of each source is to the recordings of all known speakers.

    `cosines` [sentences, speakers] are means over a speaker's recordings; `is_right` [sentences]
    is 1 where the speaker's own mean embedding is the nearest. NaN without speech, or without
    another recording or speaker to compare with.
    """

    speakers: tuple[str, ...]
    cosines: Mapping[str, np.ndarray]
    is_right: Mapping[str, np.ndarray]
    own: np.ndarray  # [sentences]: the index of its speaker
    among: VoiceCosines
    place: VoicePlace


def similarity(session: "Session") -> dict[str, np.ndarray]:
    """The mean cosine of each sentence to recordings of its speaker that say something else."""
    found = session.shared(compare_speakers)
    rows = np.arange(len(found.own))
    return {source: cosines[rows, found.own] for source, cosines in found.cosines.items()}


def right_speaker(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is nearest to its own speaker, of all known ones."""
    return dict(session.shared(compare_speakers).is_right)


def compare_speakers(session: "Session") -> SpeakerFindings:
    """Compare all that is judged with recordings of the known speakers."""
    sentences, judged = session.subject.sentences, session.judged
    known = {name: list(own) for name, own in session.subject.known.items() if len(own)}
    embeddings = _embed(session, [*known.values(), *judged.values()])

    def others(speaker: str, recorded: np.ndarray | None) -> list[Embedding]:
        """The embeddings of a speaker's recordings, without the one of the same words."""
        return [embeddings[id(one)] for one in known[speaker] if one is not recorded]

    examples = [others(name, None) for name in known]
    among = compare_recordings(examples)
    own = np.array([list(known).index(one.speaker) for one in sentences])
    cosines, is_right = {}, {}
    for source, speech in judged.items():
        vectors = [embeddings[id(one)] for one in speech]
        cosines[source] = np.array(
            [
                [_mean_cosine(vector, others(name, one.recorded)) for name in known]
                for vector, one in zip(vectors, sentences, strict=True)
            ]
        )
        is_right[source] = _is_right(vectors, examples, own)
    places = [
        place_voice([embeddings[id(one.spoken)]], others(one.speaker, one.recorded), among)
        for one in sentences
    ]
    return SpeakerFindings(tuple(known), cosines, is_right, own, among, _mean_place(places))


def _embed(session: "Session", groups: Sequence[Recordings]) -> dict[int, Embedding]:
    """The embeddings of recordings by their `id`; none is computed twice."""
    found: dict[int, Embedding] = {}
    with session.watch("comparing speakers", "recordings") as report:
        for group in groups:
            new = {id(one): one for one in group if id(one) not in found}
            vectors = session.judges.embed(list(new.values()), session.sample_rate) if new else []
            found.update(zip(new, map(unit, vectors), strict=True))
            report(len(found), len(found))
    return found


def unit(found: np.ndarray | AudioError) -> Embedding:
    """What an encoder returned for a recording, scaled to length 1."""
    if isinstance(found, AudioError):
        return None
    vector = np.asarray(found, np.float64)
    return vector / np.linalg.norm(vector)


def compare_recordings(groups: Sequence[Sequence[Embedding]]) -> VoiceCosines:
    """Compare each recording of some speakers with all others."""
    heard = [_heard(group) for group in groups]
    if not any(heard):
        raise ValueError("no recording contains speech")
    speakers = np.repeat(np.arange(len(heard)), list(map(len, heard)))
    vectors = np.array([vector for group in heard for vector in group])
    first, second = np.triu_indices(len(vectors), k=1)
    cosines = (vectors @ vectors.T)[first, second]
    is_same = speakers[first] == speakers[second]
    same, different = np.sort(cosines[is_same]), np.sort(cosines[~is_same])
    return VoiceCosines(same, different, *_equal_error(same, different))


def spread(cosines: np.ndarray) -> Spread:
    """Summarise cosines."""
    if not len(cosines):
        return Spread(*[math.nan] * 4, pairs=0)
    low, median, high = np.quantile(cosines, (0.05, 0.5, 0.95)).tolist()
    return Spread(float(np.mean(cosines)), low, median, high, len(cosines))


def place_voice(
    spoken: Sequence[Embedding], recorded: Sequence[Embedding], among: VoiceCosines
) -> VoicePlace:
    """Compare a model's speech as a speaker with the cosines of recordings.

    The speaker's recordings should have other texts, as most pairs of recordings do.
    """
    said, own = _heard(spoken), _heard(recorded)
    if not said or not own:
        return VoicePlace(len(said), *[math.nan] * 4)
    cosines = np.array(said) @ np.array(own).T
    is_known = math.isfinite(among.threshold)
    return VoicePlace(
        len(said),
        float(cosines.mean()),
        _percentile(cosines, among.same),
        _percentile(cosines, among.different),
        float(np.mean(cosines >= among.threshold)) if is_known else math.nan,
    )


def median_pitch(recordings: Recordings, spec: AudioSpec) -> float:
    """The median F0 in Hz over all voiced frames; NaN where almost none is voiced."""
    found = np.concatenate([pitch(samples, spec) for samples in recordings])
    is_voiced = found > 0
    return float(np.median(found[is_voiced])) if is_voiced.mean() >= LEAST_VOICED else math.nan


def _equal_error(same: np.ndarray, different: np.ndarray) -> tuple[float, float]:
    """The threshold where both error rates are (almost) equal, and their mean there."""
    if not len(same) or not len(different):
        return math.nan, math.nan
    thresholds = np.union1d(same, different)
    rejected = np.searchsorted(same, thresholds) / len(same)
    accepted = 1.0 - np.searchsorted(different, thresholds) / len(different)
    best = np.abs(rejected - accepted).argmin()
    # All thresholds between this one and the one below it split the pairs in the same way.
    middle = thresholds[max(0, best - 1) : best + 1].mean()
    return float(middle), float(rejected[best] + accepted[best]) / 2


def _percentile(cosines: np.ndarray, among: np.ndarray) -> float:
    """The mean percentage of sorted cosines that are smaller; equal ones count half."""
    if not len(among):
        return math.nan
    below = np.searchsorted(among, cosines, "left") + np.searchsorted(among, cosines, "right")
    return float(100.0 * below.mean() / (2 * len(among)))


def _heard(embeddings: Sequence[Embedding]) -> list[np.ndarray]:
    return [one for one in embeddings if one is not None]


def _mean_cosine(vector: Embedding, others: Sequence[Embedding]) -> float:
    heard = _heard(others)
    return math.nan if vector is None or not heard else float(np.mean(np.array(heard) @ vector))


def _is_right(
    vectors: Sequence[Embedding], examples: Sequence[Sequence[Embedding]], own: np.ndarray
) -> np.ndarray:
    """1 for each vector whose own speaker has the nearest mean; NaN without other speakers."""
    heard = {number: some for number, some in enumerate(map(_heard, examples)) if some}
    if len(heard) < 2:
        return np.full(len(vectors), math.nan)
    numbers = np.array(list(heard))
    directions = np.array([unit(np.mean(some, axis=0)) for some in heard.values()])
    return np.array(
        [
            math.nan if vector is None else float(numbers[(directions @ vector).argmax()] == number)
            for vector, number in zip(vectors, own, strict=True)
        ]
    )


def _mean_place(places: Sequence[VoicePlace]) -> VoicePlace:
    """The means over sentences with speech."""
    fields = ("similarity", "among_same", "among_different", "accepted")
    rows = [[getattr(one, name) for name in fields] for one in places]
    found = np.array([row for row in rows if math.isfinite(row[0])]).reshape(-1, len(fields))
    return VoicePlace(len(found), *(found.mean(axis=0) if len(found) else [math.nan] * 4))
