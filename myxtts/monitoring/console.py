"""The package's log on stderr: for commands, and for scripts that have set up no logging."""

import logging
import sys

PACKAGE = "myxtts"


def show_log(level: int) -> None:
    """Show the package's log from a level on, without the names of modules."""
    logger = logging.getLogger(PACKAGE)
    for handler in [own for own in logger.handlers if isinstance(own, StderrHandler)]:
        logger.removeHandler(handler)
    logger.addHandler(StderrHandler())
    logger.setLevel(level)


def show_log_unless_set_up() -> None:
    """Show losses and reports to a script that has set up no logging; leave any other alone."""
    if not logging.getLogger(PACKAGE).hasHandlers():
        show_log(logging.INFO)


class StderrHandler(logging.Handler):
    """Writes to whatever is stderr at that moment, so that a progress bar can make room."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        print(f"{prefix}{self.format(record)}", file=sys.stderr)
