"""The input of metrics: the speech of an evaluation, its judges, and shared results."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.evaluation.asr import Asr
from myxtts.evaluation.ceilings import CeilingCache
from myxtts.evaluation.metrics.opinions import DistillMos
from myxtts.evaluation.metrics.quality import Dnsmos
from myxtts.evaluation.metrics.robustness import HardSpeech
from myxtts.evaluation.metrics.speaker import Embed, Recordings
from myxtts.evaluation.metrics.table import (
    ALIGNMENT,
    ASR,
    ENCODER,
    HARD_TEXTS,
    OPINION,
    RATER,
    RECORDED,
    RECORDINGS,
    RESYNTHESIS,
    SPEECH,
)

if TYPE_CHECKING:
    from myxtts.evaluation.alignment import Alignment

# A title and a unit -> a context with a function that shows progress.
Watch = Callable[[str, str], AbstractContextManager[Callable[[int, int], None]]]
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Sentence:
    """A text, and its samples as spoken by a speaker.

    Where there is a recording of the same words, it and its resynthesis by a vocoder are the
    ceilings. `durations` are the frames [tokens] that a voice gave to each of the `tokens`, and
    `mel` the log-mel [frames, mels] that it predicted.
    """

    id: str
    text: str
    spoken: np.ndarray
    speaker: str = ""
    recorded: np.ndarray | None = None
    resynthesised: np.ndarray | None = None
    durations: np.ndarray | None = None
    mel: np.ndarray | None = None
    tokens: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """The speech to be judged, all at the sample rate of the spec.

    `known` are recordings of its speakers, and of others, with other texts. `absent` has the
    reasons why needs of metrics are not met. Without `has_ceilings` the speech is compared with
    recordings, but these are not judged. At most `most_rated` joined recordings are rated.
    `alignments` are the voice's own, of the recordings with their texts.
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
    alignments: "Sequence[Alignment] | None" = None


@dataclass(frozen=True, eq=False)
class Judges:
    """The ASR, the raters and the speaker encoder; `absent` has the reasons for missing ones."""

    asr: Asr | None = None
    rater: Dnsmos | None = None
    embed: Embed | None = None
    encoder: str = ""
    opinion: DistillMos | None = None
    absent: Mapping[str, str] = field(default_factory=dict)


def unwatched(title: str, unit: str) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show no progress."""
    return nullcontext(lambda done, total: None)


@dataclass(eq=False)
class Session:
    """One evaluation while it runs."""

    subject: Subject
    judges: Judges
    watch: Watch = unwatched
    cache: CeilingCache | None = None
    announce: Callable[[str], None] | None = None
    _shared: dict[Callable, Any] = field(default_factory=dict)

    @property
    def sample_rate(self) -> int:
        return self.subject.spec.sample_rate

    @property
    def sources(self) -> dict[str, list[np.ndarray]]:
        """The speech; recordings and resynthesis only if every sentence has one."""
        sentences = self.subject.sentences
        found = {
            SPEECH: [one.spoken for one in sentences],
            RECORDED: [one.recorded for one in sentences],
            RESYNTHESIS: [one.resynthesised for one in sentences],
        }
        return {name: some for name, some in found.items() if all(one is not None for one in some)}

    @property
    def judged(self) -> dict[str, list[np.ndarray]]:
        """The sources that judges rate."""
        sources = self.sources
        return sources if self.subject.has_ceilings else {SPEECH: sources[SPEECH]}

    def each(self, measure: Callable[[np.ndarray, int], Any]) -> dict[str, np.ndarray]:
        """Call a function of samples and sample rate for each sentence that is judged."""
        return {
            source: np.array([measure(samples, self.sample_rate) for samples in speech])
            for source, speech in self.judged.items()
        }

    def shared(self, measure: "Callable[[Session], Found]") -> Found:
        """The result of a function of this session, computed once for all metrics."""
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
        """Raise with the reason where a need of a metric is not met."""
        for absent in (self.subject.absent, self.judges.absent):
            if need in absent:
                raise UserError(absent[need])
        is_met, reason = self._needs()[need]
        if not is_met:
            raise UserError(reason)

    def _needs(self) -> dict[str, tuple[bool, str]]:
        """Whether each need of metrics is met, and what is missing where it is not."""
        subject, judges = self.subject, self.judges
        known = {name for name, own in subject.known.items() if len(own)}
        lacking = {one.speaker for one in subject.sentences} - known
        no_encoder = f"there are no other recordings of {', '.join(sorted(lacking))}"
        if judges.embed is None:
            no_encoder = "there is no speaker encoder"
        return {
            ASR: (judges.asr is not None, f"there is no ASR for {subject.language!r}"),
            RATER: (judges.rater is not None, "there is no rater of speech"),
            OPINION: (judges.opinion is not None, "there is no predictor of opinions"),
            ENCODER: (judges.embed is not None and not lacking, no_encoder),
            RECORDINGS: (
                RECORDED in self.sources,
                "there are no recordings of the same words to compare with",
            ),
            ALIGNMENT: (
                subject.alignments is not None
                and all(one.tokens is not None for one in subject.sentences),
                "only a voice can align recordings with their texts",
            ),
            HARD_TEXTS: (subject.hard is not None, "only a voice can speak hard texts"),
        }
