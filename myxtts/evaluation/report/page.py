"""An evaluation as a table, as figures for programs, and as one page that needs no other file."""

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from myxtts.evaluation.evaluator import (
    COMPARING,
    COPIES,
    LISTENING,
    RATING,
    RECORDINGS,
    ROBUSTNESS,
    SPEECH,
    VOICES,
    Evaluation,
)
from myxtts.evaluation.metrics.confidence import Interval
from myxtts.evaluation.metrics.speaker import Spread, spread
from myxtts.evaluation.report.report import html_page, with_bounds

FIGURES, PAGE = "evaluation.json", "evaluation.html"
SHOWN = 3  # sentences of the best, of the median and of the worst ones
DRAWN = ("cer", "mcd", "f0_rmse", "warped_estoi")  # measures whose distributions are drawn
PARTS = {
    LISTENING: "WER and CER",
    RATING: "DNSMOS",
    COMPARING: "likeness to recordings",
    VOICES: "speaker similarity",
    ROBUSTNESS: "robustness",
}
_BINS = 24
_WIDTH, _HEIGHT, _FOOT = 320, 110, 16
_COLOURS = ("#0072b2", "#d55e00", "#009e73")

Rows = list[tuple[str, ...]]


def write_evaluation(folder: Path, evaluation: Evaluation) -> Path:
    """Write the figures and the page into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = json.dumps(figures_of(evaluation), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / FIGURES).write_text(figures + "\n", encoding="utf-8")
    page = folder / PAGE
    page.write_text(_html(evaluation), encoding="utf-8")
    return page


def measure_rows(evaluation: Evaluation) -> Rows:
    """The table of all measures, with a head: each figure between the bounds of its interval."""
    sources = [SPEECH, RECORDINGS, COPIES]
    heads = [SPEECH, RECORDINGS, f"copies by {evaluation.subject.vocoder or 'a vocoder'}"]
    has = [any(name in one.intervals for one in evaluation.measures.values()) for name in sources]
    shown = [name for name, is_there in zip(sources, has, strict=True) if is_there]
    head = [title for title, is_there in zip(heads, has, strict=True) if is_there]
    rows = [
        (
            one.kind.title,
            *(_cell(one.intervals.get(source), one.kind.digits) for source in shown),
        )
        for one in evaluation.measures.values()
    ]
    return [("measure", *head), *rows]


def voice_rows(evaluation: Evaluation) -> Rows:
    """How cosines of recordings are spread, and where the speech is among them; or nothing."""
    cosines = evaluation.cosines
    if cosines is None:
        return []
    rows = [("cosines of recordings", "5 %", "median", "95 %", "pairs")]
    named = (("of one speaker", cosines.same), ("of different speakers", cosines.different))
    return rows + [_spread_row(name, spread(values)) for name, values in named if len(values)]


def voice_facts(evaluation: Evaluation) -> list[str]:
    """What the place of the speech among recordings says."""
    place, cosines = evaluation.place, evaluation.cosines
    if place is None or cosines is None:
        return []
    told = []
    if math.isfinite(place.among_same):
        among = f"; among pairs of different ones at {place.among_different:.0f}"
        told.append(
            f"speech beside a recording of its speaker is at percentile {place.among_same:.0f} "
            "among pairs of one speaker, where 50 is as near as recordings are to each other"
            + (among if math.isfinite(place.among_different) else "")
        )
    if math.isfinite(place.accepted):
        told.append(
            f"taken for the right speaker: {place.accepted:.0%} of pairs, at the threshold "
            f"{cosines.threshold:.3f} (equal error rate {cosines.equal_error_rate:.1%})"
        )
    return told


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
        f"not measured: {PARTS.get(part, part)}: {why}"
        for part, why in evaluation.not_measured.items()
    ]
    measured = next(iter(evaluation.measures.values()), None)
    if measured and RECORDINGS not in measured.intervals:
        found.append("not measured: ceilings: there are no recordings of the same words")
    return found


def figures_of(evaluation: Evaluation) -> dict[str, Any]:
    """All figures as JSON takes them: null for what has no number."""
    subject = evaluation.subject
    return _without_nan(
        {
            "what": subject.what,
            "language": subject.language,
            "vocoder": subject.vocoder,
            "judges": dict(evaluation.judges),
            "measures": {
                name: {source: asdict(found) for source, found in one.intervals.items()}
                for name, one in evaluation.measures.items()
            },
            "voices": _voice_figures(evaluation),
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


def _cell(found: Interval | None, digits: int) -> str:
    if found is None or not math.isfinite(found.value):
        return ""
    return with_bounds(found, digits)


def _spread_row(name: str, found: Spread) -> tuple[str, ...]:
    figures = (found.low, found.median, found.high)
    return (name, *(f"{figure:.3f}" for figure in figures), f"{found.pairs:,}")


def _voice_figures(evaluation: Evaluation) -> dict[str, Any] | None:
    cosines = evaluation.cosines
    if cosines is None:
        return None
    return {
        "same": asdict(spread(cosines.same)),
        "different": asdict(spread(cosines.different)),
        "threshold": cosines.threshold,
        "equal_error_rate": cosines.equal_error_rate,
        "place": asdict(evaluation.place),
    }


def _sentence_figures(evaluation: Evaluation, number: int) -> dict[str, Any]:
    sentence = evaluation.subject.sentences[number]
    count = len(evaluation.subject.sentences)
    values = {
        name: float(one.values[SPEECH][number])
        for name, one in evaluation.measures.items()
        if one.kind.part != RATING and len(one.values[SPEECH]) == count
    }
    heard = {source: texts[number] for source, texts in evaluation.heard.items()}
    said = {"id": sentence.id, "speaker": sentence.speaker, "text": sentence.text}
    return {**said, "heard": heard, **values}


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _html(evaluation: Evaluation) -> str:
    subject = evaluation.subject
    judged = ", ".join(evaluation.judges.values())
    summary = f"{len(subject.sentences)} sentences ({subject.language})"
    summary += f", judged by {judged}. " if judged else ". "
    summary += "In brackets: where 95 % of other draws of such sentences would leave the figure."
    parts = [f"<h1>{escape(subject.what)}</h1>", f"<p>{escape(summary)}</p>"]
    parts += ["<h2>Measures</h2>", _html_table(measure_rows(evaluation))]
    parts += [f"<p>{escape(one)}</p>" for one in absences(evaluation)]
    if charts := list(_charts(evaluation)):
        parts += ["<h2>Distributions</h2>", f'<div class="charts">{"".join(charts)}</div>']
    if rows := voice_rows(evaluation):
        parts += ["<h2>Voice</h2>", _html_table(rows)]
        parts += [f"<p>{escape(one)}</p>" for one in voice_facts(evaluation)]
    if rows := fault_rows(evaluation):
        parts += ["<h2>Robustness</h2>", _html_table(rows), *_faulty(evaluation)]
    parts += ["<h2>Listen</h2>", *_clips(evaluation)]
    seconds = ", ".join(f"{name} {took:.1f}" for name, took in evaluation.seconds.items())
    parts.append(f"<p>seconds: {escape(seconds)}</p>")
    return html_page(subject.what, _STYLE, parts)


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of which a narrow screen shows each row as a block, with the heads beside."""
    head, *body = rows
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(_html_cells(head, row))}</tr>" for row in body)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _html_cells(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    yield f'<th scope="row">{escape(row[0])}</th>'
    for name, cell in zip(head[1:], row[1:], strict=True):
        yield f'<td data-head="{escape(name)}">{escape(cell)}</td>'


