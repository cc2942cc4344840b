"""The step of one worker, measured alone: what is fixed, what each micro-batch adds, and saving.

On one core the CPU time is that of all the work, whatever else the machine does. Several threads
spin while they wait for one another, which is CPU time and no work.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from myxtts.bench import timing
from myxtts.bench.timing import Cost
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.parts import Share, SharedPlan
from myxtts.data.batches.plan import BatchPlan, plan_epoch
from myxtts.data.batches.training_data import as_tensor, batch_options
from myxtts.data.store.packed_cache import PackedCache, open_cache
from myxtts.data.store.store import Store

# Without a GPU a step takes as long as its utterances together: some stand for many.
LARGEST_PART = 8
PARTS = 4  # steps of one part and of so many are compared
SECONDS = 8.0  # of steps, unless these are too slow
LEAST_ROUNDS, MOST_ROUNDS = 5, 9


@dataclass(frozen=True)
class Sample:
    """Stored utterances to measure with."""

    features: Store
    tokens: Store
    vocab_size: int


@dataclass(frozen=True)
class Measured:
    """What one process measured with some threads, in seconds."""

    one_part: float  # a step
    all_parts: float
    wall: float  # a step of all parts, next to whatever else the machine does
    utterances: float  # of a part
    evaluate: float  # per utterance
    save: float
    reader_cpu: float  # per utterance
    shapes: tuple[tuple[int, ...], ...]  # of the gradients
    frames: float  # of an utterance, on average
    is_on_cpu: bool

    @property
    def line(self) -> tuple[float, float]:
        """The fixed seconds of a step, and those of each part."""
        part = max(0.0, self.all_parts - self.one_part) / (PARTS - 1)
        return max(0.0, self.one_part - part), part


def measure_step(
    config: XTTSConfig, sample: Sample, part_utterances: int, threads: int
) -> Measured:
    """Time the steps of a worker that has one part of each batch, and of one that has several.

    Call it in a new process: it stays on as many cores as it has threads, and TensorFlow reads
    their number once.
    """
    os.environ |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3"}
    from myxtts import runtime
    from myxtts.checkpoints import save_state, variables_of
    from myxtts.models.xtts import build_xtts
    from myxtts.training.losses import XTTSLoss
    from myxtts.training.optimizer import build_optimizer
    from myxtts.training.steps import batch_signature, make_eval_step

    has_gpu = bool(runtime.gpus())
    is_on_one_core = not has_gpu and _stay_on_cores(threads) and threads == 1
    seconds = _cpu_seconds if is_on_one_core else _wall_seconds
    state = runtime.configure(config)
    cache = open_cache(sample.features, sample.tokens)
    largest = part_utterances if has_gpu else LARGEST_PART
    size = max(1, min(part_utterances, largest, len(cache) // PARTS))
    batches = _batches(config, cache, size)
    speakers, languages = len(cache.speakers), len(cache.languages)
    spec = config.data.audio_spec
    model = build_xtts(config.model, spec, sample.vocab_size, languages, speakers)
    optimizer = build_optimizer(config.training, total_steps=10_000)
    loss = XTTSLoss.from_config(config)
    compiling = {"graph": not state.eager, "xla": state.xla}
    signature = batch_signature(batches[0][1], config.data.n_mels)
    computing = {**compiling, "convolutions": state.convolutions}
    step = _parts_step(config, model, optimizer, loss, signature, computing)
    one, every = _rounds(step, batches)
    whole = {name: value for name, value in batches[0][1].items() if name != "part"}
    signature.pop("part")
    evaluate = _evaluate(make_eval_step(model, loss, signature, **compiling), whole)
    with tempfile.TemporaryDirectory(prefix="myxtts-simulate-") as folder:
        began = time.perf_counter()
        save_state(folder, 1, variables_of(model, optimizer), {})
        save = time.perf_counter() - began
    return Measured(
        seconds(one),
        seconds(every),
        _wall_seconds(every),
        size,
        seconds(evaluate) / len(whole["index"]),
        save,
        _reader_cpu(config, cache, size),
        tuple(tuple(variable.shape) for variable in model.trainable_variables),
        float(cache.mel_lengths.mean()),
        not step.device,
    )


def _stay_on_cores(count: int) -> bool:
    """Have all threads to come share so many cores, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):  # absent on macOS
        return False
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
    return True


