"""How far training is: a bar on a terminal, one line of the log per interval elsewhere."""

import logging
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.progress import TimeRemainingColumn as Remaining

from myxtts.monitoring.verdict import waiting_share
from myxtts.training.loop import Listener, StepRecord

log = logging.getLogger(__name__)

SHOWN = {"mel": "mel_loss", "stop": "stop_loss", "voice": "voice_similarity_loss"}


class ProgressHook(Listener):
    """Shows losses, times, the stall and what is left, as means over the last interval."""

    def __init__(
        self, total_steps: int, log_interval: int, clock: Callable[[], float] = time.monotonic
    ):
        self.total_steps, self.log_interval, self.clock = total_steps, log_interval, clock
        self._recent: deque[StepRecord] = deque(maxlen=log_interval)
        self._first: tuple[int, float] | None = None  # step and moment: the first one compiles
        self._bar: Progress | None = None

    def start(self, step: int) -> None:
        if sys.stderr.isatty():
            self._bar = _make_bar()
            self._task = self._bar.add_task(
                "training", total=self.total_steps, completed=step, status=""
            )
            self._bar.start()

    def after_step(self, record: StepRecord) -> None:
        self._recent.append(record)
        self._first = self._first or (record.step, self.clock())
        if self._bar is not None:
            self._bar.update(self._task, completed=record.step, status=describe(self._recent))
        elif record.step % self.log_interval == 0:
            where = f"step {record.step:,} of {self.total_steps:,} (epoch {record.epoch + 1})"
            log.info("%s: %s%s", where, describe(self._recent), self._left(record.step))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _left(self, step: int) -> str:
        first_step, began = self._first
        if step == first_step:
            return ""
        seconds = (self.clock() - began) * (self.total_steps - step) / (step - first_step)
        minutes, seconds = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f" left={hours}:{minutes:02}:{seconds:02}"


def describe(records: deque[StepRecord]) -> str:
    """Put the mean losses and times of some steps into a few words."""
    metrics = records[-1].metrics
    losses = [
        f"{name}={statistics.fmean(record.metrics[key] for record in records):.3f}"
        for name, key in SHOWN.items()
        if key in metrics
    ]
    data = statistics.fmean(record.data_ms for record in records)
    compute = statistics.fmean(record.compute_ms for record in records)
    stalled = statistics.fmean(record.times.stall_ms for record in records)
    device = statistics.fmean(record.times.device_ms for record in records)
    stall = 100 * waiting_share(stalled, device)
    times = [f"data={data:.1f}ms", f"compute={compute:.1f}ms", f"stall={stall:.1f}%"]
    return " ".join(losses + times)


def _make_bar() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}", markup=False),
        Elapsed(),
        TextColumn("left:"),
        Remaining(),
    )
    # Twice a second is enough for the eye, and leaves the cores to the training.
    return Progress(*columns, console=Console(stderr=True), refresh_per_second=2)