def _charts(evaluation: Evaluation) -> Iterator[str]:
    for name in DRAWN:
        if name in evaluation.measures:
            measure = evaluation.measures[name]
            yield _histogram(f"{measure.kind.title} of each sentence", measure.values)
    if evaluation.cosines is not None:
        spoken = evaluation.measures["similarity"].values[SPEECH]
        pairs = {SPEECH: spoken, "one speaker": evaluation.cosines.same}
        if len(evaluation.cosines.different):
            pairs["different speakers"] = evaluation.cosines.different
        yield _histogram("Cosines to recordings", pairs)


def _histogram(title: str, series: Mapping[str, np.ndarray]) -> str:
    """Shares of values in bins, one outline for each series."""
    finite = {name: values[np.isfinite(values)] for name, values in series.items()}
    finite = {name: values for name, values in finite.items() if len(values)}
    if not finite:
        return ""
    every = np.concatenate(list(finite.values()))
    low, high = float(every.min()), float(every.max())
    high = high if high > low else low + 1.0
    shares = {
        name: np.histogram(values, _BINS, (low, high))[0] / len(values)
        for name, values in finite.items()
    }
    most = max(share.max() for share in shares.values())
    outlines = [
        f'<polyline fill="{colour}33" stroke="{colour}" points="{_outline(share / most)}"/>'
        for colour, share in zip(_COLOURS, shares.values(), strict=False)
    ]
    legend = [
        f'<span style="color:{colour}">{escape(name)}, median {np.median(values):.3g}</span>'
        for colour, (name, values) in zip(_COLOURS, finite.items(), strict=False)
    ]
    foot = _HEIGHT + _FOOT - 3
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg role="img" '
        f'aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}">'
        f'{"".join(outlines)}<text x="0" y="{foot}">{low:.3g}</text>'
        f'<text x="{_WIDTH}" y="{foot}" text-anchor="end">{high:.3g}</text></svg>'
        f"<p>{'; '.join(legend)}</p></figure>"
    )


