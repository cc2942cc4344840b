"""Attribution by difference: the same step fed from memory, from the cache and from recordings."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.bench.simulated import SimulatedStep
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.monitoring import timers
from myxtts.monitoring.evidence import UNKNOWN, Evidence, Recorder, Setup
from myxtts.monitoring.progress import Progress, progress
from myxtts.monitoring.verdict import Verdict, diagnose
from myxtts.training.groups import Item
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.tensorboard import TensorBoardHook
from myxtts.training.loop import SEEN_TO_THE_END, Hook, TrainingLoop
from myxtts.training.steps import CompiledStep
from myxtts.training.trainer import XTTSTrainer

CONFIGURED, CONSTANT, GRAPH = "as configured", "one batch in memory", "one batch, as a graph"
KEPT, IN_MEMORY, RECORDINGS = "the same batches, kept", "cache in memory", "recordings"
WHAT = {
    CONFIGURED: "the run itself, with its logging",
    CONSTANT: "one batch again and again: what the device can do at most",
    KEPT: "its batches from a list: no data engine",
    IN_MEMORY: "the cache read into memory first: no disk",
    RECORDINGS: "nothing prepared: every batch is read, decoded and computed",
    GRAPH: "that one batch, by the compiled step",
}
Step = CompiledStep | SimulatedStep

WARM_UP = 3  # steps of a trial that are not counted
LEAST_STEPS, TRIAL_SECONDS = 6, 15.0


@dataclass(frozen=True)
class Trial:
    """The same steps fed in one way."""

    name: str
    evidence: Evidence
    recorder: Recorder
    load_ms: float  # time per batch when no step consumes it


@dataclass(frozen=True)
class Profile:
    """All trials, their combined evidence, and the verdict on the run as it is configured."""

    trials: tuple[Trial, ...]
    evidence: Evidence
    verdict: Verdict

    def __getitem__(self, name: str) -> Trial:
        return {trial.name: trial for trial in self.trials}[name]

    def __contains__(self, name: str) -> bool:
        return any(trial.name == name for trial in self.trials)


@dataclass(frozen=True)
class Feed:
    """One way to feed the steps: what makes its batches, and what happens next to them."""

    make: Callable[[], Iterable[Item]]
    hooks: Sequence[Hook] = ()
    make_step: Callable[[], Step] | None = None  # where it needs a step of its own
    share: float = 1.0  # of the steps that other feeds take


def profile_training(config: XTTSConfig, *, steps: int = 40, simulate_ms: float = 0.0) -> Profile:
    """Open the corpus of a configuration, run the same steps in several ways, and compare them.

    With `simulate_ms` a simulated accelerator that takes so long stands in for the model. Nothing
    is saved.
    """
    trainer = open_trainer(config)
    data = trainer.data
    batch = middling_batch(data)
    step = SimulatedStep(simulate_ms) if simulate_ms else trainer.build_step(batch)
    with (
        tempfile.TemporaryDirectory(prefix="myxtts-profile-") as folder,
        progress("profiling", "runs") as report,
    ):
        feeds = {CONFIGURED: Feed(data.stream, _logging_hooks(config, Path(folder)))}
        data.refresh()
        if data.train.mode != "runtime" and data.train.is_complete:
            feeds[IN_MEMORY] = Feed(reopened(data, memory_cache=True).stream)
        if data.train.mode != "runtime":
            # Computing features takes a while, and shows in a few steps.
            recordings = reopened(data, preprocessing_mode="runtime")
            feeds[RECORDINGS] = Feed(recordings.stream, share=0.25)
        if step.is_eager:
            make_graph = partial(as_graph, config, data, batch)
            feeds[GRAPH] = Feed(partial(repeated, batch), make_step=make_graph)
        return compare(step, feeds, batch, steps, report, setup=trainer.performance.recorder.setup)


def open_trainer(config: XTTSConfig) -> XTTSTrainer:
    """A trainer whose data are prepared; it is there to be measured, and saves nothing."""
    trainer = XTTSTrainer(config)
    with progress("preparing") as report:
        trainer.prepare_datasets(report)
    return trainer


def compare(
    step: Step,
    feeds: Mapping[str, Feed],
    batch: dict,
    steps: int,
    report: Progress | None = None,
    clock: Callable[[], float] = time.perf_counter,
    setup: Setup = UNKNOWN,
) -> Profile:
    """Feed a step in each way, `CONFIGURED` among them, and from memory, and conclude."""
    own = feeds[CONFIGURED]
    kept = [item for item in islice(own.make(), WARM_UP + 1) if item]
    # First, because a step of another kind may change TensorFlow's global state.
    feeds = {
        CONSTANT: Feed(partial(repeated, batch)),
        KEPT: Feed(lambda: cycle(kept)),
        **feeds,
    }
    trials = []
    for done, (name, feed) in enumerate(feeds.items()):
        if report:
            report(done, len(feeds))
        count = max(WARM_UP, round(steps * feed.share))
        taken = feed.make_step() if feed.make_step else step
        trials.append(run_trial(name, feed, taken, count, clock))
    if report:
        report(len(feeds), len(feeds))
    return conclude(trials, setup)


def conclude(trials: Sequence[Trial], setup: Setup = UNKNOWN) -> Profile:
    """Combine trials: the work of each stage, and the measured effect of each change."""
    found = {trial.name: trial for trial in trials}
    own, kept = found[CONFIGURED], found[KEPT]
    stages = dict(own.evidence.stages)
    after = {stage: kept.evidence.wall_ms for stage in timers.STAGES}
    if IN_MEMORY in found:
        warm = found[IN_MEMORY]
        # Reading from the disk is the difference to loading from memory.
        read = own.load_ms - warm.load_ms
        stages[timers.READ] = max(stages.get(timers.READ, 0.0), read)
        # The native reader works in the graph, where no timer sees it: it did the rest.
        others = sum(warm.evidence.stages.values())
        stages.setdefault(timers.BATCHING, max(0.0, warm.load_ms - others))
        after[timers.READ] = warm.evidence.wall_ms
    evidence = replace(own.evidence, stages=stages, after=after, setup=setup)
    # Where every step compiles, only the repeated batch shows how long computing takes.
    hidden = found[CONSTANT].evidence.device_ms - evidence.device_ms
    if 0 < hidden < evidence.compile_ms:
        evidence = replace(
            evidence,
            device_ms=evidence.device_ms + hidden,
            compile_ms=evidence.compile_ms - hidden,
        )
    if GRAPH in found:
        quicker = found[GRAPH].evidence.device_ms / found[CONSTANT].evidence.device_ms
        evidence = replace(evidence, graph_ms=quicker * evidence.device_ms)
    return Profile(tuple(trials), evidence, diagnose(evidence))


def run_trial(
    name: str,
    feed: Feed,
    step: Step,
    steps: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Trial:
    """Time some steps after a warm-up, then how fast batches come without steps.

    Slow steps end after `TRIAL_SECONDS`: a few of them are enough.
    """
    recorder = Recorder()
    with _opened(feed) as source:
        warm_up = TrainingLoop(step, [], 1 << 40, WARM_UP, list, clock=clock)
        run_to_end(warm_up, islice(source, WARM_UP))
        before = timers.stages.totals()
        most = steps + (SEEN_TO_THE_END if step.is_async else 1)
        hooks = feed.hooks
        loop = TrainingLoop(step, hooks, 1 << 40, most, list, recorder=recorder, clock=clock)
        run_to_end(loop, _for_a_while(source, most, clock))
    share = len(recorder) / max(1, loop.done)  # of the batches whose steps were counted
    recorder.stages = {n: 1e3 * s * share for n, s in timers.stages.since(before).items()}
    load_ms = _drained_ms(feed, steps, clock)
    return Trial(name, recorder.evidence(), recorder, load_ms)


def _drained_ms(feed: Feed, batches: int, clock: Callable[[], float]) -> float:
    """Time per batch when no step consumes it, without the first batch."""
    with _opened(feed) as source:
        next(source)
        began = clock()
        taken = sum(1 for _ in _for_a_while(source, batches, clock))
        return 1e3 * (clock() - began) / max(1, taken)


def _for_a_while(items: Iterator, most: int, clock: Callable[[], float]) -> Iterator:
    """At most so many items, and after `TRIAL_SECONDS` no more than the least."""
    began = clock()
    for taken, item in enumerate(islice(items, most)):
        yield item
        if taken > LEAST_STEPS and clock() - began > TRIAL_SECONDS:
            return


@contextmanager
def _opened(feed: Feed) -> Iterator[Iterator]:
    """The feed's batches; the threads behind them end with it."""
    source = iter(feed.make())
    try:
        yield source
    finally:
        if hasattr(source, "close"):
            source.close()


