"""Settings by measurement: size and reading of batches, residence, calls; each tried briefly."""

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.bench import pacing, timing
from myxtts.bench.cluster.processes import run_apart
from myxtts.bench.profiling import (
    Step,
    batch_at,
    by_size,
    middling_batch,
    open_trainer,
    run_to_end,
)
from myxtts.bench.room import Room
from myxtts.bench.simulated import SimulatedStep
from myxtts.bench.tuning_choices import (
    BUDGET,
    CALLS,
    DEPTH,
    LONG_STEP_MS,
    READER,
    RESIDENCE,
    SIZE,
    WORKERS,
    Choice,
    Circumstances,
    Loading,
    Pace,
    Throughput,
    candidates,
    choose_batch,
    choose_calls,
    choose_least,
    choose_reader,
    choose_residence,
    reason_to_stay,
)
from myxtts.checkpoints import saved_states
from myxtts.config.config import XTTSConfig
from myxtts.config.io import as_yaml, load_config, save_config
from myxtts.data.batches import auto_mode
from myxtts.data.batches.tenancy import Tenancy, obstacle_of
from myxtts.data.batches.training_data import TrainingData
from myxtts.monitoring.console import columns
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.evidence import Recorder
from myxtts.monitoring.progress import Progress, progress
from myxtts.training.loop import SEEN_TO_THE_END, OutOfMemory, TrainingLoop
from myxtts.training.run_folder import alone_in, set_aside
from myxtts.training.trainer import XTTSTrainer

logger = logging.getLogger(__name__)

LOADING = (READER, WORKERS, DEPTH)
TUNED = (SIZE, BUDGET, *LOADING, RESIDENCE, CALLS)
AUTO = "training.auto_tune"
FILE = "auto_tuned.yaml"

READER_NAMES = {True: "native", False: "host"}
ROUNDS = 3
TRIAL_SECONDS, LEAST_STEPS, MOST_STEPS, MOST_BATCHES = 1.0, 3, 40, 200
MOST_PACED = 400  # steps


@dataclass(frozen=True)
class Tuning:
    """What was chosen for every setting, and the configuration with it."""

    choices: tuple[Choice, ...]
    config: XTTSConfig

    def __getitem__(self, setting: str) -> Choice:
        return {choice.setting: choice for choice in self.choices}[setting]

    def write(self, path: str | Path, *, sealed: bool = False) -> None:
        """Write the configuration as a file of what differs from the defaults."""
        save_config(self.config, path, only_differences=True, sealed=sealed)

    def as_yaml(self) -> str:
        """What `write` writes."""
        return as_yaml(self.config, only_differences=True)

    def __str__(self) -> str:
        rows = [("setting", "value", "measured", "why")]
        for one in self.choices:
            rows.append((one.setting, f"{_shown(one.setting, one.value)} *", one.measured, one.why))
            for other in one.alternatives:
                rows.append(("", _shown(one.setting, other.value), other.measured, other.why))
        return f"{columns(rows)}\n*: chosen"


def tune(
    config: XTTSConfig,
    *,
    given: Mapping[str, str] | None = None,
    simulate_ms: float = 0.0,
    rounds: int = ROUNDS,
) -> Tuning:
    """Open the corpus of a configuration as its mode says, and choose by short measurements.

    `given` names settings that are not touched, and where each came from. With `simulate_ms` a
    simulated accelerator that takes so long stands in for the model.
    """
    trainer = open_trainer(config)
    with progress("tuning", "measurements") as report:
        return _Tuner(trainer, given or {}, simulate_ms, rounds, report).run()


def settle_run(
    config: XTTSConfig,
    resume: bool | Path | str | None,
    given: Mapping[str, str],
    measure_it: Callable[[XTTSConfig], Tuning],
) -> XTTSConfig:
    """The configuration of a run that tunes itself when it begins, and keeps that in its folder.

    `resume` is as `XTTSTrainer` takes it. A resumed run takes what was chosen at its
    beginning, so that its batches stay the same, and measures nothing.
    """
    folder = Path(config.training.checkpoint_dir).expanduser()
    earlier = _resumed_run(folder, resume)
    if earlier is not None:
        return _as_begun(config, earlier, given)
    with alone_in(folder):
        tuning = measure_it(config)
        logger.info("%s", tuning)
        if resume is False:
            set_aside(folder)  # before this run's own file is there to be set aside with the rest
        tuning.write(folder / FILE, sealed=True)
    return tuning.config


