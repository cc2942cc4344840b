"""A training run in a folder: lock, resume, place in the plan, hooks, loop, and how it ended."""

import hashlib
import logging
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np

from myxtts import runtime
from myxtts.checkpoints import abandon_after, load_state, restore, state_path
from myxtts.checkpoints.states import SavedState
from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.config.config import XTTSConfig
from myxtts.config.io import save_config
from myxtts.data.batches.parts import Share, usual_parts
from myxtts.errors import UserError
from myxtts.monitoring.console import show_log_unless_set_up
from myxtts.monitoring.heartbeat import doing, heartbeat
from myxtts.training.ending import Ending
from myxtts.training.hooks.evaluation import EvaluationHook
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.log import LogHook
from myxtts.training.hooks.non_finite import NonFiniteHook
from myxtts.training.hooks.performance import PerformanceHook, setup_of
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.hooks.saving import METRIC, Saved, SavingHook, Scores
from myxtts.training.hooks.tensorboard import Boards
from myxtts.training.hooks.validation import Scoring, ValidationHook, mean_mel_loss
from myxtts.training.hooks.workers import WorkerTimes
from myxtts.training.loop import Hook, Listener, Room, TrainingLoop
from myxtts.training.repeating import Counters, repeatable
from myxtts.training.run_folder import alone_in, describe_step, own_state, state_to_resume
from myxtts.training.sources import batches_per_epoch, endless
from myxtts.training.steps import CompiledStep

logger = logging.getLogger(__name__)

IdsOf = Callable[[np.ndarray], Sequence[str]]


@dataclass(frozen=True)
class Schedule:
    """How long a run is."""

    total_steps: int
    epoch_size: int  # in batches
    epochs: int


@dataclass(frozen=True, eq=False)
class Wiring:
    """What a run computes with, besides its model: `variables` is all that training changes."""

    optimizer: keras.optimizers.Optimizer
    step: CompiledStep
    evaluate: CompiledStep
    variables: dict[str, Any]
    loss_weights: Mapping[str, float]
    loss_since: int = 0  # the last step before the training's objective changed


