"""One self-contained HTML page about a run or a profile: the verdict, charts and tables."""

import html
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from myxtts import atomic
from myxtts.monitoring.verdict import distribution

# A series has at most so many points in the page, which is more than a screen has columns.
MOST_POINTS = 1500
_TEMPLATE = Path(__file__).with_name("page.html")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_NUMBER_LIKE = re.compile(r"[-+−]?\d[\d.,]*(\s?\S{1,4})?|[–-]?")


@dataclass(frozen=True)
class Table:
    """Rows of text under a head."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"{self.title!r} has {len(self.head)} columns, a row {len(row)}")


@dataclass(frozen=True)
class ShapeUse:
    """How often batches had a shape, and what that cost.

    `padding` is the share of frames that are padding, `compile_ms` what the first use took beyond
    the others: 0 where nothing was compiled.
    """

    shape: str
    steps: int
    padding: float
    compile_ms: float


@dataclass(frozen=True)
class PageFacts:
    """What a page shows. Whatever is empty has no section.

    `phases` has the milliseconds and `utilisation` the share (0 to 1) of each of `steps`, which
    ascend; `losses` has pairs of step and value, `system` pairs of seconds and value, under names
    that end in their unit ("CPU %"). A value that is not finite is a gap.
    """

    title: str
    verdict: str
    is_healthy: bool
    steps: Sequence[int] = ()
    phases: Mapping[str, Sequence[float]] = field(default_factory=dict)
    utilisation: Sequence[float] = ()
    losses: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    shapes: Sequence[ShapeUse] = ()
    padding_waste: float | None = None
    system: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        lengths = {name: len(ms) for name, ms in self.phases.items()}
        if len(self.utilisation):
            lengths["utilisation"] = len(self.utilisation)
        for name, length in lengths.items():
            if length != len(self.steps):
                raise ValueError(f"{name!r} has {length} values for {len(self.steps)} steps")
        if np.any(np.diff(self.steps) <= 0):
            raise ValueError("the steps of a page must ascend")


def write_page(path: str | os.PathLike[str], facts: PageFacts) -> Path:
    """Write the page, so that a reader sees the old one or the new one, whole."""
    path = Path(path)
    atomic.write_output(path, _page(facts).encode())
    return path


def thinned(values: Any, most: int = MOST_POINTS) -> np.ndarray:
    """Return at most `most` means of neighbours, [points, ...] for values [values, ...].

    All runs of neighbours are equally long, but for the last, which may be shorter. A run with a
    value that is not finite has no finite mean.
    """
    values = np.asarray(values, np.float64)
    if len(values) <= most:
        return values
    starts = np.arange(0, len(values), run_length(len(values), most))
    lengths = np.diff(starts, append=len(values)).reshape(-1, *[1] * (values.ndim - 1))
    with np.errstate(invalid="ignore"):  # inf - inf
        return np.add.reduceat(values, starts, axis=0) / lengths


def run_length(count: int, most: int = MOST_POINTS) -> int:
    """Return how many neighbours of `count` values share a point."""
    return max(1, math.ceil(count / most))


def _page(facts: PageFacts) -> str:
    charts = _charts(facts)
    parts = {
        "title": html.escape(facts.title),
        "health": "good" if facts.is_healthy else "bad",
        "health_word": "Healthy" if facts.is_healthy else "Needs attention",
        "verdict": html.escape(facts.verdict),
        "sections": "\n".join(_sections(facts, charts)),
        "charts": _script_json(charts),
    }
    template = _TEMPLATE.read_text(encoding="utf-8")
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], template)


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


# Charts: what the page's script draws.


def _charts(facts: PageFacts) -> dict[str, dict[str, Any]]:
    """The charts by their id; one without values does not exist."""
    charts = {}
    if len(facts.steps) and facts.phases:
        charts["time"] = _time_chart(facts)
    if len(facts.utilisation):
        label = f"{_percent(_busy(facts))} of the time"
        values = {"utilisation": 100 * np.asarray(facts.utilisation, np.float64)}
        charts["utilisation"] = _bars(facts.steps, values, {"utilisation": label}, "%", high=100)
    losses = {name: _pairs(points) for name, points in facts.losses.items() if len(points)}
    if losses:
        charts["losses"] = _lines(losses, _last, "loss", "step", can_log=True)
    for number, (unit, series) in enumerate(_by_unit(facts.system).items()):
        high = 100 if unit == "%" else None
        charts[f"system{number}"] = _lines(series, _mean_and_most, unit, "time", low=0, high=high)
    return charts


def _time_chart(facts: PageFacts) -> dict[str, Any]:
    means = {name: _mean(ms) for name, ms in facts.phases.items()}
    whole = sum(mean for mean in means.values() if mean > 0)
    labels = {
        name: f"{_figure(mean)} ms, {_percent(mean / whole if whole else math.nan)}"
        for name, mean in means.items()
    }
    chart = _bars(facts.steps, facts.phases, labels, "ms")
    totals, run = _totals(facts), run_length(len(facts.steps))
    if run > 1:
        starts = np.arange(0, len(totals), run)
        chart["slowest"] = _rounded(np.maximum.reduceat(totals, starts))
        at = int(totals.argmax())
        slowest = f"The slowest, step {facts.steps[at]:,}, took {_figure(totals[at])} ms."
        chart["notes"] = [*chart["notes"], slowest]
    return {**chart, "can_cut": True}


def _bars(
    steps: ArrayLike,
    values: Mapping[str, ArrayLike],
    labels: Mapping[str, str],
    unit: str,
    high: float | None = None,
) -> dict[str, Any]:
    """Values of each step, one upon the other."""
    steps = np.asarray(steps, np.int64)
    run = run_length(len(steps))
    lasts = np.minimum(np.arange(0, len(steps), run) + run, len(steps)) - 1
    return {
        "kind": "bars",
        "axis": "step",
        "unit": unit,
        "low": 0,
        "high": high,
        "firsts": steps[::run].tolist(),
        "lasts": steps[lasts].tolist(),
        "counts": np.diff(lasts, prepend=-1).tolist(),
        "series": [
            {"name": name, "label": labels[name], "y": _rounded(thinned(of_steps))}
            for name, of_steps in values.items()
        ],
        "notes": [f"Each bar is the mean of {run:,} steps."] if run > 1 else [],
    }


def _lines(
    series: Mapping[str, np.ndarray],
    label: Any,
    unit: str,
    axis: str,
    low: float | None = None,
    high: float | None = None,
    can_log: bool = False,
) -> dict[str, Any]:
    """Lines through pairs [points, 2] of a place on the axis and a value."""
    drawn = []
    for name, pairs in series.items():
        few = thinned(pairs)
        points = {"x": _rounded(few[:, 0], digits=9), "y": _rounded(few[:, 1])}
        drawn.append({"name": name, "label": label(pairs[:, 1]), **points})
    return {
        "kind": "lines",
        "axis": axis,
        "unit": unit,
        "low": low,
        "high": high,
        "can_log": can_log,
        "series": drawn,
        "notes": [*_run_notes(series), *_gap_notes(series)],
    }


def _run_notes(series: Mapping[str, np.ndarray]) -> Iterator[str]:
    """How many values a point stands for, where it is more than one."""
    names: dict[int, list[str]] = {}
    for name, pairs in series.items():
        names.setdefault(run_length(len(pairs)), []).append(name)
    for run, alike in names.items():
        if run > 1:
            whose = "" if len(names) == 1 else f" of {', '.join(alike)}"
            yield f"Each point{whose} is the mean of {run:,} values."


def _gap_notes(series: Mapping[str, np.ndarray]) -> Iterator[str]:
    for name, pairs in series.items():
        if gaps := int(np.sum(~np.isfinite(pairs[:, 1]))):
            yield f"Not finite (×): {gaps:,} of {len(pairs):,} values of {name}."


def _by_unit(system: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, dict[str, Any]]:
    """Series that share the unit at the end of their names share a chart."""
    groups: dict[str, dict[str, Any]] = {}
    for name, points in system.items():
        if len(points):
            groups.setdefault(name.rpartition(" ")[2], {})[name] = _pairs(points)
    return groups


def _pairs(points: Sequence[tuple[float, float]]) -> np.ndarray:
    return np.asarray(points, np.float64).reshape(-1, 2)


def _rounded(values: np.ndarray, digits: int = 5) -> list[float | None]:
    """Short numbers for JSON, which knows no NaN."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values.tolist()]