def _parts_step(config: XTTSConfig, model, optimizer, loss, signature, computing):
    from myxtts.cluster.replicas import ALONE
    from myxtts.training.adaptive_weights import AdaptiveWeights
    from myxtts.training.part_steps import make_parts_step

    training = config.training
    return make_parts_step(
        model,
        optimizer,
        loss,
        signature,
        ALONE,
        Share(PARTS),  # parts without rows cost nothing, so that one step serves both shares
        seed=training.seed,
        prior_steps=training.alignment_prior_steps,
        balance=AdaptiveWeights(loss.weights) if training.adaptive_loss_weights else None,
        **computing,
    )


def _batches(config: XTTSConfig, cache: PackedCache, size: int) -> list[tuple[dict, dict]]:
    """Batches of short, median and long utterances: one part of each, and all parts."""
    options = replace(batch_options(config), batch_size=PARTS * size, max_frames=0)
    plan = plan_epoch(cache.text_lengths, cache.mel_lengths, options, 1, cache.speaker)
    full = np.flatnonzero(plan.sizes == plan.sizes.max())
    by_length = full[np.argsort(plan.frames[full], kind="stable")]
    chosen = {int(by_length[len(by_length) * quarter // 4]) for quarter in (1, 2, 3)}
    take = partial(_take, config, cache, plan)
    return [(take(row, Share(PARTS, 0, PARTS)), take(row, Share(PARTS))) for row in sorted(chosen)]


def _take(config: XTTSConfig, cache: PackedCache, plan: BatchPlan, row: int, share: Share) -> dict:
    """What a worker gets of one planned batch."""
    from myxtts.data.batches.graph_reader import cached_batches, reader_options

    shared = SharedPlan(plan, share, config.data.utterances_per_speaker)
    own = timing.head(shared.plan.skip(row), 1)
    (batch,) = cached_batches(cache, own, reader_options(config.data))
    return batch | {"part": as_tensor(shared.parts_of(row, np.asarray(batch["index"])))}


def _rounds(step, batches: list[tuple[dict, dict]]) -> tuple[list[Cost], list[Cost]]:
    """Time both kinds of steps in turn, after one each that traces and compiles."""

    def take(kind: int) -> Cost:
        return timing.measure(
            lambda: (step.read(step(pair[kind], 1)) for pair in batches), len(batches)
        )

    variants: dict[str, Callable[[], Cost]] = {"one": partial(take, 0), "all": partial(take, 1)}
    timing.interleaved(variants, 1)
    found: dict[str, list[Cost]] = {"one": [], "all": []}
    began = time.perf_counter()
    while len(found["all"]) < MOST_ROUNDS and (
        len(found["all"]) < LEAST_ROUNDS or time.perf_counter() - began < SECONDS
    ):
        for name, (cost,) in timing.interleaved(variants, 1).items():
            found[name].append(cost)
    return found["one"], found["all"]


def _wall_seconds(costs: list[Cost]) -> float:
    """The seconds of a step in the median round."""
    return statistics.median(cost.wall_seconds / cost.batches for cost in costs)


def _cpu_seconds(costs: list[Cost]) -> float:
    return statistics.median(cost.cpu_seconds / cost.batches for cost in costs)


def _evaluate(step, batch: dict) -> list[Cost]:
    step.read(step(batch, 1))
    return [timing.measure(lambda: [step.read(step(batch, 1))], 1) for _ in range(LEAST_ROUNDS)]


def _reader_cpu(config: XTTSConfig, cache: PackedCache, size: int) -> float:
    """CPU seconds per utterance of making the batches of one worker."""
    from myxtts.data.batches.graph_reader import cached_batches, reader_options

    options = replace(batch_options(config), batch_size=size, max_frames=0)
    plan = plan_epoch(cache.text_lengths, cache.mel_lengths, options, 1, cache.speaker)
    make = partial(cached_batches, cache, plan, reader_options(config.data))
    timing.measure(make, len(cache))  # tracing
    costs = [timing.measure(make, len(cache)) for _ in range(LEAST_ROUNDS)]
    return timing.median_cost(costs).cpu_per_1000 / 1e3
