"""What a terminal shows: the package's log on stderr, and rows of text in columns."""

import logging
import sys
from collections.abc import Collection, Iterable, Sequence

PACKAGE = "myxtts"


def show_log(level: int, label: str = "") -> None:
    """Show the package's log from a level on, without the names of modules, behind a label."""
    logger = logging.getLogger(PACKAGE)
    for handler in [own for own in logger.handlers if isinstance(own, StderrHandler)]:
        logger.removeHandler(handler)
    logger.addHandler(StderrHandler(label))
    logger.setLevel(level)


def show_log_unless_set_up() -> None:
    """Show losses and reports to a script that has set up no logging; leave any other alone."""
    if not logging.getLogger(PACKAGE).hasHandlers():
        show_log(logging.INFO)


def columns(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """Rows of text in aligned columns: those numbered in `right` to the right, others left."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


class StderrHandler(logging.Handler):
    """Writes to whatever is stderr at that moment, so that a progress bar can make room."""

    def __init__(self, label: str = ""):
        super().__init__()
        self.label = label

    def emit(self, record: logging.LogRecord) -> None:
        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        print(f"{self.label}{prefix}{self.format(record)}", file=sys.stderr)