# Text, figures and tables.


def _sections(facts: PageFacts, charts: Mapping[str, Any]) -> Iterator[str]:
    figures = "".join(_figures(facts))
    if figures:
        yield f'<dl class="figures">{figures}</dl>'
    if "time" in charts:
        yield _section("Where each step's time went", _chart("time"))
    if "utilisation" in charts:
        yield _section("Utilisation of each step", _chart("utilisation"))
    if "losses" in charts:
        yield _section("Losses", _chart("losses"))
    if facts.shapes:
        yield _table(_shapes_table(facts.shapes))
    system = "".join(_chart(name) for name in charts if name.startswith("system"))
    if system:
        yield _section("The machine", system)
    yield from (_table(table) for table in facts.tables)
    if facts.notes:
        notes = "".join(f'<li dir="auto">{html.escape(note)}</li>' for note in facts.notes)
        yield _section("Notes", f"<ul>{notes}</ul>")


def _figures(facts: PageFacts) -> Iterator[str]:
    """The most important numbers, over all steps."""
    if len(facts.steps):
        yield _card("steps", f"{len(facts.steps):,}", f"{facts.steps[0]:,} to {facts.steps[-1]:,}")
        totals = _totals(facts)
        if facts.phases:
            times = distribution(totals)
            spread = f"median {_figure(times.median)}, p99 {_figure(times.p99)} ms"
            yield _card("mean step", f"{_figure(times.mean)} ms", spread)
            yield _card("time in these steps", _duration(float(totals.sum()) / 1000), "")
    if len(facts.utilisation):
        yield _card("utilisation", _percent(_busy(facts)), "of the time")
    if facts.padding_waste is not None:
        yield _card("padding", _percent(facts.padding_waste), "of all frames")
    if facts.shapes:
        compiled = [use.compile_ms for use in facts.shapes if use.compile_ms > 0]
        cost = f"{len(compiled):,} compiled in {_duration(sum(compiled) / 1000)}"
        yield _card("shapes", f"{len(facts.shapes):,}", cost if compiled else "none compiled")


