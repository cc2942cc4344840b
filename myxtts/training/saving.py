"""Keeping a run: its checkpoints, the best of them, and the voice as it is so far."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from myxtts.checkpoints import best_state, mark_best, prune, save_state, saved_states
from myxtts.training.loop import FAILED, Hook, StepRecord
from myxtts.training.validation import ValidationHook

log = logging.getLogger(__name__)

METRIC = "loss"


class SavingHook(Hook):
    """Saves every so often, when validation was best, and when the run ends without a fault.

    `export` writes the voice into a folder of the first of the `names`, and of both when it is the
    best. A checkpoint is written before its voice: a run that goes on from it writes the voice
    again, in case the one before was killed in between.
    """

    def __init__(
        self,
        folder: Path,
        variables: dict[str, Any],
        facts: dict[str, Any],
        interval: int,
        keep: int,
        validation: ValidationHook | None,
        export: Callable[[Path], Any],
        names: tuple[str, str] = ("voice", "voice-best"),
    ):
        self.folder, self.variables, self.facts = Path(folder), variables, facts
        self.interval, self.keep = interval, keep
        self.validation, self.export, self.names = validation, export, names
        self.last: Path | None = None
        self._position: dict[str, int] | None = None
        self._saved_step = 0

    @property
    def states(self) -> Path:
        return self.folder / "checkpoints"

    def start(self, step: int) -> None:
        self._saved_step = step
        self.last = next(reversed(saved_states(self.states)), None)
        if step:
            best = best_state(self.states)
            self._export(is_best=best is not None and best.step == step)

    def is_due(self, step: int) -> bool:
        return step % self.interval == 0

    def after_step(self, record: StepRecord) -> None:
        self._position = {"epoch": record.epoch, "number": record.number + 1}
        is_best = self._is_best(record.step)
        if self.is_due(record.step) or is_best:
            self.save(record.step, is_best)

    def finish(self, step: int, reason: str) -> None:
        if reason == FAILED or self._position is None:
            return
        if step != self._saved_step or self._is_best(step):
            self.save(step, self._is_best(step))

    def save(self, step: int, is_best: bool) -> None:
        """Write the state after a step, forget the oldest, and write the voice."""
        facts = {**self.facts, **self._position}
        self.last = save_state(self.states, step, self.variables, facts)
        self._saved_step = step
        if is_best:
            mark_best(self.states, step, METRIC, self.validation.scored[step][METRIC])
        prune(self.states, self.keep, {self.last})
        self._export(is_best)
        log.info("saved %s%s", self.last, ", the best so far" if is_best else "")

    def _export(self, is_best: bool) -> None:
        for name in self.names if is_best else self.names[:1]:
            self.export(self.folder / name)

    def _is_best(self, step: int) -> bool:
        if self.validation is None or step not in self.validation.scored:
            return False
        best = best_state(self.states)
        if best is not None and best.step == step:
            return False
        return best is None or self.validation.scored[step][METRIC] < best.value
