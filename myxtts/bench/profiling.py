"""Attribution by difference: the same step fed from memory, from the cache and from recordings."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.monitoring import timers
from myxtts.monitoring.evidence import UNKNOWN, Evidence, Recorder, Setup
from myxtts.monitoring.progress import Progress
from myxtts.monitoring.simulated import SimulatedDevice
from myxtts.monitoring.verdict import Verdict, diagnose
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.tensorboard import TensorBoardHook
from myxtts.training.loop import SEEN_TO_THE_END, Hook, Items, TrainingLoop
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
WARM_UP = 3  # steps of a trial that are not counted
LEAST_STEPS, TRIAL_SECONDS = 6, 15.0


@dataclass(frozen=True)
class Trial:
    """The same steps fed in one way."""

    name: str
    evidence: Evidence
    recorder: Recorder
    load_ms: float  # what a batch takes if nobody uses it


@dataclass(frozen=True)
class Profile:
    """All trials, what they say together, and the verdict on the run as it is configured."""

    trials: tuple[Trial, ...]
    evidence: Evidence
    verdict: Verdict

    def __getitem__(self, name: str) -> Trial:
        return {trial.name: trial for trial in self.trials}[name]

    def __contains__(self, name: str) -> bool:
        return any(trial.name == name for trial in self.trials)


class SimulatedStep:
    """Steps of a device that is not there; it computes behind the call, as a GPU does."""

    is_async, is_eager, is_new = True, False, False

    def __init__(self, device: SimulatedDevice):
        self.device = device

    def place(self, batch: Any) -> Any:
        return batch

    def __call__(self, batch: Any, number: int) -> Any:
        return self.device.submit()

    def read(self, handle: Any) -> dict[str, float]:
        return {"end": self.device.wait(handle)}


Step = CompiledStep | SimulatedStep


@dataclass(frozen=True)
class Feed:
    """One way to feed the steps: what makes its batches, and what happens next to them."""

    make: Callable[[], Items]
    hooks: Sequence[Hook] = ()
    make_step: Callable[[], Step] | None = None  # of another one than the others have
    share: float = 1.0  # of the steps that the others take


def profile_training(
    trainer: XTTSTrainer,
    *,
    steps: int = 40,
    simulate_ms: float = 0.0,
    report: Progress | None = None,
) -> Profile:
    """Run the steps of a trainer whose data are prepared in several ways, and compare them.

    With `simulate_ms` a simulated accelerator that takes so long stands in for the model. Nothing
    is saved.
    """
    data, config = trainer.data, trainer.config
    batch = middling_batch(data)
    step: Step
    if simulate_ms:
        step = SimulatedStep(SimulatedDevice(simulate_ms))
    else:
        step = trainer.build_step(batch)
    with tempfile.TemporaryDirectory(prefix="myxtts-profile-") as folder:
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
    # In front, because a step of another kind may leave TensorFlow as these do not expect it.
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
    """What trials say together: the work of each stage, and what each change was seen to give."""
    found = {trial.name: trial for trial in trials}
    own, kept = found[CONFIGURED], found[KEPT]
    stages = dict(own.evidence.stages)
    after = {stage: kept.evidence.wall_ms for stage in timers.STAGES}
    if IN_MEMORY in found:
        warm = found[IN_MEMORY]
        # Reading is what is left of loading once the disk has nothing to do with it.
        read = own.load_ms - warm.load_ms
        stages[timers.READ] = max(stages.get(timers.READ, 0.0), read)
        # The native reader works in the graph, where no timer sees it: what nobody else did.
        others = sum(warm.evidence.stages.values())
        stages.setdefault(timers.BATCHING, max(0.0, warm.load_ms - others))
        after[timers.READ] = warm.evidence.wall_ms
    evidence = replace(own.evidence, stages=stages, after=after, setup=setup)
    # Where every step compiles, only the batch that came again tells what computing takes.
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
    """Take some steps after a few that do not count; then see how fast batches come unused.

    Slow steps end after `TRIAL_SECONDS`, for a few of them tell as much.
    """
    recorder = Recorder()
    with _opened(feed) as source:
        warm_up = TrainingLoop(step, [], 1 << 40, WARM_UP, list, clock=clock)
        _go(warm_up, islice(source, WARM_UP))
        before = timers.stages.totals()
        most = steps + (SEEN_TO_THE_END if step.is_async else 1)
        loop = TrainingLoop(step, feed.hooks, 1 << 40, most, list, 0, recorder, clock)
        _go(loop, _for_a_while(source, most, clock))
    share = len(recorder) / max(1, loop.done)  # of the batches whose steps were counted
    recorder.stages = {n: 1e3 * s * share for n, s in timers.stages.since(before).items()}
    load_ms = _drained_ms(feed, steps, clock)
    return Trial(name, recorder.evidence(), recorder, load_ms)


def _drained_ms(feed: Feed, batches: int, clock: Callable[[], float]) -> float:
    """What a batch takes where nobody uses it, the first one apart."""
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


def _go(loop: TrainingLoop, items: Items) -> None:
    """Run to the end; a signal ends all of the trials, not only this one."""
    reason = loop.run(items)
    if reason.is_interrupted:
        raise KeyboardInterrupt(f"stopped by {reason}: nothing was measured to the end")


def as_graph(config: XTTSConfig, data: TrainingData, batch: dict) -> CompiledStep:
    """The step of an eager run, compiled."""
    trainer = XTTSTrainer(_changed(config, enable_graph_mode=True, enable_eager_debug=False))
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
    frames = data.train.plan(data.batch_options).frames
    middle = int(frames.argsort(kind="stable")[len(frames) // 2])
    return next(iter(data.train_batches(start=middle)))


def reopened(data: TrainingData, **settings) -> TrainingData:
    return TrainingData(_changed(data.config, **settings))


def _changed(config: XTTSConfig, **settings) -> XTTSConfig:
    return config.replace(**settings)