class TrainingRun:
    """What the trainers share; each says what it builds, computes, exports and shows.

    `resume` is None to resume from the folder's last checkpoint where there is one, True to fail
    where there is none, False to start over (the old run is kept next to it), or a checkpoint's
    path. `replicas` share every batch; the chief among them writes all files.
    """

    exports: ClassVar[tuple[str, str]]  # folders of what is exported: the last, and the best
    plan_facts: ClassVar[tuple[str, ...]]  # facts that decide which batch follows which
    shown_losses: ClassVar[tuple[str, ...]]  # in the line of a validation

    def __init__(
        self,
        config: XTTSConfig,
        folder: str | Path,
        resume: bool | Path | str | None = None,
        replicas: Replicas = ALONE,
    ):
        show_log_unless_set_up()
        self.config, self.resume, self.replicas = config, resume, replicas
        self.share: Share | None = None  # of every batch, where batches are computed in parts
        self.folder = Path(folder).expanduser()
        self.runtime = runtime.configure(config)
        own = self.folder if replicas.is_chief else None
        workers = WorkerTimes(replicas.count, replicas.name) if replicas.count > 1 else None
        setup = setup_of(config, self.runtime)
        self.performance = PerformanceHook(own, setup, workers=workers)
        self.model: keras.Model | None = None

    # What each trainer provides.

    def limits(self) -> tuple[int, int]:
        """The epochs, and the most steps (0: no limit)."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says of its run, to see whether it can be resumed."""
        raise NotImplementedError

    def common_facts(self) -> dict[str, Any]:
        """What must be the same on every replica, by the name that a message has for it."""
        raise NotImplementedError

    def check_resumed(self, saved: SavedState) -> None:
        """Raise for a checkpoint of another run, before anything is built for it."""
        raise NotImplementedError

    def build(self, saved: SavedState | None) -> None:
        """Have the model; a new run's model gets what it begins with."""

    def wire(self, batch: dict, schedule: Schedule) -> Wiring:
        """The steps that train and evaluate the model on batches like this one."""
        raise NotImplementedError

    def describe(self) -> str:
        """What is trained, in a few words."""
        return f"{self.model.count_params()} weights"

    def export(self, folder: Path, optimizer: keras.optimizers.Optimizer) -> None:
        """Write what was trained in the form that is used."""
        raise NotImplementedError

    def boards(self) -> list[Listener]:
        """Where scalars, pictures and audio go."""
        raise NotImplementedError

    def evaluation(
        self, wired: Wiring, schedule: Schedule, listeners: Sequence[Hook], boards: Boards, resumed
    ) -> EvaluationHook | None:
        """What judges the output as the model trains, if anything does."""
        return None

    def sample(self, wired: Wiring, batches: Iterable, boards: Boards) -> Hook:
        """What shows an utterance every `sample_interval` steps."""
        raise NotImplementedError

    # What they share.

    @property
    def compiling(self) -> dict[str, bool]:
        """How steps are compiled."""
        return {"graph": not self.runtime.eager, "xla": self.runtime.xla}

    @property
    def steps_per_call(self) -> int:
        """The most steps that one call takes."""
        return self.config.training.steps_per_call

    def run(self, source, val_batches: Iterable | None, ids_of: IdsOf) -> Ending:
        """Train to the end, alone in the folder, and return how it ended."""
        guard = alone_in(self.folder) if self.replicas.is_chief else nullcontext()
        with guard, doing("building the model"), heartbeat(logger.info):
            return self._run(source, val_batches, ids_of)

    def _run(self, source, val_batches: Iterable | None, ids_of: IdsOf) -> Ending:
        saved = self._resumed()
        if saved is not None:
            self.check_resumed(saved)
        self.share = self._share_of(source, saved)
        if self.share:
            source.share = self.share
        schedule = self._schedule(batches_per_epoch(source))
        self.build(saved)
        done, epoch, number = self._place_of(saved)
        items = endless(source, epoch, number)
        first = next(items)
        wired = self.wire(first[2], schedule)
        if saved:
            restore(wired.variables, saved.arrays)
        if self.replicas.count > 1:
            weights = _checksum(wired.variables)
            self.replicas.check_same({**self.common_facts(), "weights": weights})
        if self.replicas.is_chief:
            if saved:
                abandon_after(self.folder / "checkpoints", saved.step)
            save_config(self.config, self.folder / "config.yaml")
        logger.info(
            "%s; %d steps of %d batches an epoch, in %s; %d done",
            self.describe(),
            schedule.total_steps,
            schedule.epoch_size,
            self.folder,
            done,
        )
        hooks = self._hooks(wired, schedule, val_batches, ids_of, own_state(self.folder, saved))
        epochs, total, recorder = schedule.epochs, schedule.total_steps, self.performance.recorder
        loop = TrainingLoop(
            wired.step,
            hooks,
            epochs,
            total,
            ids_of,
            done,
            self.replicas,
            recorder,
            steps_per_call=self.steps_per_call,
            make_room=self._room_maker(source, wired, done),
        )
        try:
            ending = loop.run(chain([first], items))
        finally:
            if hasattr(source, "tenancy"):
                source.tenancy.release()
        self.replicas.barrier()  # the chief is still saving when the others have ended
        ran = describe_step(wired.step) if loop.done > done else "never"
        logger.info("%s after %d steps; the step ran %s", ending, loop.done, ran)
        return ending

    def _room_maker(self, source, wired: Wiring, done: int) -> Callable[[int], Room]:
        """What frees the device of the cache for a step that failed, if it can be taken again."""
        if not hasattr(source, "tenancy"):
            return lambda steps: Room(False, False)
        optimizer = wired.optimizer
        # Weights decay as soon as they were read.
        waits = bool(optimizer.global_clipnorm) and not optimizer.weight_decay
        counters = Counters(wired.variables, waits)

        def make_room(steps: int) -> Room:
            # Several workers cannot: the others would wait for a sum that never comes.
            can_repeat = self.replicas.count == 1 and repeatable(
                wired.step, counters, steps - done, self.steps_per_call
            )
            freed = source.tenancy.give_way(f"step {steps + 1} ran out of memory")
            return Room(freed, can_repeat)

        return make_room

    def _resumed(self) -> SavedState | None:
        """The checkpoint that all replicas resume from: the chief finds it."""
        saved = state_to_resume(self.folder, self.resume) if self.replicas.is_chief else None
        step = self.replicas.of_chief(saved.step if saved else -1)
        if step < 0 or self.replicas.is_chief:
            return saved
        named = isinstance(self.resume, (str, Path))
        return load_state(self.resume if named else state_path(self.folder / "checkpoints", step))

    def _share_of(self, source, saved: SavedState | None) -> Share | None:
        """The parts of every batch that this replica computes; None where batches stay whole."""
        known = saved.facts.get("micro_batches", 1) if saved else 0
        training, replicas = self.config.training, self.replicas
        usual = usual_parts(replicas.count, training.exact_sums)
        parts = training.micro_batches or known or usual
        if known and parts != known:
            logger.warning(
                "%s was trained with %d micro-batches: the same batches are now cut into %d",
                saved.path,
                known,
                parts,
            )
        share = Share(parts, replicas.rank, replicas.count, training.exact_sums)
        if parts == 1:
            return None
        if self.steps_per_call > 1:
            raise UserError(
                f"--steps-per-call {self.steps_per_call} needs batches that one device computes "
                f"whole, and these are cut into {parts} parts: train with --steps-per-call 1, or "
                "without --micro-batches on one device"
            )
        if not hasattr(source, "stream"):
            raise UserError(
                "only the batches of a corpus can be cut into micro-batches, and a dataset was "
                "given: train without --micro-batches, on one device"
            )
        return share

    def _schedule(self, epoch_size: int) -> Schedule:
        epochs, most = self.limits()
        total = epoch_size * epochs
        return Schedule(min(total, most) if most else total, epoch_size, epochs)

    def _place_of(self, saved: SavedState | None) -> tuple[int, int, int]:
        """The steps that a checkpoint has behind it, and the epoch and batch that come next."""
        if saved is None:
            return 0, 0, 0
        facts = self.facts()
        epoch, number = saved.facts["epoch"], saved.facts["number"]
        changed = [name for name in self.plan_facts if saved.facts.get(name) != facts[name]]
        if changed and number:
            logger.warning(
                "the batches are not those of %s any more (%s changed): resuming with the first "
                "batch of epoch %d",
                saved.path,
                " and ".join(changed),
                epoch + 1,
            )
            number = 0
        logger.info("resuming from %s: step %d, epoch %d", saved.path, saved.step, epoch + 1)
        return saved.step, epoch, number

    def _hooks(
        self,
        wired: Wiring,
        schedule: Schedule,
        val_batches: Iterable | None,
        ids_of: IdsOf,
        resumed: SavedState | None,
    ) -> list[Hook]:
        training, optimizer = self.config.training, wired.optimizer
        is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        ignored = {"gradient_norm"} if is_scaled else frozenset()
        if not self.replicas.is_chief:
            return [NonFiniteHook(ids_of, lambda: None, ignored), self.performance]
        history = HistoryHook(self.folder, training.log_interval, resumed)
        board_hooks = self.boards()
        listeners, boards = [history, *board_hooks], Boards(board_hooks)
        validation = None
        if val_batches is not None:
            scoring = Scoring(
                self.model,
                optimizer,
                wired.evaluate,
                val_batches,
                mean_mel_loss(val_batches),
                self.shown_losses,
            )
            interval = training.validation_interval
            validation = ValidationHook(scoring, interval, listeners, resumed)
        evaluation = self.evaluation(wired, schedule, listeners, boards, resumed)
        metric = training.evaluation_metric if evaluation is not None else METRIC
        saved = Saved(
            self.folder,
            wired.variables,
            {**self.facts(), "micro_batches": self.share.parts if self.share else 1},
            lambda folder: self.export(folder, optimizer),
            training.save_interval,
            training.keep_checkpoints,
            self.exports,
            history,
            resumed,
        )
        saving = SavingHook(saved, Scores(validation, evaluation, metric, wired.loss_since))
        # Losses that are no number stop the run before anything is saved.
        hooks: list[Hook | None] = [
            NonFiniteHook(ids_of, lambda: saving.last, ignored),
            LogHook(wired.loss_weights),
            *listeners,
            ProgressHook(
                schedule.total_steps, training.log_interval, is_compiled=not wired.step.is_eager
            ),
            self.performance,
            evaluation,
            validation,
        ]
        if validation is not None and training.sample_interval:
            hooks.append(self.sample(wired, val_batches, boards))
        return [hook for hook in (*hooks, saving) if hook is not None]


def digest(values: Iterable) -> str:
    """A hash of numbers or names in their order, without a second copy of them."""
    found = hashlib.blake2b(digest_size=16)
    if isinstance(values, np.ndarray) and values.dtype != object:
        found.update(np.ascontiguousarray(values).data)
    else:
        for value in values:
            found.update(f"{value}\0".encode())
    return found.hexdigest()


def _checksum(variables: Mapping[str, Any]) -> int:
    """One number for the values of all variables."""
    total = 0
    for variable in variables.values():
        total = zlib.crc32(variable.numpy().tobytes(), total)
    return total
