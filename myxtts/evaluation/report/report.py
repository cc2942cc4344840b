"""The report on a voice: one page that needs no other file, a Markdown summary and the figures."""

import base64
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from myxtts.evaluation.asr import ErrorRates
from myxtts.evaluation.history import History, read_history
from myxtts.evaluation.metrics.confidence import Interval, interval, ratio_of_sums
from myxtts.evaluation.report.plots import Example, write_alignment, write_curve, write_mels

PAGE, SUMMARY, FIGURES = "report.html", "report.md", "report.json"
WORST = 10  # sentences that are shown with what was heard


@dataclass(frozen=True, slots=True)
class Score:
    """What a recogniser made of some speech, and of the recordings that it is measured by.

    The rating is how listeners would find it, from 1 to 5, as far as it is known.
    """

    what: str
    rates: ErrorRates
    ceiling: ErrorRates | None = None
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """A recording to listen to, what it says, and what a recogniser heard in it."""

    what: str
    text: str
    path: Path
    heard: str = ""


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """All that a report tells; the sentences that were understood worst are the first score's."""

    title: str
    summary: str
    history: Path
    example: Example
    scores: Sequence[Score] = ()
    measures: Mapping[str, float | int | str] = field(default_factory=dict)
    clips: Sequence[Clip] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)


