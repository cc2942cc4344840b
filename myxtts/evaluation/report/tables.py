"""Tables of a report as plain text, Markdown and HTML."""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from myxtts.evaluation.metrics.confidence import Interval
from myxtts.monitoring.console import columns

Rows = list[tuple[str, ...]]


def with_bounds(found: Interval | None, digits: int) -> str:
    """A figure and its interval, if it has one; empty without a figure."""
    if found is None or not math.isfinite(found.value):
        return ""
    figures = [f"{one:.{digits}f}" for one in (found.value, found.low, found.high)]
    return f"{figures[0]} [{figures[1]}, {figures[2]}]" if math.isfinite(found.low) else figures[0]


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Plain text columns: names left-aligned, figures right-aligned."""
    rows = list(rows)
    return columns(rows, right=range(1, len(rows[0])))


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """A table; narrow screens show each row as a block with the heads before the cells."""
    head, *body = rows
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(_html_cells(head, row))}</tr>" for row in body)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _html_cells(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    yield f'<th scope="row" dir="auto">{escape(row[0])}</th>'
    for name, cell in zip(head[1:], row[1:], strict=True):
        yield f'<td data-head="{escape(name)}" dir="auto">{escape(cell)}</td>'
