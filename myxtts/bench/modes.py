"""The three preprocessing modes side by side: how busy each keeps a device, and what it costs."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.bench import timing
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress
from myxtts.monitoring.system import SystemSampler, gpu_percent

if TYPE_CHECKING:
    from myxtts.bench.simulated import SimulatedStep
    from myxtts.bench.step import TimedStep

PRECOMPUTE, RUNTIME = "precompute", "runtime"
AUTO, AUTO_AFTERWARDS = "auto, cache empty at first", "auto, afterwards"
# What each row of the report opens the corpus with.
MODES = {PRECOMPUTE: "precompute", AUTO: "auto", AUTO_AFTERWARDS: "auto", RUNTIME: "runtime"}
EPOCHS = 2  # at least, so that what auto has stored is read as well


# Of a corpus and the number of batches that are to come.
MakeStep = Callable[[TrainingData, int], "TimedStep | SimulatedStep"]
# Samples the GPU, if there is one, while a block runs.
Watch = Callable[[], AbstractContextManager[SystemSampler | None]]


@dataclass(frozen=True, slots=True)
class ModeRun:
    """One run of training; what comes before its first step is counted separately."""

    preparation_seconds: float
    first_batch_seconds: float
    seconds: float  # from the first step to the end of the last
    busy_seconds: float
    idle_seconds: float
    wait_seconds: float  # for all batches but the first
    cpu_seconds: float  # of this process, during `seconds`
    batches: int
    samples: int
    gpu_percent: float | None = None  # by the driver


@dataclass(frozen=True)
class ModeResult:
    """All rounds of a mode: their steps together, and the median of what comes before them."""

    name: str
    runs: tuple[ModeRun, ...]

    @property
    def utilisation(self) -> float:
        """Compute / (compute + idle) of the device, between 0 and 1."""
        busy = self._total("busy_seconds")
        return busy / (busy + self._total("idle_seconds"))

    @property
    def samples_per_second(self) -> float:
        return self._total("samples") / self._total("seconds")

    @property
    def cpu_percent(self) -> float:
        """Of the cores that this process may use."""
        return 100 * self._total("cpu_seconds") / self._total("seconds") / available_cores()

    @property
    def ms_per_batch(self) -> float:
        """From one step to the next."""
        return 1e3 * self._total("seconds") / self._total("batches")

    @property
    def wait_ms(self) -> float:
        """How long the loop waited for a batch."""
        return 1e3 * self._total("wait_seconds") / (self._total("batches") - len(self.runs))

    @property
    def preparation_seconds(self) -> float:
        return statistics.median(run.preparation_seconds for run in self.runs)

    @property
    def first_batch_seconds(self) -> float:
        return statistics.median(run.first_batch_seconds for run in self.runs)

    @property
    def whole_seconds(self) -> float:
        """A run with all that comes before its first step."""
        steps = statistics.median(run.seconds for run in self.runs)
        return self.preparation_seconds + self.first_batch_seconds + steps

    @property
    def gpu_percent(self) -> float | None:
        found = [run.gpu_percent for run in self.runs if run.gpu_percent is not None]
        return statistics.fmean(found) if found else None

    def _total(self, name: str) -> float:
        return sum(getattr(run, name) for run in self.runs)


@dataclass(frozen=True)
class ModesBench:
    """The modes of a corpus, measured in one run."""

    corpus: str
    utterances: int
    batch_size: int
    device: str
    modes: tuple[ModeResult, ...]

    def __getitem__(self, name: str) -> ModeResult:
        return {mode.name: mode for mode in self.modes}[name]

    def __str__(self) -> str:
        first = self.modes[0].runs
        header = ("mode", "busy", "samples/s", "CPU", "ms a batch", "of it waiting")
        header += ("prepared in, s", "first batch, s", "whole run, s")
        return "\n".join(
            (
                f"{self.corpus}: {self.utterances:,} utterances to train on; {len(first)} x "
                f"{first[0].batches} batches of {self.batch_size} on {self.device}, in turn",
                timing.table(header, [_row(mode) for mode in self.modes]),
                "busy: compute / (compute + idle) of the device; CPU: of the machine's cores, by "
                "this process, during the steps; all before the first step is counted separately",
            )
        )


def bench_modes(
    config: XTTSConfig,
    make_step: MakeStep,
    device: str,
    folder: Path,
    *,
    batches: int = 200,
    rounds: int = 3,
    watch: Watch = nullcontext,
    progress: Progress | None = None,
) -> ModesBench:
    """Train through each mode in turn, on a device that is called `device`.

    The caches are in `folder`, each under the name of its mode, and are emptied before every
    round; those of the last round stay.
    """
    trial = _Trial(config, make_step, batches, rounds * len(MODES), watch, progress)
    caches = {name: folder / mode for name, mode in MODES.items()}
    variants = {name: partial(trial.run, mode, caches[name]) for name, mode in MODES.items()}
    for name in (PRECOMPUTE, AUTO):
        variants[name] = partial(_emptied, caches[name], variants[name])
    runs = timing.interleaved(variants, rounds)
    return ModesBench(
        corpus=str(config.data.dataset_path),
        utterances=trial.utterances,
        batch_size=config.data.batch_size,
        device=device,
        modes=tuple(ModeResult(name, tuple(found)) for name, found in runs.items()),
    )


def train_through(
    source: Iterator[dict],
    step: "TimedStep | SimulatedStep",
    batches: int,
    *,
    watch: Watch = nullcontext,
    preparation_seconds: float = 0.0,
    after_step: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> ModeRun:
    """Take a step of so many batches, one ahead of the device, as the training loop does."""
    began = clock()
    batch = next(source)
    first_seconds, waited, samples, before = clock() - began, 0.0, 0, None
    with watch() as sampler:
        cpu, began = timing.cpu_seconds(), clock()
        for number in count(1):
            samples += int(batch["mel"].shape[0])
            handle = step(batch, number)
            if before is not None:
                step.read(before)
            before = handle
            after_step()
            if number == batches:
                break
            waiting = clock()
            batch = next(source)
            waited += clock() - waiting
        step.read(before)
        seconds, cpu = clock() - began, timing.cpu_seconds() - cpu
    return ModeRun(
        preparation_seconds=preparation_seconds,
        first_batch_seconds=first_seconds,
        seconds=seconds,
        busy_seconds=step.busy_seconds,
        idle_seconds=step.idle_seconds,
        wait_seconds=waited,
        cpu_seconds=cpu,
        batches=batches,
        samples=samples,
        gpu_percent=gpu_percent(sampler.samples) if sampler else None,
    )


@dataclass
class _Trial:
    """Opens the corpus by a mode and trains on it, again and again, and reports the progress."""

    config: XTTSConfig
    make_step: MakeStep
    batches: int
    runs: int
    watch: Watch
    progress: Progress | None
    done: int = 0
    utterances: int = 0

    def run(self, mode: str, cache: Path) -> ModeRun:
        config = self.config.replace(preprocessing_mode=mode, cache_dir=str(cache))
        began = time.perf_counter()
        data = TrainingData(config)
        preparation_seconds = time.perf_counter() - began
        self.utterances = len(data.train)
        batches = max(self.batches, EPOCHS * len(data.train.plan(data.batch_options)))
        step = self.make_step(data, batches)
        with closing(data.stream()) as stream:
            return train_through(
                (batch for _, _, batch in stream),
                step,
                batches,
                watch=self.watch,
                preparation_seconds=preparation_seconds,
                after_step=partial(self._count, batches),
            )

    def _count(self, batches: int) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.runs * batches)


def _emptied(folder: Path, run: Callable[[], ModeRun]) -> ModeRun:
    shutil.rmtree(folder, ignore_errors=True)
    return run()


def _row(mode: ModeResult) -> tuple[str, ...]:
    return (
        mode.name,
        f"{100 * mode.utilisation:.1f} %",
        f"{mode.samples_per_second:,.0f}",
        f"{mode.cpu_percent:.0f} %",
        f"{mode.ms_per_batch:.1f}",
        f"{mode.wait_ms:.1f}",
        f"{mode.preparation_seconds:.2f}",
        f"{mode.first_batch_seconds:.2f}",
        f"{mode.whole_seconds:.1f}",
    )