def write_report(folder: str | Path, facts: ReportFacts) -> Path:
    """Write pictures, figures, the summary and the page into a folder; return the page."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    history = read_history(facts.history)
    pictures = _draw(folder, history, facts)
    figures = json.dumps(_figures(facts, history), indent=2, ensure_ascii=False)
    (folder / FIGURES).write_text(figures + "\n", encoding="utf-8")
    (folder / SUMMARY).write_text(_markdown(folder, facts, pictures), encoding="utf-8")
    page = folder / PAGE
    page.write_text(_html(facts, pictures), encoding="utf-8")
    return page


def score_rows(scores: Sequence[Score]) -> list[tuple[str, ...]]:
    """Return the table of error rates between the bounds of their intervals, with a head.

    Two columns are how far they are above the ceiling. The last column is the rating, where any
    speech was rated.
    """
    head = ("speech", "sentences", "WER", "CER", "WER above", "CER above")
    rows = [head, *map(_row, scores)]
    if all(score.rating is None for score in scores):
        return rows
    ratings = ["" if score.rating is None else f"{score.rating:.2f}" for score in scores]
    return [(*row, last) for row, last in zip(rows, ["DNSMOS", *ratings], strict=True)]


def _row(score: Score) -> tuple[str, ...]:
    own, ceiling = score.rates, score.ceiling
    above = ("", "")
    if ceiling:
        above = (f"{own.wer - ceiling.wer:+.3f}", f"{own.cer - ceiling.cer:+.3f}")
    rates = (with_bounds(one, digits=3) for one in _intervals(own))
    return (score.what, str(len(own.sentences)), *rates, *above)


def with_bounds(found: Interval, digits: int) -> str:
    """A figure and what its interval is, which that of a single sentence has none of."""
    figures = [f"{one:.{digits}f}" for one in (found.value, found.low, found.high)]
    return f"{figures[0]} [{figures[1]}, {figures[2]}]" if math.isfinite(found.low) else figures[0]


def _intervals(rates: ErrorRates) -> tuple[Interval, Interval]:
    """What other sentences would leave WER and CER in."""
    counts = (rates.word_counts, rates.character_counts)
    return tuple(interval(pairs, ratio_of_sums) for pairs in counts)


def _draw(folder: Path, history: History, facts: ReportFacts) -> dict[str, Path]:
    """Draw the pictures; return their files by what they show."""
    curve, alignment, mels = (folder / f"{name}.png" for name in ("curve", "alignment", "mels"))
    write_curve(curve, history)
    write_alignment(alignment, facts.example)
    write_mels(mels, facts.example)
    said = f"“{facts.example.text}”"
    return {
        "How it learned": curve,
        f"Alignment of the recording of {said}, which it never saw": alignment,
        f"Mel of that recording, and of what it says by itself: {said}": mels,
    }


def _figures(facts: ReportFacts, history: History) -> dict:
    """Return all numbers, for programs to read."""
    return {
        "title": facts.title,
        "steps": history.steps,
        "mel_loss": _last(history.mel_loss),
        "val_mel_loss": _last(history.val_mel_loss),
        "mean_mel_loss": history.mean_mel_loss,
        "waiting_share": history.waiting,
        "scores": [_score_figures(score) for score in facts.scores],
        "measures": dict(facts.measures),
        "not_measured": dict(facts.not_measured),
        "clips": [{"what": c.what, "text": c.text, "heard": c.heard} for c in facts.clips],
    }


def _score_figures(score: Score) -> dict:
    names = ("wer", "cer", "words", "substitutions", "deletions", "insertions")
    wer, cer = ([_number(one.low), _number(one.high)] for one in _intervals(score.rates))
    return {
        "what": score.what,
        "sentences": len(score.rates.sentences),
        "dnsmos": score.rating,
        **{name: getattr(score.rates, name) for name in names},
        "wer_interval": wer,
        "cer_interval": cer,
    }


def _number(value: float) -> float | None:
    """JSON has no word for the bound that a single sentence lacks."""
    return value if math.isfinite(value) else None


def _last(points: Sequence[tuple[int, float]]) -> float | None:
    return points[-1][1] if points else None


def _worst(facts: ReportFacts) -> list[tuple[str, ...]]:
    """Return the sentences that were understood worst, with a head, or nothing."""
    if not facts.scores:
        return []
    wrong = [one for one in facts.scores[0].rates.sentences if one.errors]
    wrong.sort(key=lambda one: one.errors / one.words, reverse=True)
    rows = [(one.said, one.heard or "(nothing)", str(one.errors)) for one in wrong[:WORST]]
    return [("said", "heard", "words wrong"), *rows] if rows else []


def _measure_rows(facts: ReportFacts) -> list[tuple[str, ...]]:
    return [
        ("measure", "value"),
        *((name, _shown(value)) for name, value in facts.measures.items()),
    ]


def _shown(value: float | int | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _markdown(folder: Path, facts: ReportFacts, pictures: Mapping[str, Path]) -> str:
    parts = [f"# {facts.title}", facts.summary]
    if facts.scores:
        parts.append(_markdown_table(score_rows(facts.scores)))
    if facts.measures:
        parts.append(_markdown_table(_measure_rows(facts)))
    for what, why in facts.not_measured.items():
        parts.append(f"Not measured: {what}. {why}")
    for title, path in pictures.items():
        parts += [f"## {title}", f"![{title}]({_relative(path, folder)})"]
    if facts.clips:
        parts += ["## Listen", "\n".join(_clip_line(clip, folder) for clip in facts.clips)]
    for what, path in facts.folders.items():
        parts.append(f"{what}: [{_relative(path, folder)}]({_relative(path, folder)})")
    if worst := _worst(facts):
        parts += ["## Understood worst", _markdown_table(worst)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def _clip_line(clip: Clip, folder: Path) -> str:
    heard = f"; heard: {clip.heard}" if clip.heard else ""
    return f"- [{clip.what}]({_relative(clip.path, folder)}): {clip.text}{heard}"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _html(facts: ReportFacts, pictures: Mapping[str, Path]) -> str:
    parts = [f"<h1>{escape(facts.title)}</h1>", f"<p>{escape(facts.summary)}</p>"]
    if facts.scores:
        parts += ["<h2>What a recogniser understands</h2>", _html_table(score_rows(facts.scores))]
    if facts.measures:
        parts += ["<h2>Measured</h2>", _html_table(_measure_rows(facts))]
    if facts.not_measured:
        lines = (f"<li>{escape(f'{what}. {why}')}</li>" for what, why in facts.not_measured.items())
        parts += ["<h2>Not measured</h2>", f"<ul>{''.join(lines)}</ul>"]
    for title, path in pictures.items():
        image = f'<img alt="{escape(title)}" src="{_embedded(path, "image/png")}">'
        parts += [f"<h2>{escape(title)}</h2>", image]
    if facts.clips:
        parts += ["<h2>Listen</h2>", *map(_html_clip, facts.clips)]
    for what, path in facts.folders.items():
        parts.append(f"<p>{escape(what)}: <code>{escape(str(path))}</code></p>")
    if worst := _worst(facts):
        parts += ["<h2>Understood worst</h2>", _html_table(worst)]
    return html_page(facts.title, _STYLE, parts)


def html_page(title: str, style: str, parts: Iterable[str]) -> str:
    """A page that needs no other file."""
    return _TEMPLATE.format(title=escape(title), style=style, body="\n".join(parts))


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return f"<table>{_html_row(head, 'th')}{''.join(_html_row(row, 'td') for row in body)}</table>"


def _html_row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f'<{tag} dir="auto">{escape(cell)}</{tag}>' for cell in cells) + "</tr>"


def _html_clip(clip: Clip) -> str:
    heard = f"<br>heard: <i>{escape(clip.heard)}</i>" if clip.heard else ""
    return (
        f'<p><b>{escape(clip.what)}</b>: <span dir="auto">{escape(clip.text)}</span>{heard}<br>'
        f'<audio controls preload="none" src="{_embedded(clip.path, "audio/wav")}"></audio></p>'
    )


def _embedded(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: start; padding: .3rem .8rem; border-bottom: 1px solid #8885; }
img { max-width: 100%; background: white; }
audio { margin-top: .3rem; }
:root { color-scheme: light dark; }
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
