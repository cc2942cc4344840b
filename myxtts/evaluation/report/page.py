"""The self-contained page of an evaluation, and the figures next to it."""

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

import numpy as np
import soundfile

from myxtts.evaluation.evaluator import Evaluation
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
from myxtts.evaluation.report.figures import figures_of
from myxtts.evaluation.report.rows import (
    absences,
    fault_rows,
    measure_rows,
    speaker_facts,
    speaker_rows,
)
from myxtts.evaluation.report.tables import html_table

FIGURES, PAGE = "evaluation.json", "evaluation.html"
_SHOWN = {RESYNTHESIS: "resynthesis"}  # instead of the key in evaluation.json
SHOWN = 3  # of the best, median and worst sentences
# Metrics whose distributions are drawn.
DRAWN = ("cer", "mcd", "f0_rmse", "warped_estoi", "mel_variance", "modulation", "f0_spread")
_BINS = 24
_WIDTH, _HEIGHT, _FOOT = 320, 110, 16
_COLOURS = ("#0072b2", "#d55e00", "#009e73")


def write_evaluation(folder: Path, evaluation: Evaluation) -> Path:
    """Write the figures and the page into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = json.dumps(figures_of(evaluation), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / FIGURES).write_text(figures + "\n", encoding="utf-8")
    page = folder / PAGE
    page.write_text(_html(evaluation), encoding="utf-8")
    return page


def _html(evaluation: Evaluation) -> str:
    subject = evaluation.subject
    judged = ", ".join(evaluation.judges.values())
    summary = f"{len(subject.sentences)} sentences ({subject.language})"
    summary += f", judged by {judged}. " if judged else ". "
    summary += "In brackets: the 95 % confidence interval, by bootstrap over the sentences."
    parts = [f"<h1>{escape(subject.what)}</h1>", f"<p>{escape(summary)}</p>"]
    parts += [*evaluation_parts(evaluation), "<h2>Listen</h2>", *_clips(evaluation)]
    seconds = ", ".join(f"{name} {took:.1f}" for name, took in evaluation.seconds.items())
    parts.append(f"<p>seconds: {escape(seconds)}</p>")
    return html_page(subject.what, parts)


def evaluation_parts(evaluation: Evaluation) -> list[str]:
    """The tables and distributions of an evaluation, as HTML."""
    parts = ["<h2>Metrics</h2>", html_table(measure_rows(evaluation))]
    parts += [f"<p>{escape(one)}</p>" for one in absences(evaluation)]
    if charts := list(_charts(evaluation)):
        parts += ["<h2>Distributions</h2>", f'<div class="charts">{"".join(charts)}</div>']
    if rows := speaker_rows(evaluation):
        parts += ["<h2>Speaker</h2>", html_table(rows)]
        parts += [f"<p>{escape(one)}</p>" for one in speaker_facts(evaluation)]
    if rows := fault_rows(evaluation):
        parts += ["<h2>Robustness</h2>", html_table(rows), *_faulty(evaluation)]
    return parts


def _charts(evaluation: Evaluation) -> Iterator[str]:
    for drawn in DRAWN:
        if drawn in evaluation.measures:
            measure = evaluation.measures[drawn]
            values = {_SHOWN.get(name, name): some for name, some in measure.values.items()}
            title = f"{measure.metric.label} of each sentence"
            yield _histogram(title, values, measure.metric.target)
    if evaluation.speakers is not None:
        spoken, among = evaluation.measures["similarity"].values[SPEECH], evaluation.speakers.among
        pairs = {SPEECH: spoken, "one speaker": among.same}
        if len(among.different):
            pairs["different speakers"] = among.different
        yield _histogram("Cosines to recordings", pairs)


def _histogram(title: str, series: Mapping[str, np.ndarray], target: float | None = None) -> str:
    """A histogram as SVG, with an outline for each series and a line at the target."""
    finite = {name: values[np.isfinite(values)] for name, values in series.items()}
    finite = {name: values for name, values in finite.items() if len(values)}
    if not finite:
        return ""
    every = np.concatenate([*finite.values(), [] if target is None else [target]])
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
    if target is not None:
        place = (target - low) / (high - low) * _WIDTH
        outlines.append(
            f'<path class="target" d="M{place:.1f} 0V{_HEIGHT}"><title>natural</title></path>'
        )
    foot = _HEIGHT + _FOOT - 3
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg role="img" '
        f'aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}">'
        f'{"".join(outlines)}<text x="0" y="{foot}">{low:.3g}</text>'
        f'<text x="{_WIDTH}" y="{foot}" text-anchor="end">{high:.3g}</text></svg>'
        f"<p>{'; '.join(legend)}</p></figure>"
    )


def _outline(shares: np.ndarray) -> str:
    """The SVG points of a step curve of shares between 0 and 1."""
    edges = np.linspace(0, _WIDTH, len(shares) + 1)
    points = [(0.0, 0.0)]
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        points += [(left, share), (right, share)]
    points.append((_WIDTH, 0.0))
    return " ".join(f"{x:.1f},{_HEIGHT - y * (_HEIGHT - 2):.1f}" for x, y in points)


def _faulty(evaluation: Evaluation) -> Iterator[str]:
    """The hard texts with faults, and which."""
    for one, fault in zip(evaluation.attempts, evaluation.faults, strict=True):
        if fault.is_faultless:
            continue
        words = ["skipped"] * fault.is_skipped + ["endless"] * fault.is_endless
        words += [f"repeated “{fault.repeated}”"] if fault.repeated else []
        heard = _heard(one.heard) if one.heard is not None else ""
        yield f'<p><b>{escape(", ".join(words))}</b>: <span dir="auto">{escape(one.text)}</span>'
        yield f"{heard}</p>"


def _clips(evaluation: Evaluation) -> Iterator[str]:
    """Players of the best, median and worst sentences."""
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
        f"{one.metric.label} {one.values[SPEECH][number]:.{one.metric.digits}f}"
        for one in (evaluation.measures[name] for name in DRAWN if name in evaluation.measures)
        if math.isfinite(one.values[SPEECH][number])
    ]
    lines = [f'<p dir="auto"><b>{escape(sentence.text)}</b></p>']
    if figures:
        lines.append(f"<p>{escape(', '.join(figures))}</p>")
    sources = {SPEECH: sentence.spoken, RECORDED: sentence.recorded}
    for source, samples in sources.items():
        if samples is not None:
            name = "recording" if source == RECORDED else source
            heard = _heard(evaluation.heard[source][number]) if source in evaluation.heard else ""
            lines.append(f"<p>{name}{heard}<br>{player(samples, rate)}</p>")
    return f"<section>{''.join(lines)}</section>"


def _heard(text: str) -> str:
    return f'; heard: <i dir="auto">{escape(text or "(nothing)")}</i>'


def player(samples: np.ndarray, rate: int) -> str:
    """An audio player with embedded samples."""
    return f'<audio controls preload="none" src="{embedded_wav(samples, rate)}"></audio>'


def embedded_wav(samples: np.ndarray, rate: int) -> str:
    """The URI of samples as a wav."""
    buffer = io.BytesIO()
    pcm = np.clip(np.round(np.asarray(samples) * 32768.0), -32768, 32767).astype(np.int16)
    soundfile.write(buffer, pcm, rate, subtype="PCM_16", format="WAV")
    return embedded(buffer.getvalue(), "audio/wav")


def embedded(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def html_page(title: str, parts: Iterable[str]) -> str:
    """A self-contained page."""
    return _TEMPLATE.format(title=escape(title), style=_STYLE, body="\n".join(parts))


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
img { max-width: 100%; background: white; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: .25rem .8rem; border-bottom: 1px solid #8885; }
tbody th { font-weight: 500; }
thead th { overflow-wrap: normal; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; flex: 0 1 18rem; }
svg { width: 100%; height: auto; }
svg .target { stroke: currentColor; stroke-dasharray: 4 3; }
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
_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
