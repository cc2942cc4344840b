"""The tables of an evaluation: metrics, speakers, hard texts, and what was not measured."""

import math

from myxtts.evaluation.evaluator import Evaluation
from myxtts.evaluation.metrics.speaker import Spread, spread
from myxtts.evaluation.metrics.table import METRICS, RECORDED, RESYNTHESIS, SPEECH
from myxtts.evaluation.report.tables import Rows, with_bounds


def measure_rows(evaluation: Evaluation) -> Rows:
    """The table of all metrics, with a head: each figure with the bounds of its interval."""
    sources = [SPEECH, RECORDED, RESYNTHESIS]
    heads = [SPEECH, RECORDED, f"resynthesis by {evaluation.subject.vocoder or 'a vocoder'}"]
    has = [any(name in one.intervals for one in evaluation.measures.values()) for name in sources]
    shown = [name for name, is_there in zip(sources, has, strict=True) if is_there]
    head = [title for title, is_there in zip(heads, has, strict=True) if is_there]
    rows = [
        (
            one.metric.label,
            *(with_bounds(one.intervals.get(source), one.metric.digits) for source in shown),
        )
        for one in evaluation.measures.values()
    ]
    return [("metric", *head), *rows]


def speaker_rows(evaluation: Evaluation) -> Rows:
    """How cosines of recordings are spread, and where the speech is among them; or nothing."""
    if evaluation.speakers is None:
        return []
    cosines = evaluation.speakers.among
    rows = [("cosines of recordings", "5 %", "median", "95 %", "pairs")]
    named = (("of one speaker", cosines.same), ("of different speakers", cosines.different))
    return rows + [_spread_row(name, spread(values)) for name, values in named if len(values)]


def speaker_facts(evaluation: Evaluation) -> list[str]:
    """Where the speech is among recordings of its speaker and of others."""
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
    """How many hard texts of each kind went wrong, with a head; or nothing."""
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


def _spread_row(name: str, found: Spread) -> tuple[str, ...]:
    figures = (found.low, found.median, found.high)
    return (name, *(f"{figure:.3f}" for figure in figures), f"{found.pairs:,}")
