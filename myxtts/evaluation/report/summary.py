"""The report on a training run: learning curve, plots, and evaluations of its speech."""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import NamedTuple

from myxtts.evaluation.evaluator import Evaluation
from myxtts.evaluation.history import History, last_value, read_history
from myxtts.evaluation.metrics.confidence import Interval
from myxtts.evaluation.metrics.intelligibility import ErrorRates, error_rates
from myxtts.evaluation.metrics.table import METRICS, RECORDED, RESYNTHESIS, SPEECH
from myxtts.evaluation.report.figures import figures_of, without_nan
from myxtts.evaluation.report.page import embedded, evaluation_parts, html_page, player
from myxtts.evaluation.report.plots import (
    Example,
    write_alignment,
    write_curve,
    write_mels,
    write_picture,
)
from myxtts.evaluation.report.rows import measure_rows
from myxtts.evaluation.report.tables import Rows, html_table, markdown_table, with_bounds

PAGE, SUMMARY, FIGURES, PICTURE = "report.html", "report.md", "report.json", "summary.png"
WORST = 10  # sentences that are shown with their transcripts
CLIPS = 3  # sentences of each evaluation to listen to


@dataclass(frozen=True, eq=False)
class Report:
    """The content of a report; `evaluations` are by title, the main one first.

    `audio` are the folders of their wavs, by the same titles.
    """

    title: str
    summary: str
    history: Path
    example: Example
    evaluations: Mapping[str, Evaluation]
    audio: Mapping[str, Path] = field(default_factory=dict)
    verdicts: Sequence[str] = ()
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)

    @property
    def main(self) -> Evaluation:
        return next(iter(self.evaluations.values()))


class Compared(NamedTuple):
    """One source of an evaluation, as a row of the table that compares them."""

    what: str
    evaluation: Evaluation
    source: str

    def interval(self, metric: str) -> Interval | None:
        measure = self.evaluation.measures.get(metric)
        return measure.intervals.get(self.source) if measure else None

    def above(self, metric: str) -> float | None:
        """How far the speech is above the recordings."""
        own, ceiling = self.interval(metric), self._replace(source=RECORDED).interval(metric)
        is_known = self.source == SPEECH and own and ceiling
        return own.value - ceiling.value if is_known else None

    def rates(self) -> ErrorRates | None:
        if self.source not in self.evaluation.heard:
            return None
        subject = self.evaluation.subject
        texts = [one.text for one in subject.sentences]
        return error_rates(texts, self.evaluation.heard[self.source], subject.language)


