"""The history of a run: a line of JSON per interval and per validation."""

import errno
import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from myxtts import atomic
from myxtts.checkpoints.files import explained
from myxtts.checkpoints.states import SavedState
from myxtts.monitoring.history import (
    HISTORY,
    VALIDATED,
    Line,
    Trail,
    begins_with,
    encode_line,
    is_of_evaluation,
    read_lines,
    trail_of,
    validation_of,
    without_evaluations,
)
from myxtts.training.hooks.log import Means
from myxtts.training.loop import Hook, StepRecord

logger = logging.getLogger(__name__)


class HistoryHook(Hook):
    """Appends a line of JSON per interval to `history.jsonl`, which restarts keep consistent.

    The history is part of a run: where it cannot be written, the run ends and can be resumed.

    Metrics are those of the step itself: means over an interval would depend on restarts. The times
    are means over all steps since the line before, without the first step, which compiles.
    """

    def __init__(self, folder: Path, log_interval: int, resumed: SavedState | None = None):
        self.path = Path(folder) / HISTORY
        self.log_interval, self.resumed = log_interval, resumed
        self._trail = Trail()
        self._times: Means | None = None
        self._earlier: set[tuple[int, frozenset[str]]] = set()

    @property
    def trail(self) -> dict[str, Any]:
        """What a checkpoint says of the lines so far."""
        return self._trail.facts()

    def start(self, step: int) -> None:
        self._times = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            forget_after(self.path, step)
        lines = read_lines(self.path) if self.path.exists() else []
        self._earlier = {validation_of(line.values) for line in lines} - {None}
        self._trail = trail_of(lines)
        self._compare(lines)

    def after_step(self, record: StepRecord) -> None:
        if self._times is None:
            self._times = Means()
        else:
            self._times.add(record.figures)
        if record.step % self.log_interval == 0:
            times, self._times = self._times.values(), Means()
            self._append({"step": record.step, "epoch": record.epoch, **record.metrics, **times})

    def record_validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append what a validation after `step` measured.

        It replaces the line of an earlier process, which was killed before it saved what it knew.
        """
        values = {"step": step, **{f"{VALIDATED}{name}": v for name, v in metrics.items()}}
        place = validation_of(values)
        if place not in self._earlier:
            self._append(values)
            return
        self._earlier.remove(place)
        kept = [line for line in read_lines(self.path) if validation_of(line.values) != place]
        lines = [*kept, encode_line(_json_values(values))]
        _rewrite(self.path, lines)
        self._trail = trail_of(lines)

    def _append(self, values: Mapping[str, float]) -> None:
        line = encode_line(_json_values(values))
        # Opened anew each time, without a buffer: a line reaches the file at once, or not at all.
        with explained(self.path), open(self.path, "ab", buffering=0) as file:
            end = file.tell()
            try:
                if file.write(line.text) < len(line.text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            except OSError:
                file.truncate(end)
                raise
        if not is_of_evaluation(line.values):
            self._trail.add(line.values)

    def _compare(self, lines: Sequence[Line]) -> None:
        """Warn where the lines are not those that the checkpoint was saved after.

        A kill may have come after a last validation and before it was saved that it was made.
        """
        before = self.resumed.facts.get("history") if self.resumed else None
        if before is None:  # a new run, or one of the version before
            return
        own = without_evaluations(lines)
        later = own[before["lines"] :]
        if not begins_with(own, before) or not all(validation_of(line.values) for line in later):
            logger.warning(
                "%s is not the history of this run up to step %d: it had %d lines of steps and "
                "validations, and now has %d or other ones. The run resumes, since nothing that "
                "is trained depends on this file; restore it from a copy to keep its curves whole",
                self.path,
                self.resumed.step,
                before["lines"],
                len(own),
            )


def forget_after(path: Path, step: int) -> None:
    """Drop the lines of a history that are later than `step`, and a last one that is torn."""
    _rewrite(path, [line for line in read_lines(path) if line.values["step"] <= step])


def _rewrite(path: Path, lines: Sequence[Line]) -> None:
    with explained(path):
        atomic.write(path, b"".join(line.text for line in lines), alone=True)


def _json_values(values: Mapping[str, float]) -> dict[str, Any]:
    """JSON has no word for NaN and infinity."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
