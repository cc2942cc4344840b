"""The history of a training run: the mel loss of its steps and of its validations."""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.checkpoints import CheckpointError, saved_states
from myxtts.checkpoints.states import read_facts
from myxtts.errors import UserError
from myxtts.monitoring.history import Line, begins_with, read_lines

logger = logging.getLogger(__name__)

Point = tuple[int, float]  # step, value


@dataclass(frozen=True, slots=True)
class History:
    """Points of the learning curve, the score of predicting the mean mel, and the share of time
    that steps waited for their batch."""

    mel_loss: tuple[Point, ...]
    val_mel_loss: tuple[Point, ...]
    mean_mel_loss: float | None
    waiting: float | None

    @property
    def steps(self) -> int:
        """The last recorded step."""
        return max((step for step, _ in self.mel_loss + self.val_mel_loss), default=0)


def read_history(path: Path) -> History:
    """Read `history.jsonl`: an object per line, with `step` and metrics or `val/` metrics.

    Warn where it does not match the last checkpoint next to it.
    """
    entries = _entries(Path(path))
    names = ("mel_loss", "val/mel_loss", "val/mean_mel_loss")
    mel_loss, val_mel_loss, mean = (_points(entries, name) for name in names)
    return History(mel_loss, val_mel_loss, last_value(mean), _waiting(entries))


def last_value(points: Sequence[Point]) -> float | None:
    return points[-1][1] if points else None


def _entries(path: Path) -> list[dict]:
    try:
        lines = read_lines(path)
    except FileNotFoundError as error:
        raise UserError(f"there is no {path}: this run has written no history yet") from error
    if not lines:
        raise UserError(f"{path} is empty: this run has written no history yet")
    if not _is_of_run(path.parent, lines):
        logger.warning("%s is not the history of the run in %s: lines differ", path, path.parent)
    return [line.values for line in lines]


def _is_of_run(run: Path, lines: Sequence[Line]) -> bool:
    for state in reversed(saved_states(run / "checkpoints")):
        with contextlib.suppress(CheckpointError):
            trail = read_facts(state).get("history")
            return trail is None or begins_with(lines, trail)
    return True


def _points(entries: Sequence[dict], name: str) -> tuple[Point, ...]:
    # JSON has null where a value was not finite.
    return tuple((one["step"], one[name]) for one in entries if one.get(name) is not None)


def _waiting(entries: Sequence[dict]) -> float | None:
    timed = [one for one in entries if "data_ms" in one and "compute_ms" in one]
    waited = sum(one["data_ms"] for one in timed)
    total = waited + sum(one["compute_ms"] for one in timed)
    return waited / total if total else None
