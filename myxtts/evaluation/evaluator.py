"""One evaluation: speech under every measure that can run, beside the ceilings of recordings."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.config.audio_spec import AudioSpec
from myxtts.data.corpus.utterance import Utterance
from myxtts.errors import UserError
from myxtts.evaluation.asr import Asr, Recording, error_rates, time_first
from myxtts.evaluation.ceilings import CeilingCache, answers
from myxtts.evaluation.metrics.confidence import Interval, interval, ratio_of_sums
from myxtts.evaluation.metrics.quality import Dnsmos, QualityScore
from myxtts.evaluation.metrics.robustness import (
    Attempt,
    FaultCounts,
    Faults,
    Pace,
    count_faults,
    find_faults,
)
from myxtts.evaluation.metrics.speaker import (
    Embed,
    Recordings,
    VoiceCosines,
    VoicePlace,
    compare_recordings,
    place_voice,
)
from myxtts.evaluation.metrics.spectral import SpeechLikeness, compare_speech, measure_levels
from myxtts.evaluation.trial import joined
from myxtts.monitoring.cores import available_cores

SPEECH, RECORDINGS, COPIES = "speech", "recordings", "copies"
LISTENING, RATING, COMPARING = "listening", "rating", "comparing"
LEVELS, VOICES, ROBUSTNESS = "levels", "voices", "robustness"

# Opens what shows progress, by a title and a unit.
Watch = Callable[[str, str], AbstractContextManager[Callable[[int, int], None]]]


class Kind(NamedTuple):
    """A measure: its title, its digits, and whether less of it is better, more of it, or neither.

    Its part is what has to run for it.
    """

    title: str
    part: str
    digits: int
    better: str = ""


# In the order in which they are shown.
KINDS = {
    "wer": Kind("WER", LISTENING, 3, "less"),
    "cer": Kind("CER", LISTENING, 3, "less"),
    "mos": Kind("DNSMOS overall", RATING, 2, "more"),
    "mos_signal": Kind("DNSMOS signal", RATING, 2, "more"),
    "mos_background": Kind("DNSMOS background", RATING, 2, "more"),
    "mcd": Kind("MCD, dB", COMPARING, 2, "less"),
    "f0_correlation": Kind("F0 correlation", COMPARING, 3, "more"),
    "f0_rmse": Kind("F0 RMSE, cents", COMPARING, 0, "less"),
    "voicing_error": Kind("voicing error", COMPARING, 3, "less"),
    "warped_estoi": Kind("warped ESTOI", COMPARING, 3, "more"),
    "length_ratio": Kind("length ratio", COMPARING, 3),
    "similarity": Kind("speaker similarity", VOICES, 3, "more"),
    "loudness": Kind("loudness, dBFS", LEVELS, 1),
    "peak": Kind("peak", LEVELS, 3),
    "clipped": Kind("clipped share", LEVELS, 5, "less"),
    "silent": Kind("silent share", LEVELS, 3),
    "longest_pause": Kind("longest pause, s", LEVELS, 2),
    "dc_offset": Kind("DC offset", LEVELS, 5),
}


@dataclass(frozen=True, eq=False)
class Sentence:
    """What was to be said and how it was, as samples, in a speaker's voice.

    Where there is a recording of the same words, it and a vocoder's copy of it are the ceilings.
    """

    id: str
    text: str
    spoken: np.ndarray
    speaker: str = ""
    recorded: np.ndarray | None = None
    copied: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class HardSpeech:
    """Hard texts as a voice said them, the samples of each, and its pace in other texts."""

    attempts: Sequence[Attempt]
    spoken: Recordings
    pace: Pace


@dataclass(frozen=True, eq=False)
class Subject:
    """What is judged, all of it at the spec's rate.

    Of its speakers other recordings than those of its sentences are known. What is missing for a
    part has its reason under the part's name. Without ceilings recordings are compared with, but
    not judged themselves.
    """

    what: str
    language: str
    spec: AudioSpec
    sentences: Sequence[Sentence]
    vocoder: str = ""
    known: Mapping[str, Recordings] = field(default_factory=dict)
    hard: HardSpeech | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    has_ceilings: bool = True


@dataclass(frozen=True, eq=False)
class Judges:
    """What hears, rates and knows voices, as far as it is at hand; the reason where it is not."""

    asr: Asr | None = None
    rater: Dnsmos | None = None
    embed: Embed | None = None
    encoder: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Measure:
    """What was measured of speech, recordings and copies.

    `values` are those of each sentence, NaN where it has none; of a rating, those of recordings
    that sentences were joined to.
    """

    name: str
    values: Mapping[str, np.ndarray]
    intervals: Mapping[str, Interval]

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All that was found out; `heard` are texts by what was listened to."""

    subject: Subject
    measures: Mapping[str, Measure]
    heard: Mapping[str, Sequence[str]]
    attempts: Sequence[Attempt]
    faults: Sequence[Faults]
    cosines: VoiceCosines | None
    place: VoicePlace | None
    judges: Mapping[str, str]
    not_measured: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def fault_counts(self) -> list[FaultCounts]:
        return count_faults(self.faults) if self.faults else []

    def scores(self) -> dict[str, float]:
        """The figures of the speech alone, by their names, without those that have none."""
        found = {name: one.intervals[SPEECH].value for name, one in self.measures.items()}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def ranked(self) -> list[int]:
        """The numbers of the sentences, the best first: by what was understood, else by the MCD."""
        for name in ("cer", "mcd"):
            if name in self.measures:
                values = self.measures[name].values[SPEECH]
                return np.argsort(np.nan_to_num(values, nan=np.inf), kind="stable").tolist()
        return list(range(len(self.subject.sentences)))


