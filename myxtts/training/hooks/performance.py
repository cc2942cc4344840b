"""Where a run's time goes: reports in the log, a page to look at, and the verdict."""

import logging
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.errors import UserError
from myxtts.monitoring.evidence import UNKNOWN, Recorder, Setup
from myxtts.monitoring.monitor import get_performance_monitor
from myxtts.monitoring.page import PageFacts, ShapeUse, write_page
from myxtts.monitoring.system import SystemSampler
from myxtts.monitoring.timeline import WAIT
from myxtts.monitoring.timers import stages
from myxtts.monitoring.verdict import Verdict, diagnose, performance_report
from myxtts.runtime import RuntimeState
from myxtts.training.hooks.workers import WorkerTimes
from myxtts.training.loop import Listener, StepRecord

logger = logging.getLogger(__name__)

PAGE = "performance.html"
# A page is written whole: first after so many steps, then whenever a quarter more are done.
STEPS_PER_PAGE = 1000
# The phases of a page, by the recorder's names.
PHASES = {
    "device": "device",
    "wait": "waiting for data",
    "copy": "copying",
    "gather": "gathering",
    "hooks": "hooks",
    "host": "host",
    "compile": "compiling",
}


class PerformanceHook(Listener):
    """Reports where the time went every few epochs and at the end, and keeps a page of it.

    The loop writes the times into `recorder`; the first step stands apart, for it compiles and
    fills the pipeline.
    """

    def __init__(
        self,
        folder: Path | None = None,
        setup: Setup = UNKNOWN,
        epochs_per_report: int = 10,
        workers: WorkerTimes | None = None,
    ):
        self.folder, self.workers = folder, workers
        self.epochs_per_report = epochs_per_report
        self.recorder = Recorder(setup=setup)
        self.sampler: SystemSampler | None = None
        self._epochs = self._reported = 0
        self._stages: Mapping[str, float] = {}
        self._losses: dict[str, tuple[array, array]] = {}  # steps and values
        self._padding: dict[str, tuple[float, int]] = {}  # by shape, the sum and the count
        self._next_page = STEPS_PER_PAGE

    def start(self, step: int) -> None:
        if self.folder is not None:
            for left in self.folder.glob(f"{PAGE}.*.tmp"):  # by a process that was killed
                left.unlink()
            self.sampler = SystemSampler()
            self.sampler.start()

    def after_step(self, record: StepRecord) -> None:
        if not len(self.recorder):  # from here on, as the recorder counts
            self._stages = stages.totals()
        self._tell_monitor(record)
        if self.workers:
            self.workers.add(record.metrics)
        for name, value in record.metrics.items():
            if name == "loss" or (name.endswith("_loss") and "/" not in name):
                steps, values = self._losses.setdefault(name, (array("q"), array("f")))
                steps.append(record.step)
                values.append(value)
        if "padding" in record.metrics:
            total, count = self._padding.get(record.times.shape, (0.0, 0))
            self._padding[record.times.shape] = total + record.metrics["padding"], count + 1
        if self.folder is not None and len(self.recorder) >= self._next_page:
            self._next_page += max(STEPS_PER_PAGE, self._next_page // 4)
            self._try_to_write_page()

    def after_epoch(self, epoch: int, step: int) -> None:
        self._epochs += 1
        if self._epochs % self.epochs_per_report == 0:
            self._report()

    def close(self) -> None:
        if self.sampler is not None:
            self.sampler.stop()
        if len(self.recorder) > self._reported:
            self._report()
            if self.folder is not None and self._try_to_write_page():
                logger.info("where the time went, step by step: %s", self.folder / PAGE)

    def verdict(self) -> Verdict:
        """What holds the run back, by all steps so far."""
        return diagnose(self._evidence())

    def _try_to_write_page(self) -> bool:
        """A page that finds no room must not end a training, or keep it from being saved."""
        try:
            self.write_page()
        except UserError as error:
            logger.warning("%s", error)
            return False
        return True

    def write_page(self) -> Path:
        """Write the page of the run as it is now."""
        return write_page(self.folder / PAGE, self._page())

    def _evidence(self):
        self.recorder.stages = {n: 1e3 * s for n, s in stages.since(self._stages).items()}
        return self.recorder.evidence()

    def _report(self) -> None:
        recorder = self.recorder
        if not len(recorder):
            return
        self._reported = len(recorder)
        first = recorder.first
        report = performance_report(
            recorder.series["data"], recorder.series["compute"], self._evidence()
        )
        logger.info(
            "%s\n  The first step, which is not among them: data %.1f ms, compute %.1f ms",
            report,
            first.wait_ms,
            first.compute_ms,
        )
        if self.workers and str(self.workers):
            logger.info("%s", self.workers)

    def _page(self) -> PageFacts:
        verdict, recorder = self.verdict(), self.recorder
        first = recorder.first
        return PageFacts(
            title=str(self.folder),
            verdict=verdict.sentence,
            is_healthy=verdict.is_healthy,
            steps=recorder.steps,
            phases=phases_of(recorder),
            utilisation=utilisation_of(recorder),
            losses={name: list(zip(*found, strict=True)) for name, found in self._losses.items()},
            shapes=shapes_of(recorder, self._padding),
            padding_waste=self._padding_waste(),
            system=system_series(self.sampler),
            notes=[
                "The first step, which is not in the charts, waited "
                f"{first.wait_ms:.0f} ms for its batch and took {first.compute_ms:.0f} ms, "
                f"{first.compile_ms:.0f} ms of them to trace and compile.",
                *([str(self.workers)] if self.workers else []),
            ],
        )

    def _tell_monitor(self, record: StepRecord) -> None:
        """Let the monitor of this process know: whoever asks it after training gets an answer."""
        times = record.times
        waited = times.idle.get(WAIT, 0.0)
        computed = times.device_ms + times.compile_ms + times.stall_ms - waited
        get_performance_monitor().log_step_timing(
            waited / 1e3, computed / 1e3, int(record.index.shape[0])
        )

    def _padding_waste(self) -> float | None:
        totals = [total for total, _ in self._padding.values()]
        return sum(totals) / sum(n for _, n in self._padding.values()) if totals else None


def setup_of(config: XTTSConfig, state: RuntimeState) -> Setup:
    """What the verdict must know of a run's settings."""
    return Setup(
        why_eager=state.notes.get("functions", "") if state.eager else "",
        mode=config.data.preprocessing_mode,
        overlaps=config.data.optimize_cpu_gpu_overlap,
        steps_per_call=config.training.steps_per_call,
    )


def phases_of(recorder: Recorder) -> dict[str, Sequence[float]]:
    """Where the time of each step went, by what it is called on a page."""
    return {shown: recorder.series[name] for name, shown in PHASES.items()}


def utilisation_of(recorder: Recorder) -> np.ndarray:
    """The share of each step's time in which the device computed."""
    walls = np.sum([np.asarray(values) for values in phases_of(recorder).values()], axis=0)
    return np.asarray(recorder.series["device"]) / np.maximum(walls, 1e-9)


def shapes_of(recorder: Recorder, padding: Mapping[str, tuple[float, int]]) -> list[ShapeUse]:
    """The shapes of the batches, those that were used most first; padding as a sum and a count."""
    found = []
    for shape, count in recorder.shapes.most_common():
        total, padded = padding.get(shape, (0.0, 0))
        compiled = recorder.compiled.get(shape, 0.0)
        found.append(ShapeUse(shape, count, total / max(1, padded), compiled))
    return found


def system_series(sampler: SystemSampler | None) -> dict[str, list[tuple[float, float]]]:
    """What was sampled in the background, as series over seconds."""
    if sampler is None:
        return {}
    samples = list(sampler.samples)
    own = {
        "CPU %": "cpu_percent",
        "memory %": "memory_percent",
        "disk read MB/s": "disk_read_mb_s",
        "disk write MB/s": "disk_write_mb_s",
    }
    series = {
        shown: [(x.seconds, getattr(x, name)) for x in samples] for shown, name in own.items()
    }
    gpu = {"%": "utilisation", "W": "power_w", "°C": "temperature_c"}
    for number in range(max((len(one.gpus) for one in samples), default=0)):
        for unit, name in gpu.items():
            series[f"GPU {number} {unit}"] = [
                (one.seconds, getattr(one.gpus[number], name))
                for one in samples
                if number < len(one.gpus)
            ]
    known = {
        name: [(second, value) for second, value in points if value is not None]
        for name, points in series.items()
    }
    return {name: points for name, points in known.items() if points}
