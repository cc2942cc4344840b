"""How far training is: a bar on a terminal, one line of the log per interval elsewhere."""

import logging
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from myxtts.monitoring import heartbeat
from myxtts.monitoring.verdict import waiting_share
from myxtts.training.loop import COMPILING, Listener, StepRecord

logger = logging.getLogger(__name__)

SHOWN = {"mel": "mel_loss", "stop": "stop_loss", "voice": "voice_similarity_loss"}
BAR_CELLS = 10


class ProgressHook(Listener):
    """Shows losses, times, the stall and what is left, as means over the last interval.

    `is_compiled` says that the first step is compiled before it runs.
    """

    def __init__(
        self,
        total_steps: int,
        log_interval: int,
        is_compiled: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.total_steps, self.log_interval = total_steps, log_interval
        self.is_compiled, self.clock = is_compiled, clock
        self._recent: deque[StepRecord] = deque(maxlen=log_interval)
        self._first: tuple[int, float] | None = None  # step and moment: the first one compiles
        self._step, self._logged_at = 0, 0.0
        self._live: Live | None = None

    def start(self, step: int) -> None:
        self._step, self._logged_at = step, self.clock()
        if sys.stderr.isatty():
            # Twice a second is enough for the eye, and leaves the cores to the training.
            self._live = Live(self, console=Console(stderr=True), refresh_per_second=2)
            self._live.start()
        elif self.is_compiled and step < self.total_steps:
            logger.info("%s; the following steps are faster", COMPILING)

    def after_step(self, record: StepRecord) -> None:
        now = self.clock()
        self._recent.append(record)
        self._first = self._first or (record.step, now)
        self._step = record.step
        is_late = now - self._logged_at >= heartbeat.INTERVAL_SECONDS
        if self._live is None and (record.step % self.log_interval == 0 or is_late):
            self._logged_at = now
            where = f"step {record.step:,} of {self.total_steps:,} (epoch {record.epoch + 1})"
            shown = [*losses(self._recent), *times(self._recent), *self._left(now)]
            logger.info("%s: %s", where, " ".join(shown))
            heartbeat.shown()

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heartbeat.shown()
        yield Text(self.render(options.max_width), no_wrap=True, overflow="crop", end="")

    def render(self, width: int) -> str:
        """Return the bar's line: the step and what is left, losses, times; as much as fits."""
        leading = [f"{self._step:,}/{self.total_steps:,}", *self._left(self.clock()), *_activity()]
        leading += losses(self._recent)
        line = " ".join(leading)
        if len(line) > width:
            return fit(leading, width)
        with_bar = f"{_bar(self._step, self.total_steps)} {line}"
        line = with_bar if len(with_bar) <= width else line
        return fit([line, *times(self._recent)], width)

    def _left(self, now: float) -> list[str]:
        if self._first is None or self._step == self._first[0]:
            return []
        first_step, began = self._first
        seconds = (now - began) * (self.total_steps - self._step) / (self._step - first_step)
        minutes, seconds = divmod(round(max(0.0, seconds)), 60)
        hours, minutes = divmod(minutes, 60)
        return [f"left={hours}:{minutes:02}:{seconds:02}"]


def fit(fields: Sequence[str], width: int) -> str:
    """Join the first of some fields, as many as fit, each of them whole."""
    line = ""
    for field in fields:
        longer = f"{line} {field}" if line else field
        if line and len(longer) > width:
            break
        line = longer
    return line


def losses(records: Sequence[StepRecord]) -> list[str]:
    """The mean losses of some steps."""
    return [
        f"{name}={statistics.fmean(record.metrics[key] for record in records):.3f}"
        for name, key in SHOWN.items()
        if records and key in records[-1].metrics
    ]


def times(records: Sequence[StepRecord]) -> list[str]:
    """The mean times of some steps; those that were compiled count for their data alone."""
    if not records:
        return []
    data = statistics.fmean(record.data_ms for record in records)
    usual = [record for record in records if not record.times.compile_ms]
    if not usual:
        compiling = sum(record.times.compile_ms for record in records) / 1e3
        return [f"data={data:.1f}ms", f"compile={compiling:.1f}s"]
    compute = statistics.fmean(record.compute_ms for record in usual)
    stalled = statistics.fmean(record.times.stall_ms for record in usual)
    device = statistics.fmean(record.times.device_ms for record in usual)
    stall = 100 * waiting_share(stalled, device)
    return [f"data={data:.1f}ms", f"compute={compute:.1f}ms", f"stall={stall:.1f}%"]


def _activity() -> list[str]:
    """What happens instead of a usual step."""
    activity = heartbeat.current()
    if activity is None or activity.what.startswith("step "):
        return []
    return [f"{activity.what} ({activity.seconds:.0f} s)"]


def _bar(step: int, total: int) -> str:
    done = BAR_CELLS * step // max(1, total)
    return f"[{'#' * done}{'-' * (BAR_CELLS - done)}]"