def _busy(facts: PageFacts) -> float:
    """The share of all time: a long step weighs more than a short one, where lengths are known."""
    shares = np.asarray(facts.utilisation, np.float64)
    lengths = np.sum([np.asarray(ms) for ms in facts.phases.values()], axis=0)
    weights = np.broadcast_to(lengths if np.any(lengths) else 1.0, shares.shape)
    return float(np.average(shares, weights=weights))


def _card(name: str, value: str, detail: str) -> str:
    small = f"<dd>{html.escape(detail)}</dd>" if detail else ""
    return f'<div><dt>{name}</dt><dd class="value">{html.escape(value)}</dd>{small}</div>'


def _section(title: str, content: str) -> str:
    return f'<section><h2 dir="auto">{html.escape(title)}</h2>{content}</section>'


def _chart(name: str) -> str:
    return f'<figure data-chart="{name}"></figure>'


def _shapes_table(shapes: Sequence[ShapeUse]) -> Table:
    steps = sum(use.steps for use in shapes)
    rows = [
        (
            use.shape,
            f"{use.steps:,}",
            _percent(use.steps / steps if steps else math.nan),
            _percent(use.padding),
            f"{_figure(use.compile_ms)} ms" if use.compile_ms > 0 else "–",
        )
        for use in shapes
    ]
    head = ("shape", "steps", "share of steps", "padding", "compiling it took")
    return Table("Shapes of batches", head, rows)


def _table(table: Table) -> str:
    is_number = [
        all(_NUMBER_LIKE.fullmatch(row[column].strip()) for row in table.rows)
        for column in range(len(table.head))
    ]
    head = _cells("th", map(html.escape, table.head), is_number)
    rows = "".join(
        f"<tr>{_cells('td', (f'<bdi>{html.escape(cell)}</bdi>' for cell in row), is_number)}</tr>"
        for row in table.rows
    )
    # The head's language says on which side the first column stands.
    content = f'<table dir="auto"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    label = html.escape(table.title)
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{content}</div>'
    return _section(table.title, box)


def _cells(tag: str, texts: Iterable[str], is_number: Sequence[bool]) -> str:
    return "".join(
        f'<{tag} class="number">{text}</{tag}>' if is_right else f"<{tag}>{text}</{tag}>"
        for text, is_right in zip(texts, is_number, strict=True)
    )


def _totals(facts: PageFacts) -> np.ndarray:
    """Milliseconds of each step; a phase that was not measured adds nothing."""
    totals = np.zeros(len(facts.steps))
    for ms in facts.phases.values():
        totals += np.nan_to_num(np.asarray(ms, np.float64), posinf=0.0, neginf=0.0)
    return totals


def _mean(values: Sequence[float]) -> float:
    finite = _finite(values)
    return float(finite.mean()) if len(finite) else math.nan


def _last(values: np.ndarray) -> str:
    return f"last {values[-1]:.4g}"


def _mean_and_most(values: np.ndarray) -> str:
    finite = _finite(values)
    if not len(finite):
        return "not measured"
    return f"mean {_figure(finite.mean())}, most {_figure(finite.max())}"


def _finite(values: ArrayLike) -> np.ndarray:
    values = np.asarray(values, np.float64)
    return values[np.isfinite(values)]


def _figure(value: float) -> str:
    """Three digits or all before the point: 0.0123, 12.3, 1,234."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "–"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{_figure(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
