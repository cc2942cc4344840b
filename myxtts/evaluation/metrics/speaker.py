"""Whether speech sounds like its speaker: its embeddings against those of recordings."""

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
# Recordings and their sample rate -> the embedding of each, or what is wrong with it.
Embed = Callable[[Recordings, int], Sequence[np.ndarray | AudioError]]
# A pitch in fewer of the frames is a tracker's accident: the voice is hoarse.
LEAST_VOICED = 0.05


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
    """Sorted cosines between single recordings: of one speaker, and of different ones."""

    same: np.ndarray
    different: np.ndarray
    # What tells speakers apart best: as many pairs of one speaker are below it as others are not.
    threshold: float  # NaN without others
    equal_error_rate: float  # the share of pairs that are on its wrong side


@dataclass(frozen=True, slots=True)
class VoicePlace:
    """Where a model's sentences are among recordings; NaN where there is nothing to compare with.

    A percentile is that of a sentence next to a recording of the voice, in the mean over all such
    pairs: 50 among pairs of one voice is as near as recordings of it are to each other.
    """

    sentences: int  # in which a voice is heard at all; the others do not count
    similarity: float  # the mean cosine to recordings of the voice
    among_same: float
    among_different: float
    accepted: float  # share of pairs that the threshold takes for one voice


@dataclass(frozen=True, slots=True, eq=False)
class SpeakerFindings:
    """How near each sentence of each source is to the recordings of all speakers that are known.

    `cosines` [sentences, speakers] are means over a speaker's recordings; `is_right` [sentences]
    is 1 where the speaker's own mean embedding is the nearest. NaN where no voice is heard, or
    where there is none other to be near to.
    """

    speakers: tuple[str, ...]
    cosines: Mapping[str, np.ndarray]
    is_right: Mapping[str, np.ndarray]
    own: np.ndarray  # [sentences]: the number of its speaker
    among: VoiceCosines
    place: VoicePlace


def similarity(session: "Session") -> dict[str, np.ndarray]:
    """The mean cosine of each sentence to recordings of its speaker that say something else."""
    found = session.shared(compare_speakers)
    rows = np.arange(len(found.own))
    return {source: cosines[rows, found.own] for source, cosines in found.cosines.items()}


def right_speaker(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is nearest to its own speaker, of all that are known."""
    return dict(session.shared(compare_speakers).is_right)


def compare_speakers(session: "Session") -> SpeakerFindings:
    """Embed all that is judged, and recordings of the known speakers, each of them once."""
    subject, rate = session.subject, session.sample_rate
    known = {name: list(own) for name, own in subject.known.items() if len(own)}
    names = tuple(known)
    with session.watch("comparing speakers", "recordings") as report:
        embed = _EachOnce(session.judges.embed, report)
        among = compare_recordings(known, embed, rate)
        examples = [_all_units(embed(known[name], rate)) for name in names]
        cosines, is_right = {}, {}
        for source, speech in session.judged.items():
            vectors = _all_units(embed(speech, rate))
            cosines[source] = np.array(
                [
                    [_mean_cosine(vector, examples[n], known[name], one.recorded)
                     for n, name in enumerate(names)]
                    for vector, one in zip(vectors, subject.sentences, strict=True)
                ]
            )  # fmt: skip
            is_right[source] = _is_right(
                vectors, examples, [names.index(one.speaker) for one in subject.sentences]
            )
        places = [
            place_voice([one.spoken], _others(known[one.speaker], one.recorded), among, embed, rate)
            for one in subject.sentences
        ]
    own = np.array([names.index(one.speaker) for one in subject.sentences])
    return SpeakerFindings(names, cosines, is_right, own, among, _mean_place(places))


class _EachOnce:
    """An encoder that embeds no recording twice; those that it has embedded must stay in memory."""

    def __init__(self, embed: Embed, report: Callable[[int, int], None]):
        self._embed, self._report = embed, report
        self._found: dict[int, np.ndarray | AudioError] = {}

    def __call__(self, recordings: Recordings, sample_rate: int) -> list[np.ndarray | AudioError]:
        new = {id(one): one for one in recordings if id(one) not in self._found}
        found = self._embed(list(new.values()), sample_rate) if new else []
        self._found.update(zip(new, found, strict=True))
        self._report(len(self._found), len(self._found))
        return [self._found[id(one)] for one in recordings]


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


def median_pitch(recordings: Recordings, spec: AudioSpec) -> float:
    """The median F0 in Hz over all voiced frames; NaN where hardly any is voiced."""
    found = np.concatenate([pitch(samples, spec) for samples in recordings])
    is_voiced = found > 0
    return float(np.median(found[is_voiced])) if is_voiced.mean() >= LEAST_VOICED else math.nan


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


def _all_units(found: Sequence[np.ndarray | AudioError]) -> list[np.ndarray | None]:
    """The embeddings, each of length 1; None of recordings in which nobody is heard."""
    return [None if isinstance(one, AudioError) else _units([one])[0] for one in found]


def _others(recordings: Recordings, recorded: np.ndarray | None) -> list[np.ndarray]:
    """The recordings but the one of the same words."""
    return [one for one in recordings if one is not recorded]


def _mean_cosine(
    vector: np.ndarray | None,
    examples: Sequence[np.ndarray | None],
    recordings: Recordings,
    recorded: np.ndarray | None,
) -> float:
    """The mean cosine of a sentence to recordings but the one of the same words."""
    others = [
        example
        for example, one in zip(examples, recordings, strict=True)
        if example is not None and one is not recorded
    ]
    if vector is None or not others:
        return math.nan
    return float(np.mean(np.stack(others) @ vector))


def _is_right(
    vectors: Sequence[np.ndarray | None],
    examples: Sequence[Sequence[np.ndarray | None]],
    own: Sequence[int],
) -> np.ndarray:
    heard = [[one for one in some if one is not None] for some in examples]
    if sum(map(bool, heard)) < 2:
        return np.full(len(vectors), math.nan)
    # Unheard speakers have a mean of zeros, which must not win over negative cosines.
    size = len(next(some[0] for some in heard if some))
    means = np.array([np.mean(some, axis=0) if some else np.zeros(size) for some in heard])
    lengths = np.linalg.norm(means, axis=1)

    def nearest(vector: np.ndarray) -> int:
        cosines = np.divide(
            means @ vector, lengths, out=np.full(len(means), -np.inf), where=lengths > 0
        )
        return int(cosines.argmax())

    return np.array(
        [
            math.nan if vector is None else float(nearest(vector) == number)
            for vector, number in zip(vectors, own, strict=True)
        ]
    )


def _mean_place(places: Sequence[VoicePlace]) -> VoicePlace:
    """The means over sentences that have a place."""
    fields = ("similarity", "among_same", "among_different", "accepted")
    rows = [[getattr(one, name) for name in fields] for one in places]
    found = np.array([row for row in rows if math.isfinite(row[0])]).reshape(-1, len(fields))
    return VoicePlace(len(found), *(found.mean(axis=0) if len(found) else [math.nan] * 4))


def _heard(found: Sequence[np.ndarray | AudioError]) -> list[np.ndarray]:
    """The embeddings without those of recordings in which nobody is heard."""
    return [one for one in found if not isinstance(one, AudioError)]


def _units(vectors: Sequence[np.ndarray]) -> np.ndarray:
    rows = np.stack([np.asarray(vector, np.float64) for vector in vectors])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
