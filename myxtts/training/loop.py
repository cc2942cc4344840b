"""The training loop: it decides when; a step computes, and hooks log, validate, save and stop."""

import logging
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.data.batches.resident import ResidentBatch
from myxtts.errors import UserError
from myxtts.monitoring.evidence import Recorder
from myxtts.monitoring.heartbeat import doing
from myxtts.monitoring.timeline import COPY, GATHER, HOOKS, OTHER, WAIT, StepTimes, Timeline
from myxtts.training.ending import Ending
from myxtts.training.groups import Group, Item, grouped
from myxtts.training.steps import CompiledStep

logger = logging.getLogger(__name__)

COMPILING = "compiling the step"
# The first steps are fetched at once, and show how long the device takes.
SEEN_TO_THE_END = 3


@dataclass(frozen=True)
class StepRecord:
    """What one step did; step 1 is the first."""

    step: int
    epoch: int
    number: int  # of the batch in its epoch
    metrics: dict[str, float]
    index: np.ndarray  # the positions of the batch's utterances
    times: StepTimes

    @property
    def data_ms(self) -> float:
        """How long the loop waited for the batch."""
        return self.times.wait_ms

    @property
    def compute_ms(self) -> float:
        """How long it was in the step, and waited for its result."""
        return self.times.compute_ms

    @property
    def figures(self) -> dict[str, float]:
        """The times that are logged, in milliseconds."""
        times = self.times
        return {
            "data_ms": self.data_ms,
            "compute_ms": self.compute_ms,
            "device_ms": times.device_ms,
            "stall_ms": times.stall_ms,
            "compile_ms": times.compile_ms,
        }


class Hook:
    """Something that happens between the steps; each method does nothing unless overridden."""

    def start(self, step: int) -> None:
        """Before the first step; `step` are done already, which is 0 in a new run."""

    def is_due(self, step: int) -> bool:
        """Whether `after_step` needs the model as this very step left it.

        Metrics are fetched one step late, so as not to hold the device up; where any hook is due,
        the loop waits for the step and delivers it at once.
        """
        return False

    def after_step(self, record: StepRecord) -> None:
        """After every step."""

    def after_epoch(self, epoch: int, step: int) -> None:
        """After the last step of an epoch."""

    def record_validation(self, step: int, metrics: dict[str, float]) -> None:
        """After a validation."""

    def finish(self, step: int, reason: Ending) -> None:
        """After the last step, however the run ends; every hook still takes reports."""

    def close(self) -> None:
        """After all hooks have finished: nothing is reported any more."""


