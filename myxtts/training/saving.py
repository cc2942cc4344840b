"""Keeping a run: its checkpoints, the best of them, and the voice as it is so far."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from myxtts.checkpoints import best_state, mark_best, prune, save_state, saved_states
from myxtts.training.evaluation import EvaluationHook
from myxtts.training.loop import FAILED, Hook, StepRecord
from myxtts.training.validation import ValidationHook

log = logging.getLogger(__name__)

METRIC = "loss"
MORE_IS_BETTER = ("mos",)


class SavingHook(Hook):
    """Saves every so often, when validation was best, and when the run ends without a fault.

    `export` writes the voice into a folder of the first of the `names`, and of both when it is the
    best. A checkpoint is written before its voice: a run that goes on from it writes the voice
    again, in case the one before was killed in between.

    With an `evaluation` the best is the one of its `metric`, which is known some steps later: the
    voice waits among its candidates, and the checkpoint is kept, until then.
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
        evaluation: EvaluationHook | None = None,
        metric: str = METRIC,
    ):
        self.folder, self.variables, self.facts = Path(folder), variables, facts
        self.interval, self.keep = interval, keep
        self.validation, self.export, self.names = validation, export, names
        self.evaluation, self.metric = evaluation, metric
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
        if self.is_due(record.step) or is_best or self._is_waiting(record.step):
            self.save(record.step, is_best)
        self._promote()

    def finish(self, step: int, reason: str) -> None:
        if reason == FAILED:
            return
        has_begun = self._position is not None
        if has_begun and (step != self._saved_step or self._is_best(step)):
            self.save(step, self._is_best(step))
        self._promote()

    def save(self, step: int, is_best: bool) -> None:
        """Write the state after a step, forget the oldest, and write the voice."""
        facts = {**self.facts, **self._position}
        self.last = save_state(self.states, step, self.variables, facts)
        self._saved_step = step
        if is_best:
            mark_best(self.states, step, self.metric, self.validation.scored[step][self.metric])
        self._prune()
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
        return self._is_better(self.validation.scored[step][self.metric])

    def _is_better(self, value: float) -> bool:
        """Whether a score is better than the best so far, if that is by the same metric."""
        best = best_state(self.states)
        if best is None or best.metric != self.metric:
            return True
        return value > best.value if self.metric in MORE_IS_BETTER else value < best.value

    def _is_waiting(self, step: int) -> bool:
        return self.evaluation is not None and step in self.evaluation.pending

    def _prune(self) -> None:
        """Forget the oldest checkpoints, but none of a voice that may turn out to be the best."""
        protected = {self.last} if self.last else set()
        if self.evaluation is not None:
            candidates = self.evaluation.candidates
            protected |= {self.states / candidates.path(step).name for step in candidates.steps}
        prune(self.states, self.keep, protected)

    def _promote(self) -> None:
        """Keep the best of the candidates whose score has come, and forget the others."""
        if self.evaluation is None:
            return
        candidates, scored = self.evaluation.candidates, self.evaluation.scored
        ready = [step for step in candidates.steps if step in scored]
        for step in ready:
            value, best = scored[step].get(self.metric), best_state(self.states)
            # One that is marked, but still here, was marked when the run was killed.
            is_marked = best is not None and best.step == step and best.metric == self.metric
            if value is None or not (is_marked or self._is_better(value)):
                candidates.drop(step)
                continue
            mark_best(self.states, step, self.metric, value)
            candidates.promote(step, self.folder / self.names[1])
            log.info("step %d is the best so far: %s=%.4g", step, self.metric, value)
        if ready:
            self._prune()
