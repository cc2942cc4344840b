"""Keeping a run: its checkpoints, the best of them, and the voice as it is so far."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.atomic import sync
from myxtts.checkpoints import (
    Best,
    CheckpointError,
    SavedState,
    best_state,
    load_state,
    mark_best,
    marked_best,
    prune,
    recover,
    restore,
    save_state,
    saved_states,
    state_path,
    unmark_best,
)
from myxtts.checkpoints.files import DamagedError, explained, remove_folder
from myxtts.checkpoints.states import ABANDONED
from myxtts.monitoring.history import HISTORY
from myxtts.training.ending import Ending
from myxtts.training.hooks.evaluation import EvaluationHook
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.validation import ValidationHook
from myxtts.training.loop import Hook, StepRecord

logger = logging.getLogger(__name__)

METRIC = "loss"


@dataclass(frozen=True, eq=False)
class Saved:
    """What is saved of a run, where, and after how many steps; the newest `keep` stay.

    `variables` and `facts` make a checkpoint, together with the trail of the `history`. `export`
    writes the voice into a folder of the first of the `names`, and of both when it is the best.
    `resumed` is the checkpoint of this folder from which the run resumes.
    """

    folder: Path
    variables: dict[str, Any]
    facts: dict[str, Any]
    export: Callable[[Path], Any]
    interval: int
    keep: int
    names: tuple[str, str] = ("voice", "voice-best")
    history: HistoryHook | None = None
    resumed: SavedState | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """What decides which step is the best: a metric of the evaluation, or the validation loss.

    After the step `since` the loss is another one, and is not compared with those before.
    """

    validation: ValidationHook | None = None
    evaluation: EvaluationHook | None = None
    metric: str = METRIC
    since: int = 0


class SavingHook(Hook):
    """Saves every so often, when validation was best, and when the run ends without a fault.

    The order is: checkpoint, mark of the best, deletion of old checkpoints, voice, best voice. A
    kill may come anywhere in between: the facts of a checkpoint say what was known when it was
    saved, and a run that resumes from it repeats all that follows from them.

    With an evaluation and its metric the best is known some steps later: the voice waits among the
    candidates, and the checkpoint is kept, until then.
    """

    def __init__(self, saved: Saved, scores: Scores):
        self.saved, self.folder, self.names = saved, Path(saved.folder), saved.names
        self.variables, self.export = saved.variables, saved.export
        self.validation, self.evaluation = scores.validation, scores.evaluation
        self.metric, self.since = scores.metric, scores.since
        self.last: Path | None = None
        self._position: dict[str, int] | None = None
        self._saved_step = 0
        facts = saved.resumed.facts if saved.resumed else {}
        self._known = dict(facts.get("known") or {})
        if self._known:
            self._position = {name: facts[name] for name in ("epoch", "number")}

    @property
    def states(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def is_choosing(self) -> bool:
        """Whether the evaluation, and not the validation, says which step is the best."""
        return self.evaluation is not None and self.metric != METRIC

    def start(self, step: int) -> None:
        recover(self.folder, *self.names)
        recover(self.folder / ABANDONED)
        recover(self.folder / ABANDONED, *self.names)
        self._saved_step = step
        self.last = next(reversed(saved_states(self.states)), None)
        if step:
            self._decide_again(step)
            self._prune()
            best = self._best()
            self._export(is_best=best is not None and best.step == step)
            # One that is marked, but still waits, was marked when the run was killed.
            if self.is_choosing and best and best.step in self.evaluation.candidates.steps:
                self.evaluation.candidates.promote(best.step, self.folder / self.names[1])

    def is_due(self, step: int) -> bool:
        return step % self.saved.interval == 0

    def after_step(self, record: StepRecord) -> None:
        self._position = {"epoch": record.epoch, "number": record.number + 1}
        is_best = self._is_best(record.step)
        if self.is_due(record.step) or is_best or self._is_waiting(record.step):
            self.save(record.step, is_best)
        self._promote()

    def finish(self, step: int, reason: Ending) -> None:
        if reason == Ending.FAILED:
            return
        has_begun = self._position is not None
        if has_begun and (step != self._saved_step or self._is_best(step)):
            self.save(step, self._is_best(step))
        self._promote()
        # A score that came after the step was saved is known when the run is started again.
        if (
            has_begun
            and reason == Ending.FINISHED
            and self._known_at(step, self._best()) != self._known
        ):
            self.save(step, is_best=False)

    def save(self, step: int, is_best: bool) -> None:
        """Write the state after a step, forget the oldest, and write the voice."""
        best = self._best()
        if is_best:
            value = float(self.validation.scored[step][self.metric])
            best = Best(step, self.metric, value, state_path(self.states, step))
        known = self._known_at(step, best)
        facts = {**self.saved.facts, **self._position, "known": known}
        if self.saved.history is not None:
            facts["history"] = self.saved.history.trail
        self._sync_history()
        self.last = save_state(self.states, step, self.variables, facts)
        self._saved_step, self._known = step, known
        if is_best:
            mark_best(self.states, step, self.metric, best.value)
        self._prune()
        self._export(is_best)
        logger.info("saved %s%s", self.last, ", the best so far" if is_best else "")

    def _sync_history(self) -> None:
        """Have the history on the disk before a checkpoint that later lines follow."""
        path = self.folder / HISTORY
        if path.exists():
            with explained(path):
                sync(path)
                sync(self.folder)

    def _known_at(self, step: int, best: Best | None) -> dict[str, Any]:
        """What a checkpoint says of its own scores and of the best so far."""
        scores = self.validation.scored.get(step) if self.validation else None
        return {
            "scores": scores and {name: float(value) for name, value in scores.items()},
            "has_spoken": self.evaluation and self.evaluation.has_spoken(step),
            "best": best and {"step": best.step, "metric": best.metric, "value": best.value},
        }

    def _decide_again(self, step: int) -> None:
        """Settle which step is the best, whose mark and voice a kill may have prevented."""
        marked = self._marked(step)
        best = self._better_of(self._known_best(), marked)
        if best is None:
            return
        if best.step not in (step, marked and marked.step):
            self._export_again(best)
        if best != marked:
            mark_best(self.states, best.step, best.metric, best.value)

    def _marked(self, step: int) -> Best | None:
        """The best by its mark; a later one than `step` is given up, and its voice moved away."""
        try:
            best = marked_best(self.states)
        except DamagedError:
            logger.warning(
                "the mark of the best in %s is damaged: it is decided again", self.states
            )
            unmark_best(self.states)
            return None
        if best is not None and best.step > step:
            voice, kept = self.folder / self.names[1], self.folder / ABANDONED / self.names[1]
            if voice.exists():
                remove_folder(kept) if kept.exists() else kept.parent.mkdir(exist_ok=True)
                voice.rename(kept)
                logger.warning("%s is of a step after %d: it is now %s", voice, step, kept)
            unmark_best(self.states)
        return best_state(self.states)

    def _known_best(self) -> Best | None:
        known = self._known.get("best")
        if not known:
            return None
        best = Best(**known, path=state_path(self.states, known["step"]))
        return best if best.path.exists() else None

    def _better_of(self, known: Best | None, marked: Best | None) -> Best | None:
        """Scores of an evaluation come after the checkpoint: its mark may be the later word."""
        if known is None or marked is None:
            return known or marked
        if known.metric != marked.metric:
            return marked if marked.metric == self.metric else known
        if self._is_outdated(known, marked.step) or self._is_outdated(marked, known.step):
            return max(known, marked, key=attrgetter("step"))
        return marked if self._beats(marked.value, known) else known

    def _export_again(self, best: Best) -> None:
        """Write the best voice from its checkpoint; the variables have their own values after."""
        own = {name: np.array(variable) for name, variable in self.variables.items()}
        try:
            restore(self.variables, load_state(best.path).arrays)
            self.export(self.folder / self.names[1])
        except CheckpointError as error:
            logger.warning("the best voice cannot be written again: %s", error)
        finally:
            restore(self.variables, own)

    def _export(self, is_best: bool) -> None:
        for name in self.names if is_best else self.names[:1]:
            self.export(self.folder / name)

    def _best(self) -> Best | None:
        return best_state(self.states)

    def _is_best(self, step: int) -> bool:
        if self.is_choosing or self.validation is None or step not in self.validation.scored:
            return False
        best = self._best()
        if best is not None and best.step == step:
            return False
        return self._is_better(self.validation.scored[step][self.metric], step)

    def _is_better(self, value: float, step: int) -> bool:
        """Whether a score is better than the best so far, if the two can be compared."""
        best = self._best()
        if best is None or best.metric != self.metric or self._is_outdated(best, step):
            return True
        return self._beats(value, best)

    def _is_outdated(self, best: Best, step: int) -> bool:
        """Whether a best step is from before the loss changed, and a step from after."""
        return best.metric == METRIC and best.step <= self.since < step

    def _beats(self, value: float, best: Best) -> bool:
        is_higher_better = self.evaluation and best.metric in self.evaluation.higher_is_better
        return value > best.value if is_higher_better else value < best.value

    def _is_waiting(self, step: int) -> bool:
        return self.is_choosing and step in self.evaluation.pending

    def _prune(self) -> None:
        """Forget the oldest checkpoints, but none of a voice that may turn out to be the best."""
        protected = {self.last} if self.last else set()
        if self.is_choosing:
            candidates = self.evaluation.candidates
            protected |= {self.states / candidates.path(step).name for step in candidates.steps}
        prune(self.states, self.saved.keep, protected)

    def _promote(self) -> None:
        """Keep the best of the candidates whose score has come, and forget the others."""
        if not self.is_choosing:
            return
        candidates, scored = self.evaluation.candidates, self.evaluation.scored
        ready = [step for step in candidates.steps if step in scored]
        if ready:
            self._sync_history()  # their scores are in it, and nobody can measure them again
        for step in ready:
            value = scored[step].get(self.metric)
            if value is None or not self._is_better(value, step):
                candidates.drop(step)
                continue
            mark_best(self.states, step, self.metric, value)
            candidates.promote(step, self.folder / self.names[1])
            logger.info("step %d is the best so far: %s=%.4g", step, self.metric, value)
        if ready:
            self._prune()