def choose_utterances(utterances: Sequence[Utterance], count: int) -> list[Utterance]:
    """Some utterances, in their order, that depend on their ids alone."""
    by_hash = sorted(utterances, key=lambda one: blake2b(one.id.encode()).digest())
    chosen = {one.id for one in by_hash[:count]}
    return [one for one in utterances if one.id in chosen]


def evaluate(
    subject: Subject,
    judges: Judges,
    watch: Watch | None = None,
    cache: CeilingCache | None = None,
    announce: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure what can be measured; what cannot says why. A UserError ends its own part alone.

    Recordings and copies that the cache knows are not judged again. How long listening will take
    is announced.
    """
    return _Run(subject, judges, watch or _unwatched, cache, announce).run()


class _Run:
    """One evaluation while it goes on."""

    def __init__(
        self,
        subject: Subject,
        judges: Judges,
        watch: Watch,
        cache: CeilingCache | None = None,
        announce: Callable[[str], None] | None = None,
    ):
        self.subject, self.judges, self.watch = subject, judges, watch
        self.cache, self.announce = cache, announce
        self.values: dict[str, dict[str, np.ndarray]] = {}
        self.sums: dict[str, dict[str, np.ndarray]] = {}
        self.heard: dict[str, list[str]] = {}
        self.attempts = list(subject.hard.attempts) if subject.hard else []
        self.faults: list[Faults] = []
        self.cosines: VoiceCosines | None = None
        self.place: VoicePlace | None = None
        self.not_measured: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    def run(self) -> Evaluation:
        parts = {
            LISTENING: self._listen,
            RATING: self._rate,
            COMPARING: self._compare,
            VOICES: self._tell_voices,
            ROBUSTNESS: self._find_faults,
            LEVELS: self._measure_levels,
        }
        for name, measure in parts.items():
            began = time.monotonic()
            try:
                self._need(name)
                measure()
            except UserError as error:
                self.not_measured[name] = str(error)
            self.seconds[name] = time.monotonic() - began
        named = {
            LISTENING: self.judges.asr and self.judges.asr.name,
            RATING: self.judges.rater and self.judges.rater.name,
            VOICES: self.judges.encoder,
        }
        return Evaluation(
            self.subject,
            {name: self._measure(name) for name in KINDS if name in self.values},
            self.heard,
            self.attempts,
            self.faults,
            self.cosines,
            self.place,
            {part: name for part, name in named.items() if name},
            self.not_measured,
            self.seconds,
        )

    def _need(self, part: str) -> None:
        for absent in (self.subject.absent, self.judges.absent):
            if part in absent:
                raise UserError(absent[part])

    def _measure(self, name: str) -> Measure:
        if name in self.sums:
            sums = self.sums[name]
            intervals = {source: interval(sums[source], ratio_of_sums) for source in sums}
        else:
            intervals = {source: interval(found) for source, found in self.values[name].items()}
        return Measure(name, self.values[name], intervals)

    def _sources(self) -> dict[str, list[np.ndarray]]:
        """The speech, and its recordings and their copies where every sentence has one."""
        sentences = self.subject.sentences
        found = {
            SPEECH: [one.spoken for one in sentences],
            RECORDINGS: [one.recorded for one in sentences],
            COPIES: [one.copied for one in sentences],
        }
        return {name: some for name, some in found.items() if all(one is not None for one in some)}

    def _judged(self) -> dict[str, list[np.ndarray]]:
        """The sources that are judged by themselves."""
        sources = self._sources()
        return sources if self.subject.has_ceilings else {SPEECH: sources[SPEECH]}

    def _listen(self) -> None:
        """WER and CER of all sources; what is heard in hard texts is kept for their faults."""
        if self.judges.asr is None:
            raise UserError(f"there is no ASR for {self.subject.language!r}")
        rate, sources = self.subject.spec.sample_rate, self._judged()
        hard = list(self.subject.hard.spoken) if self.subject.hard else []
        speech = [one for part in sources.values() for one in part] + hard
        asr, recordings = self.judges.asr, [(samples, rate) for samples in speech]
        is_kept = [name != SPEECH for name, part in sources.items() for _ in part]
        is_kept += [False] * len(hard)
        texts = iter(
            answers(self.cache, lambda: asr.identity, recordings, is_kept, self._transcribe)
        )
        said = [one.text for one in self.subject.sentences]
        for source, part in sources.items():
            self.heard[source] = [next(texts) for _ in part]
        self.attempts = [replace(one, heard=next(texts)) for one in self.attempts]
        for source, heard in self.heard.items():
            rates = error_rates(said, heard, self.subject.language)
            for name, sums in (("wer", rates.word_counts), ("cer", rates.character_counts)):
                self.sums.setdefault(name, {})[source] = sums
                self.values.setdefault(name, {})[source] = sums[:, 0] / sums[:, 1]

    def _transcribe(self, recordings: list[Recording]) -> list[str]:
        first = []
        if self.announce and len(recordings) > 1:
            first, estimate = time_first(self.judges.asr, recordings)
            self.announce(estimate)
        with self.watch("listening", "recordings") as told:
            rest = self.judges.asr.transcribe_many(recordings[len(first) :], told)
        return [*first, *rest]

    def _rate(self) -> None:
        """Predicted ratings of recordings that sentences are joined to."""
        if self.judges.rater is None:
            raise UserError("there is nothing at hand that rates speech")
        rate, sources = self.subject.spec.sample_rate, self._judged()
        parts = {name: joined(speech, rate, len(speech)) for name, speech in sources.items()}
        rater, speech = self.judges.rater, [one for part in parts.values() for one in part]
        is_kept = [name != SPEECH for name, part in parts.items() for _ in part]

        def rate_all(recordings: list[Recording]) -> list[list[float]]:
            with self.watch("rating", "recordings") as told:
                return [list(astuple(one)) for one in rater.score_many(recordings, told)]

        found = answers(self.cache, lambda: rater.identity, speech, is_kept, rate_all)
        scores = iter(QualityScore(*values) for values in found)
        for source, part in parts.items():
            found = [next(scores) for _ in part]
            for name, opinion in (
                ("mos", "overall"),
                ("mos_signal", "signal"),
                ("mos_background", "background"),
            ):
                values = np.array([getattr(one, opinion) for one in found])
                self.values.setdefault(name, {})[source] = values

    def _compare(self) -> None:
        """How near speech, and copies, are to the recordings."""
        sources = self._sources()
        if RECORDINGS not in sources:
            raise UserError("there are no recordings of the same words to compare with")
        spec, recorded = self.subject.spec, sources[RECORDINGS]
        pairs = {name: sources[name] for name in (SPEECH, COPIES) if name in sources}
        done, total = 0, len(pairs) * len(recorded)
        with (
            self.watch("comparing", "recordings") as told,
            ThreadPoolExecutor(available_cores()) as pool,
        ):
            for source, speech in pairs.items():
                found = []
                for one in pool.map(compare_speech, speech, recorded, [spec] * len(speech)):
                    found.append(_likeness(one))
                    told(done := done + 1, total)
                for name in found[0]:
                    values = np.array([one[name] for one in found])
                    self.values.setdefault(name, {})[source] = values

    def _measure_levels(self) -> None:
        for source, speech in self._judged().items():
            found = [measure_levels(one, self.subject.spec.sample_rate) for one in speech]
            for name in (name for name, kind in KINDS.items() if kind.part == LEVELS):
                values = np.array([getattr(one, name) for one in found])
                self.values.setdefault(name, {})[source] = values

    def _tell_voices(self) -> None:
        """The cosine of each sentence to other recordings of its speaker, among such cosines."""
        subject, rate = self.subject, self.subject.spec.sample_rate
        if self.judges.embed is None:
            raise UserError("there is no speaker encoder at hand")
        known = {name: list(own) for name, own in subject.known.items() if len(own)}
        lacking = {one.speaker for one in subject.sentences} - known.keys()
        if lacking:
            raise UserError(f"there are no other recordings of {', '.join(sorted(lacking))}")
        with self.watch("telling voices", "recordings") as told:
            embed = _EachOnce(self.judges.embed, told)
            self.cosines = compare_recordings(known, embed, rate)
            for source, speech in self._judged().items():
                values = [
                    _mean_cosine(samples, _others(known[one.speaker], one.recorded), embed, rate)
                    for one, samples in zip(subject.sentences, speech, strict=True)
                ]
                self.values.setdefault("similarity", {})[source] = np.array(values)
            places = [
                place_voice(
                    [one.spoken],
                    _others(known[one.speaker], one.recorded),
                    self.cosines,
                    embed,
                    rate,
                )
                for one in subject.sentences
            ]
        self.place = _mean_place(places)

    def _find_faults(self) -> None:
        if self.subject.hard is None:
            raise UserError("only a voice can be asked to say hard texts")
        spec = self.subject.spec
        self.faults = find_faults(
            self.attempts,
            self.subject.hard.pace,
            spec.hop_length / spec.sample_rate,
            self.subject.language,
        )


class _EachOnce:
    """An encoder that hears no recording twice; those that it has heard must stay in memory."""

    def __init__(self, embed: Embed, told: Callable[[int, int], None]):
        self._embed, self._told = embed, told
        self._found: dict[int, np.ndarray | AudioError] = {}

    def __call__(self, recordings: Recordings, sample_rate: int) -> list[np.ndarray | AudioError]:
        new = {id(one): one for one in recordings if id(one) not in self._found}
        found = self._embed(list(new.values()), sample_rate)
        self._found.update(zip(new, found, strict=True))
        self._told(len(self._found), len(self._found))
        return [self._found[id(one)] for one in recordings]


def _likeness(found: SpeechLikeness) -> dict[str, float]:
    return {
        "mcd": found.distortion,
        "f0_correlation": found.pitch.correlation,
        "f0_rmse": found.pitch.rmse_cents,
        "voicing_error": found.pitch.voicing_error,
        "warped_estoi": found.warped_estoi,
        "length_ratio": found.length_ratio,
    }


def _others(recordings: Recordings, recorded: np.ndarray | None) -> list[np.ndarray]:
    """The recordings but the one of the same words."""
    return [one for one in recordings if one is not recorded]


def _mean_cosine(samples: np.ndarray, own: Recordings, embed: Embed, rate: int) -> float:
    """The mean cosine of a recording to others; NaN where nobody is heard in it."""
    (vector,) = embed([samples], rate)
    others = [one for one in embed(own, rate) if not isinstance(one, AudioError)]
    if isinstance(vector, AudioError) or not others:
        return math.nan
    cosines = [np.dot(vector, one) / np.linalg.norm(one) for one in others]
    return float(np.mean(cosines) / np.linalg.norm(vector))


def _mean_place(places: Sequence[VoicePlace]) -> VoicePlace:
    """The means over sentences that have a place."""
    fields = ("similarity", "among_same", "among_different", "accepted")
    rows = [[getattr(one, name) for name in fields] for one in places]
    found = np.array([row for row in rows if math.isfinite(row[0])]).reshape(-1, len(fields))
    return VoicePlace(len(found), *(found.mean(axis=0) if len(found) else [math.nan] * 4))


@contextlib.contextmanager
def _unwatched(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, total: None
