"""What a metric is given: the speech of an evaluation, its judges, and results that are shared."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.evaluation.asr import Asr
from myxtts.evaluation.ceilings import CeilingCache
from myxtts.evaluation.metrics.quality import Dnsmos
from myxtts.evaluation.metrics.robustness import HardSpeech
from myxtts.evaluation.metrics.speaker import Embed, Recordings
from myxtts.evaluation.metrics.table import (
    ASR,
    ENCODER,
    HARD_TEXTS,
    RATER,
    RECORDED,
    RECORDINGS,
    RESYNTHESIS,
    SPEECH,
)

# Opens what shows progress, by a title and a unit.
Watch = Callable[[str, str], AbstractContextManager[Callable[[int, int], None]]]
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Sentence:
    """A text, and the samples of it as spoken by a speaker.

    Where there is a recording of the same words, it and its resynthesis by a vocoder are the
    ceilings. `durations` are the frames [tokens] that a voice gave to each token.
    """

    id: str
    text: str
    spoken: np.ndarray
    speaker: str = ""
    recorded: np.ndarray | None = None
    resynthesised: np.ndarray | None = None
    durations: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """What is judged, all of it at the spec's rate.

    `known` are recordings of its speakers, and of others, that say something else. `absent` has
    the reason why a need of metrics is not met. Without ceilings, recordings are compared with,
    but not judged themselves. At most `most_rated` joined recordings are rated.
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
    most_rated: int | None = None


@dataclass(frozen=True, eq=False)
class Judges:
    """The ASR, the rater and the speaker encoder; `absent` has the reason where one is missing."""

    asr: Asr | None = None
    rater: Dnsmos | None = None
    embed: Embed | None = None
    encoder: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)


class Session:
    """One evaluation while it runs."""

    def __init__(
        self,
        subject: Subject,
        judges: Judges,
        watch: Watch | None = None,
        cache: CeilingCache | None = None,
        announce: Callable[[str], None] | None = None,
    ):
        self.subject, self.judges, self.watch = subject, judges, watch or _unwatched
        self.cache, self.announce = cache, announce
        self._shared: dict[Callable, Any] = {}

    @property
    def sample_rate(self) -> int:
        return self.subject.spec.sample_rate

    @property
    def sources(self) -> dict[str, list[np.ndarray]]:
        """The speech, and its recordings and their resynthesis where every sentence has one."""
        sentences = self.subject.sentences
        found = {
            SPEECH: [one.spoken for one in sentences],
            RECORDED: [one.recorded for one in sentences],
            RESYNTHESIS: [one.resynthesised for one in sentences],
        }
        return {name: some for name, some in found.items() if all(one is not None for one in some)}

    @property
    def judged(self) -> dict[str, list[np.ndarray]]:
        """The sources that are judged by themselves."""
        sources = self.sources
        return sources if self.subject.has_ceilings else {SPEECH: sources[SPEECH]}

    def each(self, measure: Callable[[np.ndarray, int], float]) -> dict[str, np.ndarray]:
        """Measure samples at their rate, one sentence after the other, of all that is judged."""
        return {
            source: np.array([measure(samples, self.sample_rate) for samples in speech])
            for source, speech in self.judged.items()
        }

    def shared(self, measure: "Callable[[Session], Found]") -> Found:
        """What a function makes of this session, computed once for all metrics that ask."""
        if measure not in self._shared:
            try:
                self._shared[measure] = measure(self)
            except UserError as error:
                self._shared[measure] = error
        if isinstance(self._shared[measure], UserError):
            raise self._shared[measure]
        return self._shared[measure]

    def shared_or_none(self, measure: "Callable[[Session], Found]", *needs: str) -> Found | None:
        """The same, or None where its needs are not met or it fails."""
        try:
            for need in needs:
                self.check(need)
            return self.shared(measure)
        except UserError:
            return None

    def check(self, need: str) -> None:
        """Raise where a need of a metric is not met, with the reason."""
        for absent in (self.subject.absent, self.judges.absent):
            if need in absent:
                raise UserError(absent[need])
        if reason := _MISSING[need](self):
            raise UserError(reason)


def _missing_asr(session: Session) -> str:
    return "" if session.judges.asr else f"there is no ASR for {session.subject.language!r}"


def _missing_rater(session: Session) -> str:
    return "" if session.judges.rater else "there is no rater of speech"


def _missing_recordings(session: Session) -> str:
    has = RECORDED in session.sources
    return "" if has else "there are no recordings of the same words to compare with"


def _missing_encoder(session: Session) -> str:
    if session.judges.embed is None:
        return "there is no speaker encoder"
    known = {name for name, own in session.subject.known.items() if len(own)}
    lacking = {one.speaker for one in session.subject.sentences} - known
    return f"there are no other recordings of {', '.join(sorted(lacking))}" if lacking else ""


def _missing_hard_texts(session: Session) -> str:
    return "" if session.subject.hard else "only a voice can be asked to speak hard texts"


_MISSING = {
    ASR: _missing_asr,
    RATER: _missing_rater,
    RECORDINGS: _missing_recordings,
    ENCODER: _missing_encoder,
    HARD_TEXTS: _missing_hard_texts,
}


@contextlib.contextmanager
def _unwatched(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, total: None
