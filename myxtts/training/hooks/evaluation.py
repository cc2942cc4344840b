"""Judging what a voice says while it trains: it speaks at once, and is scored in the background."""

import logging
import math
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.checkpoints import SavedState, Voice, load_voice, recover
from myxtts.checkpoints.files import new_folder, remove_folder
from myxtts.data.corpus.utterance import Utterance
from myxtts.errors import UserError
from myxtts.monitoring.heartbeat import doing
from myxtts.training.ending import Ending
from myxtts.training.hooks.tensorboard import Boards
from myxtts.training.loop import Hook, StepRecord, notify

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Scores by their names, and a sentence: its samples, and which token each frame says."""

    scores: dict[str, float]
    samples: np.ndarray  # [samples]
    sample_rate: int
    path: np.ndarray  # [tokens, frames], 1 where the token is said


# It speaks utterances with a voice, whose weights change as soon as it returns, and what it returns
# scores the speech: in another thread, while training continues. Of the scores that its
# `higher_is_better` names, if it has that, higher ones are better.
Evaluator = Callable[[Voice, Sequence[Utterance]], Callable[[], Evaluated]]


class Candidates:
    """Voices that wait for their score, each in a folder named after its step."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    @property
    def steps(self) -> list[int]:
        return sorted(int(path.name.removeprefix("step-")) for path in self.folder.glob("step-*"))

    def promote(self, step: int, target: Path) -> None:
        """Put a candidate in the place of the best voice."""
        with new_folder(target) as draft:
            shutil.copytree(self.path(step), draft, dirs_exist_ok=True)
        self.drop(step)

    def drop(self, step: int) -> None:
        remove_folder(self.path(step))
        self._remove_if_empty()

    def recover(self) -> None:
        """Tidy up what a killed process left."""
        recover(self.folder)
        self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


@dataclass(frozen=True, eq=False)
class Judged:
    """Who judges what: an evaluator, utterances to speak, and the voice that speaks them.

    `snapshot` has the model take its EMA weights for a while, as a voice. With `candidates`,
    `export` writes that voice into a folder at once, so that it can be kept if it is the best.
    """

    evaluator: Evaluator
    utterances: Sequence[Utterance]
    snapshot: Callable[[], AbstractContextManager[Voice]]
    candidates: Candidates | None = None
    export: Callable[[Path, Voice], None] | None = None


class EvaluationHook(Hook):
    """Every so often, and at the end, lets the EMA weights speak and be scored.

    What a killed run could not score is scored when it resumes.
    """

    def __init__(
        self,
        judged: Judged,
        interval: int,
        listeners: Sequence[Hook],
        board: Boards | None = None,
        resumed: SavedState | None = None,
    ):
        self.judged, self.candidates = judged, judged.candidates
        self.higher_is_better = frozenset(getattr(judged.evaluator, "higher_is_better", ()))
        self.interval, self.listeners, self.board = interval, listeners, board
        self.scored: dict[int, dict[str, float]] = {}
        self._spoken: dict[int, Future[Evaluated]] = {}
        self._known: set[int] = set()  # steps that have spoken, or failed to
        # A step that was saved and has not spoken yet does so if the run ends with it.
        has_spoken = (resumed.facts.get("known") or {}).get("has_spoken") if resumed else None
        self._has_begun = has_spoken is False
        self._known |= {resumed.step} if has_spoken else set()
        self._pool = ThreadPoolExecutor(1, "evaluation")

    @property
    def pending(self) -> list[int]:
        """The steps that wait for their score."""
        return list(self._spoken)

    def start(self, step: int) -> None:
        """Score what an earlier process could not, and forget what is to be trained again."""
        if self.candidates is None:
            return
        self.candidates.recover()
        for earlier in self.candidates.steps:
            if earlier > step:
                self.candidates.drop(earlier)
            elif not self._speak(earlier, lambda e=earlier: load_voice(self.candidates.path(e))):
                self.scored[earlier] = {}

    def has_spoken(self, step: int) -> bool:
        """Whether a step was evaluated, or is being evaluated."""
        return step in self._known

    def is_due(self, step: int) -> bool:
        return step % self.interval == 0

    def after_step(self, record: StepRecord) -> None:
        self._has_begun = True
        self.collect()
        if self.is_due(record.step):
            self.evaluate(record.step)

    def finish(self, step: int, reason: Ending) -> None:
        # Who sends a signal soon sends a harder one: what has no score is scored on resuming.
        if reason == Ending.FINISHED:
            if self._has_begun and step not in self._known:
                self.evaluate(step)
            with doing("waiting for the last evaluation"):
                self.collect(wait=True)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def evaluate(self, step: int) -> None:
        """Speak after a step; the score comes later."""
        began = time.monotonic()
        with doing(f"evaluating after step {step:,}"), self.judged.snapshot() as voice:
            if self._speak(step, lambda: voice) and self.candidates:
                self._keep(step, voice)
        logger.info("evaluation after step %d: spoke in %.1f s", step, time.monotonic() - began)

    def _keep(self, step: int, voice: Voice) -> None:
        try:
            self.judged.export(self.candidates.path(step), voice)
        except (UserError, OSError) as error:  # a full disk: training itself may continue
            logger.warning(
                "the voice of step %d cannot wait for its score: %s", step, _message(error)
            )

    def collect(self, wait: bool = False) -> None:
        """Take the scores that are there, or wait for them, and report them."""
        for step, future in list(self._spoken.items()):
            if not wait and not future.done():
                continue
            del self._spoken[step]
            try:
                found = future.result()
            except Exception as error:  # see _speak
                logger.warning("evaluation after step %d failed: %s", step, _message(error))
                self.scored[step] = {}
                continue
            self._record(step, found)

    def _speak(self, step: int, voice: Callable[[], Voice]) -> bool:
        self._known.add(step)
        try:
            score = self.judged.evaluator(voice(), self.judged.utterances)
        # Whatever is wrong with a judge, days of training must not end by it.
        except Exception as error:
            logger.warning("evaluation after step %d failed: %s", step, _message(error))
            return False
        self._spoken[step] = self._pool.submit(score)
        return True

    def _record(self, step: int, found: Evaluated) -> None:
        scores = {name: value for name, value in found.scores.items() if math.isfinite(value)}
        self.scored[step] = scores
        shown = ", ".join(f"{name}={value:.4g}" for name, value in scores.items())
        logger.info("evaluation after step %d: %s", step, shown or "nothing could be measured")
        for hook in self.listeners:
            notify(hook, lambda one: one.record_validation(step, scores))
        if self.board:
            self.board.audio(step, "evaluation/audio", found.samples, found.sample_rate)
            self.board.images(step, "evaluation/alignment", np.flipud(found.path))


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__