def tune_loading(config: XTTSConfig, given: Mapping[str, str], workers: int) -> dict[str, Any]:
    """How one of several workers loads its share of every batch; all of them share its size.

    It is measured in a new process: in this one TensorFlow is connected with the others.
    """
    own = {path: attrgetter(path)(config) // workers for path in (SIZE, BUDGET)}
    share = config.replace(**{**own, SIZE: max(1, own[SIZE]), AUTO: False}, micro_batches=1)
    shared = dict.fromkeys((SIZE, BUDGET, RESIDENCE, CALLS), "all workers share a batch")
    tuning = run_apart(_tune_share, share, {**given, **shared})
    chosen = {path: tuning[path].value for path in LOADING}
    shown = ", ".join(f"{path} {_shown(path, value)}" for path, value in chosen.items())
    logger.info("chosen for this worker: %s", shown)
    return chosen


def _tune_share(config: XTTSConfig, given: Mapping[str, str]) -> Tuning:
    return tune(config, given=given)


def _resumed_run(folder: Path, resume: bool | Path | str | None) -> Path | None:
    """The folder of the run that is resumed, if any."""
    if isinstance(resume, (str, Path)):
        return Path(resume).expanduser().resolve().parents[1]
    if resume is False:
        return None
    return folder if resume or saved_states(folder / "checkpoints") else None


def _as_begun(config: XTTSConfig, run: Path, given: Mapping[str, str]) -> XTTSConfig:
    """The configuration with the choices of a run's beginning, unless they are given now."""
    if not (run / FILE).exists():
        logger.info("the run in %s did not tune itself when it began: its settings stay", run)
        return config
    begun = load_config(run / FILE)
    chosen = {path: attrgetter(path)(begun) for path in TUNED if path not in given}
    shown = ", ".join(f"{path} {_shown(path, value)}" for path, value in chosen.items())
    logger.info("as chosen when the run in %s began: %s", run, shown)
    settled = config.replace(**chosen | {AUTO: False})
    folder = Path(config.training.checkpoint_dir).expanduser()
    if folder.resolve() != run.resolve():
        Tuning((), settled).write(folder / FILE, sealed=True)
    return settled


def trial_length(seconds: float, most: int) -> int:
    """How many steps or batches of this duration a trial takes."""
    return min(most, max(LEAST_STEPS, round(TRIAL_SECONDS / max(1e-9, seconds))))


class _Tuner:
    """Measures one setting after the other, each with what was chosen before it."""

    def __init__(
        self,
        trainer: XTTSTrainer,
        given: Mapping[str, str],
        simulate_ms: float,
        rounds: int,
        report: Progress,
    ):
        self.trainer, self.simulate_ms = trainer, simulate_ms
        # The trainer too: what it builds its step from must not fill the cache during tuning.
        trainer.data = _without_storing(trainer.data)
        self.config, self.data = trainer.config, trainer.data
        self.rounds, self.report, self.done = rounds, report, 0
        split = self.data.train
        is_stored = split.mode != "runtime" and split.is_complete
        seen = Circumstances(
            is_stored,
            is_simulated=bool(simulate_ms),
            is_eager=trainer.runtime.eager,
            has_gpu=bool(trainer.runtime.gpus),
            obstacle=obstacle_of(split),
            given=given,
        )
        self.reasons = {path: reason_to_stay(path, self.config, seen) for path in TUNED}
        self.values = {
            path: candidates(path, self.config, available_cores(), len(split))
            for path in TUNED
            if not self.reasons[path]
        }
        self.total = sum(map(self._measurements, self.values))
        self.step_seconds = simulate_ms / 1e3

    @cached_property
    def step(self) -> Step:
        if self.simulate_ms:
            return SimulatedStep(self.simulate_ms)
        return self.trainer.build_step(middling_batch(self._with()))

    def run(self) -> Tuning:
        choices = []
        for setting, why in self.reasons.items():
            if why:
                choices.append(Choice(setting, attrgetter(setting)(self.config), "-", why))
                continue
            until = self.done + self._measurements(setting)
            choices.append(self._choose(setting, self.values[setting]))
            self._count(until - self.done)  # what failed took no rounds
            self.config = self.config.replace(**{setting: choices[-1].value})
        return Tuning(tuple(choices), self.config.replace(**{AUTO: False}))

    def _choose(self, setting: str, values: Sequence[Any]) -> Choice:
        if setting in (SIZE, BUDGET):
            return choose_batch(setting, self._throughputs(setting, values))
        if setting == RESIDENCE:
            return self._choose_residence()
        if setting == CALLS:
            return self._choose_calls(values)
        lengths = self._lengths_of_a_trial()
        variants = {
            value: partial(self._load, self._with(**{setting: value}), *lengths) for value in values
        }
        rounds = timing.interleaved(variants, self.rounds)
        found = {value: Loading(*zip(*rounds[value], strict=True)) for value in values}
        if setting == READER:
            return choose_reader(found, attrgetter(setting)(self.config))
        return choose_least(setting, found)

    def _load(self, data: TrainingData, steps: int, batches: int) -> tuple[float, float, float]:
        """The share of time the device waits; ms and CPU-ms per batch without a step."""
        recorder = Recorder()
        loop = TrainingLoop(self.step, [], 1 << 40, steps + 1, list, recorder=recorder)
        with closing(data.stream()) as items:
            run_to_end(loop, islice(items, steps + 1))  # the first, which fills, is not counted
        seen, cost = recorder.evidence(), _drain(data, batches)
        self._count(1)
        stall = seen.wait_ms / max(1e-9, seen.wait_ms + seen.device_ms)
        return stall, cost.ms_per_batch, 1e3 * cost.cpu_seconds / batches

    def _choose_residence(self) -> Choice:
        """Compare the device with the host, where the copy finds room beside the steps."""
        asked, calls = self.config.data.cache_on_device, self.config.training.steps_per_call
        own, lengths = self._with(**{RESIDENCE: asked}), self._lengths_of_a_pace(calls)
        variants = {
            value: partial(self._pace, self.step, data, calls, *lengths)
            for value, data in (("off", self._with()), (asked, own))
        }
        try:
            variants["off"]()  # before it is seen what memory steps leave
            residence = pacing.move_in(own)
            if residence is None or residence.is_over:
                why = residence.why if residence else "the host reads it"
                return Choice(RESIDENCE, asked, "-", f"not measured: {why}")
            variants[asked]()
            rounds = timing.interleaved(variants, self.rounds)
            if residence.is_over:
                return Choice(RESIDENCE, "off", "-", residence.why)
        except OutOfMemory:
            return Choice(RESIDENCE, "off", "-", "a step ran out of memory beside the copy")
        finally:
            own.release()
        return choose_residence(_paces(rounds), asked)

    def _choose_calls(self, values: Sequence[int]) -> Choice:
        """Compare numbers of steps per call on the same batches, in the order of the largest."""
        present, step_ms = self.config.training.steps_per_call, 1e3 * self._time_of_a_step()
        if step_ms > LONG_STEP_MS:
            why = f"not measured: a step takes {step_ms:.0f} ms, next to which a call is short"
            return Choice(CALLS, present, "-", why)
        most = max(values)
        data = self._with(**{CALLS: most, RESIDENCE: self.config.data.cache_on_device})
        lengths = self._lengths_of_a_pace(most)
        try:
            steps = {is_many: self._step_of(most if is_many else 1) for is_many in (False, True)}
            variants = {
                value: partial(self._pace, steps[value > 1], data, value, *lengths)
                for value in values
            }
            variants[1]()
            pacing.move_in(data)
            timing.interleaved({value: variants[value] for value in values if value > 1}, 1)
            rounds = timing.interleaved(variants, self.rounds)
        except (OutOfMemory, tf.errors.ResourceExhaustedError):
            return Choice(CALLS, 1, "-", "several steps a call ran out of memory")
        finally:
            data.release()
        return choose_calls(_paces(rounds))

    def _step_of(self, steps_per_call: int) -> Step:
        """The step of a run with so many a call, of the same model."""
        own = self.step
        if (steps_per_call > 1) == (self.config.training.steps_per_call > 1):
            return own
        self.trainer.config = self.trainer.config.replace(**{CALLS: steps_per_call})
        return self.trainer.build_step(middling_batch(self._with()))

    def _pace(self, *arguments: Any) -> tuple[float, float]:
        pace = pacing.pace_of(*arguments)
        self._count(1)
        return pace

    def _throughputs(self, setting: str, sizes: Sequence[int]) -> dict[int, Throughput]:
        room = Room(is_host=not self.step.device)
        tried = {size: self._fit(self._with(**{setting: size}), room) for size in sizes}
        variants = {
            size: partial(self._rate, batch)
            for size, batch in tried.items()
            if not isinstance(batch, str)
        }
        rates = timing.interleaved(variants, self.rounds)
        return {
            size: Throughput(tuple(rates[size])) if size in rates else Throughput(failure=batch)
            for size, batch in tried.items()
        }

    def _fit(self, data: TrainingData, room: Room) -> dict | str:
        """A batch of median size, if the largest fits as well, or why it does not."""
        self._count(1)
        middle, largest, frames = by_size(data)
        if shortage := room.shortage(frames):
            return shortage
        try:
            batch = batch_at(data, middle)
            self._take(batch)
            room.watch(frames, partial(self._take, batch_at(data, largest)))
        except tf.errors.ResourceExhaustedError:
            room.is_over = True
            return "ran out of memory"
        return batch

    def _rate(self, batch: dict) -> float:
        """Real frames per second; short steps are taken several times."""
        frames, taken = int(np.sum(batch["mel_lengths"])), 0
        began = time.perf_counter()
        while not taken or time.perf_counter() - began < TRIAL_SECONDS / 10:
            self._take(batch)
            taken += 1
        self._count(1)
        return taken * frames / (time.perf_counter() - began)

    def _take(self, batch: dict) -> None:
        self.step.read(self.step(self.step.place(batch), 1))

    def _lengths_of_a_trial(self) -> tuple[int, int]:
        """The steps, and the batches without a step, that fit into the time of a trial."""
        load_seconds = _drain(self._with(), LEAST_STEPS).wall_seconds / LEAST_STEPS
        return (
            trial_length(max(self._time_of_a_step(), load_seconds), MOST_STEPS),
            trial_length(load_seconds, MOST_BATCHES),
        )

    def _lengths_of_a_pace(self, unit: int) -> tuple[int, int]:
        """The steps that come first, and those that count, in whole calls of so many."""
        first = SEEN_TO_THE_END if self.step.is_async else 1
        counted = trial_length(unit * self._time_of_a_step(), MOST_PACED // unit)
        return unit * first, unit * counted

    def _time_of_a_step(self) -> float:
        """The seconds of a step of median size, once all that concerns its size is chosen."""
        if not self.step_seconds:
            batch = middling_batch(self._with())
            self._take(batch)  # tracing, where nothing was measured before
            began = time.perf_counter()
            self._take(batch)
            self.step_seconds = time.perf_counter() - began
        return self.step_seconds

    def _with(self, **settings: Any) -> TrainingData:
        """The data, opened once, with other settings and all that is chosen."""
        data = copy.copy(self.data)
        # On a device the cache would be read there, however the host reads it.
        data.config = self.config.replace(**{RESIDENCE: "off"} | settings)
        data.tenancy = Tenancy()
        return data

    def _measurements(self, setting: str) -> int:
        """How many measurements a setting takes; what is not about loading is first tried once."""
        return (self.rounds + (setting not in LOADING)) * len(self.values[setting])

    def _count(self, done: int) -> None:
        self.done += done
        if done:
            self.report(self.done, self.total)


def _without_storing(data: TrainingData) -> TrainingData:
    """The data with a cache that is not filled during tuning: every round finds the same.

    The reader is not logged, since it changes from trial to trial.
    """
    same = copy.copy(data)
    same.readers = None
    for part in ("train", "val"):
        split = getattr(data, part)
        if split is not None and split.decision:
            decision = replace(split.decision, action=auto_mode.STORE_NONE)
            setattr(same, part, replace(split, decision=decision))
    return same


def _drain(data: TrainingData, batches: int) -> timing.Cost:
    """The cost of batches without a step, after the first one."""
    with closing(data.stream()) as items:
        next(items)
        return timing.measure(lambda: islice(items, batches), batches)


def _paces(rounds: Mapping[Any, Sequence[tuple[float, float]]]) -> dict[Any, Pace]:
    return {value: Pace(*zip(*found, strict=True)) for value, found in rounds.items()}


def _shown(setting: str, value: Any) -> str:
    return READER_NAMES[value] if setting == READER else str(value)
