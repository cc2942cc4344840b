"""One evaluation: every metric whose needs are met, with intervals and ceilings."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from myxtts.audio.threads import single_threaded_blas
from myxtts.data.corpus.utterance import Utterance
from myxtts.errors import UserError
from myxtts.evaluation.ceilings import CeilingCache
from myxtts.evaluation.metrics.confidence import Interval, interval, mean, ratio_of_sums
from myxtts.evaluation.metrics.intelligibility import transcripts
from myxtts.evaluation.metrics.robustness import (
    Attempt,
    FaultCounts,
    Faults,
    count_faults,
    hard_faults,
)
from myxtts.evaluation.metrics.session import Judges, Session, Subject, Watch, unwatched
from myxtts.evaluation.metrics.speaker import SpeakerFindings, compare_speakers
from myxtts.evaluation.metrics.table import (
    ASR,
    ENCODER,
    HARD_TEXTS,
    METRICS,
    OPINION,
    RATER,
    SPEECH,
    Metric,
)


@dataclass(frozen=True, eq=False)
class Measure:
    """What a metric found in speech, in recordings and in their resynthesis.

    `values` are per sentence, NaN where it has none, unless `Metric.is_per_sentence` is False.
    """

    name: str
    values: Mapping[str, np.ndarray]
    intervals: Mapping[str, Interval]

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All results; `heard` are the ASR's transcripts, by source."""

    subject: Subject
    measures: Mapping[str, Measure]
    heard: Mapping[str, Sequence[str]]
    attempts: Sequence[Attempt]
    faults: Sequence[Faults]
    speakers: SpeakerFindings | None
    judges: Mapping[str, str]
    not_measured: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def fault_counts(self) -> list[FaultCounts]:
        return count_faults(self.faults) if self.faults else []

    def scores(self) -> dict[str, float]:
        """The finite figures of the speech alone, by name."""
        found = {name: one.intervals[SPEECH].value for name, one in self.measures.items()}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def ranked(self) -> list[int]:
        """Indices of the sentences, best first: by the CER, else by the MCD."""
        for name in ("cer", "mcd"):
            if name in self.measures:
                values = self.measures[name].values[SPEECH]
                return np.argsort(np.nan_to_num(values, nan=np.inf), kind="stable").tolist()
        return list(range(len(self.subject.sentences)))


def choose_utterances(utterances: Sequence[Utterance], count: int) -> list[Utterance]:
    """Choose utterances by a hash of their ids alone, and keep their order."""
    by_hash = sorted(utterances, key=lambda one: blake2b(one.id.encode()).digest())
    chosen = {one.id for one in by_hash[:count]}
    return [one for one in utterances if one.id in chosen]


def evaluate(
    subject: Subject,
    judges: Judges,
    watch: Watch = unwatched,
    cache: CeilingCache | None = None,
    announce: Callable[[str], None] | None = None,
    metrics: Sequence[str] | None = None,
) -> Evaluation:
    """Run the metrics, or some of them by name; `not_measured` says why others could not run.

    A UserError ends only the metric that raises it. Ceilings in the cache are not judged again.
    `announce` is called with an estimate of how long the ASR will take.
    """
    session = Session(subject, judges, watch, cache, announce)
    measures: dict[str, Measure] = {}
    not_measured: dict[str, str] = {}
    seconds: dict[str, float] = {}
    with single_threaded_blas():
        for name in METRICS if metrics is None else metrics:
            metric, began = METRICS[name], time.monotonic()
            part = metric.part
            try:
                for need in metric.needs:
                    part = need
                    session.check(need)
                part = metric.part
                measures[name] = _measure(name, metric.run(session))
            except UserError as error:
                not_measured[part] = str(error)
            seconds[metric.part] = seconds.get(metric.part, 0.0) + time.monotonic() - began
    found = session.shared_or_none(transcripts, ASR) if ASR in seconds else None
    hard = session.shared_or_none(hard_faults, HARD_TEXTS) if HARD_TEXTS in seconds else None
    attempts, faults = hard or ([], [])
    return Evaluation(
        subject,
        measures,
        {source: found[source] for source in session.judged} if found else {},
        attempts,
        faults,
        session.shared_or_none(compare_speakers, ENCODER) if ENCODER in seconds else None,
        _names(judges),
        not_measured,
        seconds,
    )


def _measure(name: str, found: Mapping[str, np.ndarray]) -> Measure:
    """Figures with intervals, from values [n] or from pairs [n, 2] whose sums are divided."""
    values, intervals = {}, {}
    for source, own in found.items():
        is_ratio = own.ndim == 2
        values[source] = _ratios(own) if is_ratio else own
        intervals[source] = interval(own, ratio_of_sums if is_ratio else mean)
    return Measure(name, values, intervals)


def _ratios(pairs: np.ndarray) -> np.ndarray:
    """The ratio of each pair [n, 2]; NaN where there is nothing to divide by."""
    of = pairs[:, 1]
    return np.divide(pairs[:, 0], of, out=np.full(len(pairs), np.nan), where=of != 0)


def _names(judges: Judges) -> dict[str, str]:
    named = {
        ASR: judges.asr and judges.asr.name,
        RATER: judges.rater and judges.rater.name,
        OPINION: judges.opinion and judges.opinion.name,
        ENCODER: judges.encoder,
    }
    return {need: name for need, name in named.items() if name}
