"""How fast a corpus is loaded here: every reader and switch, against a naive loader."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from myxtts.bench import resident_loader, timing
from myxtts.bench.timing import Cost, Stall
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.data.batches.modes import ModeOpener
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.batches.profiler import SilentProfiler
from myxtts.data.batches.split import Split, open_stores
from myxtts.data.batches.training_data import batch_options
from myxtts.data.features.corpora import build_tokenizer, read_corpora
from myxtts.data.features.keys import keys_of
from myxtts.data.features.location import locate_cache
from myxtts.data.features.prepare import prepare
from myxtts.errors import UserError
from myxtts.monitoring.progress import Progress
from myxtts.monitoring.verdict import GOOD_MS, MODERATE_MS, loading_grade

STEP_MS = (5, 10, 20, 50)
NAIVE = "naive: np.load per utterance"
# What each row of the report changes in the configuration.
TOGGLES: dict[str, dict] = {
    "cached, native": {"use_tf_native_loading": True},
    "cached, host": {"use_tf_native_loading": False},
    "native, overlap off": {"use_tf_native_loading": True, "optimize_cpu_gpu_overlap": False},
    "host, overlap off": {"use_tf_native_loading": False, "optimize_cpu_gpu_overlap": False},
    "host, memory mapping off": {"use_tf_native_loading": False, "enable_memory_mapping": False},
    "native, memory_cache": {"use_tf_native_loading": True, "memory_cache": True},
    "native, prefetch 1": {"use_tf_native_loading": True, "prefetch_buffer_size": 1},
}
# The cache on the device, by the most batches that a call takes (`--steps-per-call`).
RESIDENT = {"on the device": 1, "on the device, 16 steps a call": 16}
_PLAIN = {"enable_memory_mapping": True, "memory_cache": False, "optimize_cpu_gpu_overlap": True}


@dataclass(frozen=True)
class LoaderResult:
    """One loader: its cost, the stalls of a simulated accelerator, and its memory."""

    name: str
    cost: Cost
    stalls: dict[int, Stall]
    megabytes: float


@dataclass(frozen=True)
class DataBench:
    """All loaders of a corpus, measured in one run."""

    corpus: str
    utterances: int
    hours: float
    dtype: str
    batch_size: int
    chosen: str
    rounds: int
    loaders: tuple[LoaderResult, ...]
    machine: str

    def __getitem__(self, name: str) -> LoaderResult:
        return {loader.name: loader for loader in self.loaders}[name]

    @property
    def verdict(self) -> str:
        """What the reader that the configuration chooses amounts to, in a sentence."""
        chosen, naive = self[self.chosen], self[NAIVE]
        ms = chosen.cost.ms_per_batch
        step = 20 if 20 in chosen.stalls else min(chosen.stalls)
        return (
            f"Loading is {loading_grade(ms)}: {ms:.1f} ms a batch by the reader {self.chosen!r} "
            f"(good below {GOOD_MS:.0f} ms, moderate below {MODERATE_MS:.0f} ms), "
            f"{naive.cost.cpu_per_1000 / chosen.cost.cpu_per_1000:.1f} x less CPU than the naive "
            f"loader; with {step} ms a step the accelerator is busy "
            f"{100 * chosen.stalls[step].utilisation:.1f} % of the time "
            f"(naive: {100 * naive.stalls[step].utilisation:.1f} %)."
        )

    def __str__(self) -> str:
        steps = list(self.loaders[0].stalls)
        header = ["loader", "samples/s", "CPU-s / 1000", "ms a batch"]
        header += [f"busy at {step} ms" for step in steps] + ["p99 wait, ms", "memory, MB"]
        rows = [_row(loader, steps) for loader in self.loaders]
        return "\n".join(
            (
                f"{self.corpus}: {self.utterances:,} utterances, {self.hours:.2f} h, stored as "
                f"{self.dtype}, batches of {self.batch_size}, median of {self.rounds} rounds",
                f"machine: {self.machine}",
                timing.table(header, rows),
                "busy: compute / (compute + wait) of a simulated accelerator; p99 wait: at "
                f"{steps[0]} ms; memory: what opening the cache adds; naive: mel only; on the "
                "device: without a GPU the CPU's own memory stands in for it",
                self.verdict,
            )
        )


def bench_data(
    config: XTTSConfig,
    *,
    batches: int = 60,
    rounds: int = 3,
    step_ms: Sequence[int] = STEP_MS,
    progress: Progress | None = None,
) -> DataBench:
    """Measure how the corpus of a configuration is loaded; what its cache lacks is prepared first.

    Every loader delivers the same utterances. Computing features at runtime is slow, so that it
    is measured on fewer batches.
    """
    split = _prepared_split(config, progress)
    plan = _long_plan(split, config, batches)
    with tempfile.TemporaryDirectory(prefix="myxtts-bench-") as folder:
        loaders = _loaders(split, plan, config.data, Path(folder))
        loaders += _resident(split, config, batches)
        costs = timing.interleaved({load.name: load.measure for load in loaders}, rounds)
        results = tuple(
            LoaderResult(
                load.name,
                timing.median_cost(costs[load.name]),
                {step: timing.simulate(load.make, step / 1e3) for step in step_ms},
                load.megabytes,
            )
            for load in loaders
        )
    spec = split.location.settings.spec
    return DataBench(
        corpus=str(config.data.dataset_path),
        utterances=len(split),
        hours=float(split.cache.mel_lengths.sum()) * spec.hop_length / spec.sample_rate / 3600,
        dtype=split.location.settings.dtype,
        batch_size=config.data.batch_size,
        chosen="cached, native" if config.data.use_tf_native_loading else "cached, host",
        rounds=rounds,
        loaders=results,
        machine=timing.describe_machine(),
    )


@dataclass(frozen=True)
class _Loader:
    name: str
    make: Callable[[], Iterable]
    utterances: int
    megabytes: float = 0.0

    def measure(self) -> Cost:
        return timing.measure(self.make, self.utterances)


def _prepared_split(config: XTTSConfig, progress: Progress | None) -> Split:
    """Every utterance of the corpus whose features could be stored, opened."""
    corpus, _ = read_corpora(config.data)
    tokenizer = build_tokenizer([corpus], config.data)
    location = locate_cache(corpus.root, config.data, tokenizer)
    prepare(
        corpus.utterances,
        location,
        workers=config.data.num_workers,
        verify=config.data.cache_verification,
        progress=progress,
    )
    filled = XTTSConfig(data=config.data, preprocessing_mode="auto")
    opener = ModeOpener(filled, tokenizer, [corpus], progress, SilentProfiler())
    split = opener.open(corpus.utterances, corpus.root, "benchmark")
    split = split.keep(split.cache.is_cached, ())
    if len(split) < 2:
        raise UserError(
            f"{config.data.dataset_path} has {len(split)} usable utterances: too few to measure; "
            "`myxtts data check` says what was dropped and why"
        )
    return split


def _long_plan(split: Split, config: XTTSConfig, batches: int) -> BatchPlan:
    """As many batches as wanted, over several epochs; at least three, to have waits to measure."""
    options, plans = batch_options(config), []
    while sum(map(len, plans)) < max(3, batches):
        plans.append(split.plan(options, epoch=len(plans)))
    shifts = np.cumsum([0] + [len(plan.order) for plan in plans])
    ends = [plan.bounds[1:] + shift for plan, shift in zip(plans, shifts, strict=False)]
    whole = BatchPlan(
        np.concatenate([plan.order for plan in plans]),
        np.concatenate([[0], *ends]),
        np.concatenate([plan.frames for plan in plans]),
        np.concatenate([plan.tokens for plan in plans]),
    )
    return timing.head(whole, max(3, batches))


def _loaders(split: Split, plan: BatchPlan, data: DataConfig, folder: Path) -> list[_Loader]:
    positions = timing.planned(plan).tolist()
    files = timing.write_npy_files(split.cache, sorted(set(positions)), folder)
    paths = [files[position] for position in positions]
    naive = partial(timing.naive_batches, paths, data.batch_size)
    cached = [_cached(name, split, plan, data) for name in TOGGLES]
    main, toggles = cached[:2], cached[2:]
    return [*main, _runtime(split, plan, data), _Loader(NAIVE, naive, len(paths)), *toggles]


def _cached(name: str, split: Split, plan: BatchPlan, data: DataConfig) -> _Loader:
    """The cache opened and read with some switches turned, and the others on."""
    from myxtts.data.batches import graph_reader

    changed = XTTSConfig(data=data, **(_PLAIN | TOGGLES[name])).data
    before = timing.anonymous_megabytes()
    cache = open_stores(split.location, changed, keys_of(split.utterances))
    grown = timing.anonymous_megabytes() - before
    options = graph_reader.reader_options(changed)
    make = partial(graph_reader.cached_batches, cache, plan, options)
    return _Loader(name, make, len(timing.planned(plan)), max(0.0, grown))


def _resident(split: Split, config: XTTSConfig, batches: int) -> list[_Loader]:
    """The cache on the device, where there is room for it; without a GPU a stand-in's."""
    before = timing.anonymous_megabytes()
    residence = resident_loader.copied(split.cache, config.data.cache_on_device_share)
    if residence is None:  # the log says why
        return []
    grown = max(0.0, timing.anonymous_megabytes() - before)
    found = []
    for name, steps in RESIDENT.items():
        plan = _long_plan(split, config.replace(steps_per_call=steps), batches)
        calls = resident_loader.calls_of(plan, steps)
        make = resident_loader.ResidentLoader(residence, split.cache, plan, calls)
        found.append(_Loader(name, make, len(timing.planned(plan)), grown))
    return found


def _runtime(split: Split, plan: BatchPlan, data: DataConfig) -> _Loader:
    from myxtts.data.batches import graph_reader, runtime_reader

    short = timing.head(plan, max(3, len(plan) // 10))
    settings, options = split.location.settings, graph_reader.reader_options(data)
    make = partial(runtime_reader.runtime_batches, split.cache, short, settings, options)
    return _Loader("runtime", make, len(timing.planned(short)))


def _row(loader: LoaderResult, steps: Sequence[int]) -> tuple[str, ...]:
    return (
        loader.name,
        f"{loader.cost.samples_per_second:,.0f}",
        f"{loader.cost.cpu_per_1000:.3f}",
        f"{loader.cost.ms_per_batch:.2f}",
        *(f"{100 * loader.stalls[step].utilisation:.1f} %" for step in steps),
        f"{loader.stalls[steps[0]].p99_ms:.1f}",
        f"{loader.megabytes:,.0f}",
    )
