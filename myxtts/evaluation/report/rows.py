"""The tables of an evaluation: metrics, speakers, hard texts, and what was not measured."""

import math

from myxtts.evaluation.evaluator import Evaluation
from myxtts.evaluation.metrics.speaker import spread
from myxtts.evaluation.metrics.table import METRICS, RECORDED, RESYNTHESIS, SPEECH
from myxtts.evaluation.report.tables import Rows, with_bounds


def measure_rows(evaluation: Evaluation) -> Rows:
    """The table of all metrics with their intervals, with a head."""
    heads = {source: source for source in (SPEECH, RECORDED)}
    heads[RESYNTHESIS] = f"resynthesis by {evaluation.subject.vocoder or 'a vocoder'}"
    judged = {source for one in evaluation.measures.values() for source in one.intervals}
    shown = [source for source in heads if source in judged]
    rows = [
        (
            one.metric.label,
            *(with_bounds(one.intervals.get(source), one.metric.digits) for source in shown),
        )
        for one in evaluation.measures.values()
    ]
    return [("metric", *(heads[source] for source in shown)), *rows]


def speaker_rows(evaluation: Evaluation) -> Rows:
    """The distribution of cosines between recordings, with a head; or nothing."""
    if evaluation.speakers is None:
        return []
    cosines = evaluation.speakers.among
    rows = [("cosines of recordings", "5 %", "median", "95 %", "pairs")]
    named = {"of one speaker": cosines.same, "of different speakers": cosines.different}
    for name, values in named.items():
        if len(values):
            found = spread(values)
            figures = (f"{one:.3f}" for one in (found.low, found.median, found.high))
            rows.append((name, *figures, f"{found.pairs:,}"))
    return rows


def speaker_facts(evaluation: Evaluation) -> list[str]:
    """How the speech compares with recordings of its speaker and of others."""
    if evaluation.speakers is None:
        return []
    place, cosines = evaluation.speakers.place, evaluation.speakers.among
    lines = []
    if math.isfinite(place.among_same):
        among = f"; among pairs of different ones at {place.among_different:.0f}"
        lines.append(
            f"speech next to a recording of its speaker is at percentile {place.among_same:.0f} "
            "among pairs of one speaker, where 50 is as near as recordings are to each other"
            + (among if math.isfinite(place.among_different) else "")
        )
    if math.isfinite(place.accepted):
        lines.append(
            f"taken for the right speaker: {place.accepted:.0%} of pairs, at the threshold "
            f"{cosines.threshold:.3f} (equal error rate {cosines.equal_error_rate:.1%})"
        )
    return lines


def fault_rows(evaluation: Evaluation) -> Rows:
    """The number of hard texts with faults, by kind, with a head; or nothing."""
    counts = evaluation.fault_counts
    if not counts:
        return []
    rows = [("hard texts", "texts", "skipped", "repeated", "endless", "faulty")]
    for one in counts:
        repeated = "-" if one.repeated is None else str(one.repeated)
        figures = (one.texts, one.skipped, repeated, one.endless, one.faulty)
        rows.append((one.kind, *map(str, figures)))
    return rows


def absences(evaluation: Evaluation) -> list[str]:
    """What was not measured, and why."""
    found = [
        f"not measured: {', '.join(_missing(evaluation, need)) or need}: {reason}"
        for need, reason in evaluation.not_measured.items()
    ]
    measured = next(iter(evaluation.measures.values()), None)
    if measured and RECORDED not in measured.intervals:
        found.append("not measured: ceilings: there are no recordings of the same words")
    return found


def _missing(evaluation: Evaluation, need: str) -> list[str]:
    return [
        metric.title
        for name, metric in METRICS.items()
        if name not in evaluation.measures and need in (*metric.needs, metric.part)
    ]