def run_to_end(loop: TrainingLoop, items: Iterable[Item]) -> None:
    """Run a trial; a signal ends all of the trials, not only this one."""
    reason = loop.run(items)
    if reason.is_interrupted:
        raise KeyboardInterrupt(f"stopped by {reason}: nothing was measured to the end")


def as_graph(config: XTTSConfig, data: TrainingData, batch: dict) -> CompiledStep:
    """The step of an eager run, compiled."""
    trainer = XTTSTrainer(config.replace(enable_graph_mode=True, enable_eager_debug=False))
    trainer.data = data
    return trainer.build_step(batch)


def _logging_hooks(config: XTTSConfig, folder: Path) -> list[Hook]:
    interval = config.training.log_interval
    return [HistoryHook(folder, interval), TensorBoardHook(folder / "tensorboard", interval)]


def repeated(batch: dict) -> Iterator[tuple[int, int, dict]]:
    number = 0
    while True:
        yield 0, number, batch
        number += 1


def middling_batch(data: TrainingData) -> dict:
    """The batch of median size among those of an epoch."""
    return batch_at(data, by_size(data)[0])


def by_size(data: TrainingData) -> tuple[int, int, int]:
    """The numbers of the batches of median and of largest size, and the frames of the latter."""
    plan = data.train.plan(data.batch_options)
    frames = plan.frames.astype(np.int64) * plan.sizes
    order = np.argsort(frames, kind="stable")
    return int(order[len(order) // 2]), int(order[-1]), int(frames[order[-1]])


def batch_at(data: TrainingData, number: int) -> dict:
    """A batch of the first epoch by its number."""
    with closing(data.stream(0, number)) as items:
        return next(items)[2]


def reopened(data: TrainingData, **settings: Any) -> TrainingData:
    """The same corpus, opened with other settings; the host reads it."""
    return TrainingData(data.config.replace(**settings, cache_on_device="off"))