def write_report(folder: str | Path, report: Report) -> Path:
    """Write plots, figures, the summary and the page into a folder; return the page."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    history = read_history(report.history)
    pictures = _draw(folder, history, report.example)
    figures = json.dumps(_figures(report, history), indent=2, ensure_ascii=False)
    (folder / FIGURES).write_text(figures + "\n", encoding="utf-8")
    (folder / SUMMARY).write_text(_markdown(folder, report, pictures), encoding="utf-8")
    page = folder / PAGE
    page.write_text(_html(report, pictures), encoding="utf-8")
    return page


def compare(evaluations: Mapping[str, Evaluation]) -> list[Compared]:
    """The speech of each evaluation, its recordings where they are new, and their resynthesis."""
    found, known = [], set()
    for title, one in evaluations.items():
        recorded = id(one.subject.sentences[0].recorded)
        sources = {SPEECH: f"model, {title}", RECORDED: f"recordings, {title}"}
        sources[RESYNTHESIS] = f"recordings through {one.subject.vocoder}"
        for source, what in sources.items():
            row = Compared(what, one, source)
            is_judged = row.interval("wer") or row.interval("mos")
            if is_judged and (source != RECORDED or recorded not in known):
                found.append(row)
        known.add(recorded)
    return found


def compared_rows(evaluations: Mapping[str, Evaluation]) -> Rows:
    """The table of error rates, their excess over the recordings', and ratings, with a head.

    Empty where neither was measured.
    """
    found = compare(evaluations)
    if not found:
        return []
    has_ratings = any("mos" in one.measures for one in evaluations.values())
    head = ("speech", "sentences", "WER", "CER", "WER above", "CER above")
    rows = [(*head, "DNSMOS") if has_ratings else head]
    for one in found:
        above = (one.above("wer"), one.above("cer"))
        cells = [
            one.what,
            str(len(one.evaluation.subject.sentences)),
            *(with_bounds(one.interval(name), METRICS[name].digits) for name in ("wer", "cer")),
            *("" if value is None else f"{value:+.3f}" for value in above),
        ]
        if has_ratings:
            rating = one.interval("mos")
            cells.append(f"{rating.value:.2f}" if rating and math.isfinite(rating.value) else "")
        rows.append(tuple(cells))
    return rows


def _draw(folder: Path, history: History, example: Example) -> dict[str, Path]:
    """Draw the plots; return their files by title."""
    curve, alignment, mels = (folder / f"{name}.png" for name in ("curve", "alignment", "mels"))
    write_curve(curve, history)
    write_alignment(alignment, example)
    write_mels(mels, example)
    write_picture(folder / PICTURE, history, example)
    text = f"“{example.text}”"
    return {
        "Learning curve": curve,
        f"Alignment of the recording of {text}, which was not trained on": alignment,
        f"Mel of that recording, and of the model's own speech: {text}": mels,
    }


def _figures(report: Report, history: History) -> dict:
    """All numbers, for programs to read."""
    figures = {
        "title": report.title,
        "steps": history.steps,
        "mel_loss": last_value(history.mel_loss),
        "val_mel_loss": last_value(history.val_mel_loss),
        "mean_mel_loss": history.mean_mel_loss,
        "waiting_share": history.waiting,
        "scores": [_score_figures(one) for one in compare(report.evaluations)],
        "verdicts": list(report.verdicts),
        "measures": dict(report.facts),
        "not_measured": dict(report.not_measured),
        "clips": [
            {"what": title, "text": text, "heard": heard}
            for title, text, heard, _ in _clips(report)
        ],
        "evaluations": {title: figures_of(one) for title, one in report.evaluations.items()},
    }
    return without_nan(figures)


def _score_figures(one: Compared) -> dict:
    rating = one.interval("mos")
    found = {"what": one.what, "sentences": len(one.evaluation.subject.sentences)}
    found["dnsmos"] = rating.value if rating else None
    rates = one.rates()
    if rates:
        names = ("wer", "cer", "words", "substitutions", "deletions", "insertions")
        found |= {name: getattr(rates, name) for name in names}
        for name in ("wer", "cer"):
            bounds = one.interval(name)
            found[f"{name}_interval"] = [bounds.low, bounds.high]
    return found


def _clips(report: Report) -> Iterator[tuple[str, str, str, int]]:
    """The first sentences of each evaluation: its title, the text, the transcript, the number."""
    for title, one in report.evaluations.items():
        for number, sentence in enumerate(one.subject.sentences[:CLIPS]):
            heard = one.heard[SPEECH][number] if SPEECH in one.heard else ""
            yield title, sentence.text, heard, number


def _worst(report: Report) -> Rows:
    """The sentences with the most ASR errors, with a head, or nothing."""
    found = Compared("", report.main, SPEECH).rates()
    wrong = [one for one in found.sentences if one.errors] if found else []
    wrong.sort(key=lambda one: one.errors / one.words, reverse=True)
    rows = [(one.said, one.heard or "(nothing)", str(one.errors)) for one in wrong[:WORST]]
    return [("text", "transcript", "words wrong"), *rows] if rows else []


def _fact_rows(report: Report) -> Rows:
    rows = [(name, format_fact(value)) for name, value in report.facts.items()]
    return [("fact", "value"), *rows] if rows else []


def format_fact(value: float | int | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _markdown(folder: Path, report: Report, pictures: Mapping[str, Path]) -> str:
    parts = [f"# {report.title}", report.summary]
    if rows := compared_rows(report.evaluations):
        parts.append(markdown_table(rows))
    parts += report.verdicts
    parts.append(markdown_table(measure_rows(report.main)))
    if rows := _fact_rows(report):
        parts.append(markdown_table(rows))
    for what, reason in report.not_measured.items():
        parts.append(f"Not measured: {what}. {reason}")
    for title, path in pictures.items():
        parts += [f"## {title}", f"![{title}]({_relative(path, folder)})"]
    clips = [
        f"- [{title}]({_relative(report.audio[title] / f'{number + 1:04d}.wav', folder)}): {text}"
        + (f"; heard: {heard}" if heard else "")
        for title, text, heard, number in _clips(report)
        if title in report.audio
    ]
    if clips:
        parts += ["## Listen", "\n".join(clips)]
    for what, path in report.folders.items():
        parts.append(f"{what}: [{_relative(path, folder)}]({_relative(path, folder)})")
    if worst := _worst(report):
        parts += ["## Understood worst", markdown_table(worst)]
    return "\n\n".join(parts) + "\n"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _html(report: Report, pictures: Mapping[str, Path]) -> str:
    parts = [f"<h1>{escape(report.title)}</h1>", f"<p>{escape(report.summary)}</p>"]
    if rows := compared_rows(report.evaluations):
        parts += ["<h2>What an ASR understands</h2>", html_table(rows)]
    parts += [f"<p>{escape(one)}</p>" for one in report.verdicts]
    parts += evaluation_parts(report.main)
    if rows := _fact_rows(report):
        parts += ["<h2>Facts</h2>", html_table(rows)]
    if report.not_measured:
        lines = [f"{what}. {reason}" for what, reason in report.not_measured.items()]
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        parts += ["<h2>Not measured</h2>", f"<ul>{items}</ul>"]
    for title, path in pictures.items():
        source = embedded(path.read_bytes(), "image/png")
        parts += [f"<h2>{escape(title)}</h2>", f'<img alt="{escape(title)}" src="{source}">']
    parts.append("<h2>Listen</h2>")
    for title, text, heard, number in _clips(report):
        subject = report.evaluations[title].subject
        transcript = f"<br>heard: <i>{escape(heard)}</i>" if heard else ""
        sound = player(subject.sentences[number].spoken, subject.spec.sample_rate)
        what = f'<b>{escape(title)}</b>: <span dir="auto">{escape(text)}</span>'
        parts.append(f"<p>{what}{transcript}<br>{sound}</p>")
    for what, path in report.folders.items():
        parts.append(f"<p>{escape(what)}: <code>{escape(str(path))}</code></p>")
    if worst := _worst(report):
        parts += ["<h2>Understood worst</h2>", html_table(worst)]
    return html_page(report.title, parts)
