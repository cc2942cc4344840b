"""The figures of an evaluation, for programs to read."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from myxtts.evaluation.evaluator import Evaluation
from myxtts.evaluation.metrics.speaker import spread
from myxtts.evaluation.metrics.table import SPEECH


def figures_of(evaluation: Evaluation) -> dict[str, Any]:
    """All figures for JSON, with null where there is no number."""
    subject = evaluation.subject
    return without_nan(
        {
            "what": subject.what,
            "language": subject.language,
            "vocoder": subject.vocoder,
            "judges": dict(evaluation.judges),
            "measures": {
                name: {source: asdict(found) for source, found in one.intervals.items()}
                for name, one in evaluation.measures.items()
            },
            "voices": _speaker_figures(evaluation),
            "hard_texts": [asdict(one) for one in evaluation.fault_counts],
            "not_measured": dict(evaluation.not_measured),
            "seconds": dict(evaluation.seconds),
            "sentences": [_sentence_figures(evaluation, n) for n in range(len(subject.sentences))],
            "attempts": [
                {"kind": one.kind, "text": one.text, "heard": one.heard, **asdict(fault)}
                for one, fault in zip(evaluation.attempts, evaluation.faults, strict=False)
            ],
        }
    )


def _speaker_figures(evaluation: Evaluation) -> dict[str, Any] | None:
    if evaluation.speakers is None:
        return None
    cosines = evaluation.speakers.among
    return {
        "same": asdict(spread(cosines.same)),
        "different": asdict(spread(cosines.different)),
        "threshold": cosines.threshold,
        "equal_error_rate": cosines.equal_error_rate,
        "place": asdict(evaluation.speakers.place),
    }


def _sentence_figures(evaluation: Evaluation, number: int) -> dict[str, Any]:
    sentence = evaluation.subject.sentences[number]
    values = {
        name: float(one.values[SPEECH][number])
        for name, one in evaluation.measures.items()
        if one.metric.is_per_sentence
    }
    heard = {source: texts[number] for source, texts in evaluation.heard.items()}
    said = {"id": sentence.id, "speaker": sentence.speaker, "text": sentence.text}
    return {**said, "heard": heard, **values}


def without_nan(value: Any) -> Any:
    """The value with None for every number that is not finite, since JSON has no NaN."""
    if isinstance(value, Mapping):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