def _outline(shares: np.ndarray) -> str:
    """The points of steps as high as the shares, at most 1, from the foot to the foot."""
    edges = np.linspace(0, _WIDTH, len(shares) + 1)
    points = [(0.0, 0.0)]
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        points += [(left, share), (right, share)]
    points.append((_WIDTH, 0.0))
    return " ".join(f"{x:.1f},{_HEIGHT - y * (_HEIGHT - 2):.1f}" for x, y in points)


def _faulty(evaluation: Evaluation) -> Iterator[str]:
    """Which hard texts went wrong, and how."""
    for one, fault in zip(evaluation.attempts, evaluation.faults, strict=True):
        if fault.is_faultless:
            continue
        words = ["skipped"] * fault.is_skipped + ["endless"] * fault.is_endless
        words += [f"repeated “{fault.repeated}”"] if fault.repeated else []
        heard = _heard(one.heard) if one.heard is not None else ""
        yield f'<p><b>{escape(", ".join(words))}</b>: <span dir="auto">{escape(one.text)}</span>'
        yield f"{heard}</p>"


def _clips(evaluation: Evaluation) -> Iterator[str]:
    """The best, the median and the worst sentences, to listen to."""
    ranked = evaluation.ranked()
    middle = max(0, (len(ranked) - SHOWN) // 2)
    shown = {"best": ranked[:SHOWN], "median": ranked[middle:][:SHOWN], "worst": ranked[-SHOWN:]}
    done: set[int] = set()
    for name, numbers in shown.items():
        fresh = [number for number in numbers if number not in done]
        done.update(fresh)
        if fresh:
            yield f"<h3>{name}</h3>"
        yield from (_clip(evaluation, number) for number in fresh)


def _clip(evaluation: Evaluation, number: int) -> str:
    sentence = evaluation.subject.sentences[number]
    rate = evaluation.subject.spec.sample_rate
    figures = [
        f"{one.kind.title} {one.values[SPEECH][number]:.{one.kind.digits}f}"
        for one in (evaluation.measures[name] for name in DRAWN if name in evaluation.measures)
        if math.isfinite(one.values[SPEECH][number])
    ]
    lines = [f'<p dir="auto"><b>{escape(sentence.text)}</b></p>']
    if figures:
        lines.append(f"<p>{escape(', '.join(figures))}</p>")
    sources = {SPEECH: sentence.spoken, RECORDINGS: sentence.recorded}
    for source, samples in sources.items():
        if samples is None:
            continue
        name = "recording" if source == RECORDINGS else source
        heard = _heard(evaluation.heard[source][number]) if source in evaluation.heard else ""
        player = f'<audio controls preload="none" src="{_embedded(samples, rate)}"></audio>'
        lines.append(f"<p>{name}{heard}<br>{player}</p>")
    return f"<section>{''.join(lines)}</section>"


def _heard(text: str) -> str:
    return f'; heard: <i dir="auto">{escape(text or "(nothing)")}</i>'


def _embedded(samples: np.ndarray, rate: int) -> str:
    buffer = io.BytesIO()
    pcm = np.clip(np.round(np.asarray(samples) * 32768.0), -32768, 32767).astype(np.int16)
    soundfile.write(buffer, pcm, rate, subtype="PCM_16", format="WAV")
    return f"data:audio/wav;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Columns as plain text: names to the left, figures to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *figures in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: .25rem .8rem; border-bottom: 1px solid #8885; }
tbody th { font-weight: 500; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; flex: 1 1 17rem; max-width: 28rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; }
audio { width: 100%; max-width: 26rem; }
section { border-top: 1px solid #8885; }
section p, figure p { margin: .3rem 0; }
@media (max-width: 44rem) {
  thead { display: none; }
  table, tbody, tr, th, td { display: block; border: 0; padding: 0; }
  tr { padding: .4rem 0; border-bottom: 1px solid #8885; }
  td:not(:empty)::before { content: attr(data-head) ": "; opacity: .7; }
}
"""
