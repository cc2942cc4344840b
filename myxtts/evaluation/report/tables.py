"""Tables of a report as plain text, Markdown and HTML."""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from myxtts.evaluation.metrics.confidence import Interval

Rows = list[tuple[str, ...]]


def with_bounds(found: Interval | None, digits: int) -> str:
    """A figure and its interval, of which a single sentence has none; nothing without a figure."""
    if found is None or not math.isfinite(found.value):
        return ""
    figures = [f"{one:.{digits}f}" for one in (found.value, found.low, found.high)]
    return f"{figures[0]} [{figures[1]}, {figures[2]}]" if math.isfinite(found.low) else figures[0]


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Columns as plain text: names to the left, figures to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *figures in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of which a narrow screen shows each row as a block, with the heads in front."""
    head, *body = rows
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(_html_cells(head, row))}</tr>" for row in body)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _html_cells(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    yield f'<th scope="row" dir="auto">{escape(row[0])}</th>'
    for name, cell in zip(head[1:], row[1:], strict=True):
        yield f'<td data-head="{escape(name)}" dir="auto">{escape(cell)}</td>'