class Listener(Hook):
    """A hook that only reports, and never decides how a run ends.

    What it raises once it has started is logged: the first time at once, the others as a count.
    """

    failures = 0

    def note_failure(self, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            name = type(self).__name__
            logger.warning(
                "%s failed, training continues: %s: %s", name, type(error).__name__, error
            )


def notify(hook: Hook, say: Callable[[Any], None]) -> None:
    """Tell a hook of something; only a listener may fail to take it."""
    try:
        say(hook)
    except Exception as error:
        if not isinstance(hook, Listener):
            raise
        hook.note_failure(error)


class Room(NamedTuple):
    """What was done about a step that ran out of memory."""

    is_freed: bool  # the device of the cache that it held
    can_repeat: bool


class OutOfMemory(UserError):
    """A batch did not fit."""


class TrainingDiverged(UserError):
    """A metric is not finite: training on would only spread it."""


@dataclass
class Interruption:
    """Set by a signal, read by the loop: why the run is to end after the present step."""

    reason: Ending | None = None


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn the first SIGINT or SIGTERM into a request; a SIGINT after it interrupts at once.

    A second SIGTERM does not: a scheduler and a launcher may both pass on the same one.
    """
    asked = Interruption()

    def ask(number: int, frame: Any) -> None:
        if asked.reason and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.reason = asked.reason or Ending(signal.Signals(number).name)

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread, where nobody sends signals
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Pending:
    """A call whose metrics have not been fetched yet, by the number of its first step."""

    first: int
    group: Group
    metrics: tf.Tensor
    is_first: bool
    is_watched: bool

    def counts(self, at: int) -> bool:
        """Whether the recorder counts a step, which keeps the first apart.

        Nothing counts that was waited for, nor what the first call took beside its first step.
        """
        return at == 0 if self.is_first else not self.is_watched


@dataclass
class TrainingLoop:
    """Takes batches until the epochs or the steps are over, or someone asks it to end.

    Where the time goes is written into the recorder. With `steps_per_call` a call takes as many
    steps where neighbouring batches have one shape, and none of the steps but the last is one that
    a hook is due at. Hooks hear of every step.
    """

    step: CompiledStep
    hooks: Sequence[Hook]
    epochs: int
    total_steps: int
    ids_of: Callable[[np.ndarray], Sequence[str]]
    done: int = 0
    replicas: Replicas = ALONE
    recorder: Recorder = field(default_factory=Recorder)
    clock: Callable[[], float] = time.perf_counter
    steps_per_call: int = 1
    # Frees memory for a step that has failed after so many, if that step can be taken once more.
    make_room: Callable[[int], Room] = lambda done: Room(False, False)
    _pending: _Pending | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._timeline = Timeline(self.step.is_async, self.clock)
        self._taken = 0
        self._last: int | None = None  # the step that ends the run of several replicas
        self.recorder.is_async, self.recorder.is_eager = self.step.is_async, self.step.is_eager

    def run(self, items: Iterable[Item]) -> Ending:
        """Run to the end and return how it ended; every hook is told, whatever happens."""
        reason = Ending.FAILED
        with interruptible() as asked, doing("starting") as self._activity:
            try:
                for hook in self.hooks:
                    hook.start(self.done)
                reason = self._steps(items, asked)
            finally:
                self._finish(reason)
        return reason

    def _finish(self, reason: Ending) -> None:
        """End in two passes: all hooks finish, and may still report; then all close.

        Each is called, also after one that raises; nobody is to save what has diverged.
        """
        errors: list[BaseException] = []
        self._activity.rename("finishing")
        for hook in self.hooks:
            try:
                notify(hook, lambda one, why=reason: one.finish(self.done, why))
            except BaseException as raised:
                errors.append(raised)
                reason = Ending.FAILED if isinstance(raised, TrainingDiverged) else reason
        for hook in self.hooks:
            try:
                notify(hook, lambda one: one.close())
            except BaseException as raised:
                errors.append(raised)
        for hook in self.hooks:
            if isinstance(hook, Listener) and hook.failures > 1:
                logger.warning("%s failed %d times", type(hook).__name__, hook.failures)
        if errors:
            raise errors[0]

    def _steps(self, items: Iterable[Item], asked: Interruption) -> Ending:
        current = None
        if self.done >= self.total_steps:
            return Ending.FINISHED
        self._timeline.restart()
        for group in grouped(items, self._room):
            epoch = group.epoch
            waited = self._timeline.mark(WAIT)
            self.replicas.note(1e3 * waited, asked.reason is not None)
            if current is not None and epoch != current:
                self._close_epoch(current)
                current = None
            if epoch >= self.epochs:
                break
            current = epoch
            self._step(group)
            if self._is_to_end(asked):
                self._deliver()
                return asked.reason or Ending.SIGTERM
            if self.done >= self.total_steps:
                break
            self._timeline.mark(OTHER)
        if current is not None:
            self._close_epoch(current)
        return Ending.FINISHED

    def _is_to_end(self, asked: Interruption) -> bool:
        """Whether someone asked the run to end: this process, or any of the replicas.

        Replicas end after the same step. That is the one after the step in which all learn of it,
        because the metrics of a step may be read a step late.
        """
        if self.replicas.count == 1:
            return asked.reason is not None
        return self._last is not None and self.done >= self._last

    def _room(self) -> int:
        """How many steps the next call may take."""
        most = min(self.steps_per_call, self.total_steps - self.done)
        due = (at for at in range(1, most) if self._is_due(self.done + at))
        return next(due, max(1, most))

    def _is_due(self, step: int) -> bool:
        return any(hook.is_due(step) for hook in self.hooks)

    def _step(self, group: Group) -> None:
        timeline = self._timeline
        self._activity.rename(self._describe_step())
        first = self.done + 1
        metrics = None
        while metrics is None:
            try:
                metrics = self._call(group, first)
            except tf.errors.ResourceExhaustedError as error:
                room = self.make_room(self.done)
                if not (room.is_freed and room.can_repeat):
                    shown = self._describe_batch(group.batches[0], room.is_freed)
                    raise OutOfMemory(shown) from error
        count, frames = _size(group.batches[0])
        timeline.called(len(group) * count * frames, f"{count} x {frames}", self.step.is_new)
        self.done += len(group)
        self.replicas.at_step(self.done)
        self._deliver()
        self._taken += 1
        is_watched = self.step.is_async and self._taken <= SEEN_TO_THE_END
        self._pending = _Pending(first, group, metrics, self._taken == 1, is_watched)
        if is_watched or self._is_due(self.done):
            self._deliver()

    def _call(self, group: Group, first: int) -> tf.Tensor:
        placed = [self.step.place(batch) for batch in group.batches]
        is_resident = isinstance(group.batches[0], ResidentBatch)
        self._timeline.mark(GATHER if is_resident else COPY)
        self._timeline.calling()
        if self.steps_per_call == 1:
            return self.step(placed[0], first)
        return self.step.take_all(placed, first)

    def _deliver(self) -> None:
        """Fetch the metrics of the call before, if not yet done, and tell the hooks."""
        if self._pending is None:
            return
        last, self._pending = self._pending, None
        self._timeline.mark(OTHER)
        if self.steps_per_call == 1:
            found = [self.step.read(last.metrics)]
        else:
            found = self.step.read_all(last.metrics)
        steps = zip(found, self._timeline.fetched().split(len(found)), strict=True)
        for at, (metrics, times) in enumerate(steps):
            step, group = last.first + at, last.group
            # Not for the history: runs that learn the same have the same one.
            if metrics.pop("asked_to_end", 0.0) and self._last is None:
                self._last = step + 1
            if last.counts(at):
                self.recorder.add(step, times)
            index = group.batches[at]["index"]
            record = StepRecord(step, group.epoch, group.numbers[at], metrics, index, times)
            self._tell(lambda hook, record=record: hook.after_step(record))

    def _close_epoch(self, epoch: int) -> None:
        self._deliver()
        self._tell(lambda hook: hook.after_epoch(epoch, self.done))

    def _tell(self, say: Callable[[Hook], None]) -> None:
        """Tell every hook, and write down what each took."""
        for hook in self.hooks:
            notify(hook, say)
            spent = self._timeline.mark(HOOKS)
            self.recorder.add_hook(type(hook).__name__, 1e3 * spent)

    def _describe_step(self) -> str:
        if self._taken == 0 and not self.step.is_eager:
            return COMPILING
        return f"step {self.done + 1:,} of {self.total_steps:,}"

    def _describe_batch(self, batch: Mapping[str, tf.Tensor], had_cache: bool) -> str:
        count, frames = _size(batch)
        first = "Resume with --cache-on-device off, which had taken memory of the device. Or lower"
        return (
            f"out of memory at step {self.done + 1}, on a batch of {count} utterances of up to "
            f"{frames} frames: {', '.join(self.ids_of(np.asarray(batch['index'])))}. "
            f"{first if had_cache else 'Lower'} "
            "--batch-size (and raise --grad-accum by as much), set --max-frames-per-batch, or drop "
            "long utterances with --max-mel-frames; all checkpoints are intact"
        )


def _size(batch: Mapping[str, tf.Tensor]) -> tuple[int, int]:
    """The utterances of a batch and their frames."""
    shape = batch.shape if isinstance(batch, ResidentBatch) else batch["mel"].shape
    return shape[0], shape[1]
