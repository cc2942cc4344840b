"""What the steps of a run take: the same ones, whoever reads their batches and calls them."""

import time
from collections.abc import Collection
from contextlib import closing

from myxtts.bench import timing
from myxtts.bench.profiling import Step, run_to_end
from myxtts.data.batches.residence import Residence
from myxtts.data.batches.training_data import TrainingData
from myxtts.training.loop import Hook, StepRecord, TrainingLoop


def pace_of(
    step: Step, data: TrainingData, steps_per_call: int, first: int, counted: int
) -> tuple[float, float]:
    """The ms and CPU-ms of a step, of so many that follow the first ones of the first epoch."""
    watch = _Stopwatch((first, first + counted))
    loop = TrainingLoop(
        step, [watch], 1 << 40, first + counted, list, steps_per_call=steps_per_call
    )
    with closing(data.stream()) as items:
        run_to_end(loop, items)
    (began, cpu_began), (ended, cpu_ended) = watch.times
    return 1e3 * (ended - began) / counted, 1e3 * (cpu_ended - cpu_began) / counted


def move_in(data: TrainingData) -> Residence | None:
    """Copy the cache to the device now, and wait; None where the host is to read it."""
    data.refresh()
    residence = data.tenancy.of_split(data.train, data.config.data)
    if residence is not None:
        residence.begin()
        residence.wait()
    return residence


class _Stopwatch(Hook):
    """Waits for certain steps to end, and keeps the time and the CPU time of each."""

    def __init__(self, steps: Collection[int]):
        self.steps, self.times = steps, list[tuple[float, float]]()

    def is_due(self, step: int) -> bool:
        return step in self.steps

    def after_step(self, record: StepRecord) -> None:
        if record.step in self.steps:
            self.times.append((time.perf_counter(), timing.cpu_seconds()))
