"""The real training step as something to measure: batch by batch, and as a graph against eager."""

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice

from myxtts.bench import timing
from myxtts.bench.profiling import middling_batch
from myxtts.bench.timing import Cost
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.models.convolutions import FULL
from myxtts.models.xtts import build_xtts
from myxtts.monitoring.progress import Progress
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.steps import CompiledStep, batch_signature, make_train_step

TAKEN = 2  # steps of a kind in a row


@dataclass(frozen=True)
class StepCosts:
    """What a step of one batch costs as a graph and eagerly, in rounds that took turns."""

    model_size: str
    utterances: int
    frames: int
    graph: tuple[Cost, ...]
    eager: tuple[Cost, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast the graph is: the median of rounds that ran side by side."""
        pairs = zip(self.eager, self.graph, strict=True)
        return statistics.median(eager.wall_seconds / graph.wall_seconds for eager, graph in pairs)

    def __str__(self) -> str:
        rows = [
            (
                name,
                f"{statistics.median(cost.ms_per_batch for cost in costs):.1f}",
                f"{statistics.median(1e3 * c.cpu_seconds / c.batches for c in costs):.1f}",
            )
            for name, costs in (("graph", self.graph), ("eager", self.eager))
        ]
        return "\n".join(
            (
                f"The training step of size {self.model_size} on a batch of {self.utterances} x "
                f"{self.frames} frames, median of {len(self.graph)} rounds",
                timing.table(("step", "ms", "CPU, ms"), rows),
            )
        )


def measure_steps(
    config: XTTSConfig,
    data: TrainingData,
    rounds: int,
    progress: Progress | None = None,
    xla: bool = False,
    convolutions: str = FULL,
) -> StepCosts:
    """Time the step of a batch of median size as a graph and eagerly, in turn.

    `xla` compiles the graph, as training does where there is a GPU; both have the same type of
    `convolutions`.
    """
    batch = middling_batch(data)
    make_step = step_maker(config, data, batch, convolutions)
    steps = {"graph": make_step(xla=xla), "eager": make_step(graph=False)}
    done = 0

    def take(step: CompiledStep) -> Cost:
        nonlocal done
        step.read(step(batch, 1))  # the other kind has just used the caches and the memory
        cost = timing.measure(lambda: [step.read(step(batch, 1)) for _ in range(TAKEN)], TAKEN)
        done += 1
        if progress:
            progress(done, len(steps) * (rounds + 1))
        return cost

    variants = {name: partial(take, step) for name, step in steps.items()}
    timing.interleaved(variants, 1)  # tracing, and compiling where that is on
    costs = timing.interleaved(variants, rounds)
    utterances, frames = batch["mel"].shape[:2]
    size = config.model.model_size
    return StepCosts(size, utterances, frames, *(tuple(costs[name]) for name in steps))


def step_maker(
    config: XTTSConfig, data: TrainingData, batch: dict, convolutions: str = FULL
) -> Callable[..., CompiledStep]:
    """What makes steps (`graph=`, `xla=`) for batches like this one, all of one new model."""
    cache, training = data.train.cache, config.training
    model = build_xtts(
        config.model,
        config.data.audio_spec,
        data.tokenizer.vocab_size,
        len(cache.languages),
        len(cache.speakers),
    )
    return partial(
        make_train_step,
        model,
        build_optimizer(training, total_steps=10_000),
        XTTSLoss.from_config(config),
        batch_signature(batch, config.data.n_mels),
        seed=training.seed,
        prior_steps=training.alignment_prior_steps,
        convolutions=convolutions,
    )


class TimedStep:
    """A step whose device counts as busy while the step is called or awaited.

    It counts as idle while a batch is awaited, though the step before may still run then.
    """

    def __init__(self, step: CompiledStep, clock: Callable[[], float] = time.perf_counter):
        self.step, self._clock = step, clock
        self.busy_seconds = self.idle_seconds = 0.0
        self._left: float | None = None

    def __call__(self, batch: dict, number: int):
        """Start the step of a batch, and return its metrics to be waited for."""
        return self._busy(lambda: self.step(batch, number))

    def read(self, metrics) -> dict[str, float]:
        """Wait for a step by fetching its metrics."""
        return self._busy(lambda: self.step.read(metrics))

    def _busy(self, call: Callable):
        began = self._clock()
        if self._left is not None:
            self.idle_seconds += began - self._left
        result = call()
        self._left = self._clock()
        self.busy_seconds += self._left - began
        return result


class TimedSteps:
    """Times one step again and again, once it has met the shapes of all batches to come."""

    def __init__(self, config: XTTSConfig, xla: bool, convolutions: str = FULL):
        self.config, self.xla, self.convolutions = config, xla, convolutions
        self.step: CompiledStep | None = None

    def __call__(self, data: TrainingData, batches: int) -> TimedStep:
        if self.step is None:
            self.step = self._warm(data, batches)
        return TimedStep(self.step)

    def _warm(self, data: TrainingData, batches: int) -> CompiledStep:
        """Take one step of every shape that the batches to come have."""
        step, seen = None, set()
        with closing(data.stream()) as stream:
            for _, _, batch in islice(stream, batches):
                if step is None:
                    make_step = step_maker(self.config, data, batch, self.convolutions)
                    step = make_step(xla=self.xla)
                shapes = (*batch["mel"].shape, *batch["tokens"].shape)
                if shapes not in seen:
                    seen.add(shapes)
                    step.read(step(batch, 1))
        return step
