"""What a training step costs: graph, eager and XLA, its alignment and its data; and speaking.

    python benchmarks/training_step.py [--work FOLDER] [--rounds 5] [--xla-shapes 2] [--steps 60]

Everything is measured at size tiny, in one run, as ratios of what ran side by side. Steps take
synthetic batches; waiting for data is measured over a real run on the built-in corpus, which is
kept in --work. XLA's compilations are counted by the modules that XLA itself dumps, one for each.
"""

import argparse
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.timing import Cost, Target
from myxtts.config.config import XTTSConfig
from myxtts.config.presets import create_default_config

VOCABULARY, SPEAKERS, FRAMES_PER_TOKEN = 64, 2, 7
# Utterances and frames: about what the built-in corpus gives at this size, and something larger.
BATCH, LARGE_BATCH = (8, 448), (16, 600)
OTHER_BATCHES = ((2, 64), (3, 64), (2, 96), (4, 128), (2, 160), (1, 200), (3, 224), (2, 256))
SENTENCE_FRAMES = 560  # 6.5 s
CLAUSES = 80  # of each of the corpus's voices


def main() -> None:
    run_in_work(run, _parse())


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Measure each part in a process of its own, print it, and return the bars."""
    bars = step_bars(asked.rounds)
    bars += xla_bars(asked.xla_shapes)
    bars += synthesis_bars(asked.rounds)
    return bars + waiting_bars(work, asked.steps)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the corpus here, and reuse it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--xla-shapes", type=int, default=2, help="shapes to compile by XLA")
    parser.add_argument("--steps", type=int, default=60, help="steps of the real run")
    return parser.parse_args()


# Graph against eager, the share of the alignment, and the first step


@dataclass(frozen=True)
class Steps:
    """What a process that only makes steps has measured; costs are by kind and batch."""

    trace: Cost
    first: Cost
    costs: dict[tuple[str, tuple[int, int]], list[Cost]]
    traces: int


GRAPH, EAGER, SEARCH = "graph", "eager", "the alignment search alone, as a graph"
GRAPH_APART, EAGER_APART = "graph, alignment apart", "eager, alignment apart"


def step_bars(rounds: int) -> list[Target]:
    """What a step costs as a graph and eagerly, with the search for the alignment and without."""
    found = timing.in_fresh_process(measure_steps, rounds)
    costs = found.costs
    print(f"\nSteps; medians of {rounds} rounds")
    rows = [
        (
            "{} x {} frames: {}".format(*batch, kind),
            f"{_median(costs[kind, batch], _cpu_ms):.1f}",
            f"{_median(costs[kind, batch], _wall_ms):.1f}",
            f"{_ratio(costs[kind, batch], costs[GRAPH, batch], _cpu_ms):.3f}",
            f"{_ratio(costs[kind, batch], costs[GRAPH, batch], _wall_ms):.3f}",
        )
        for kind, batch in costs
    ]
    header = ("batch and step", "CPU, ms", "wall, ms", "x graph, CPU", "x graph, wall")
    print(timing.table(header, rows))
    print(
        f"the first step is apart: tracing {_seconds(found.trace)}, a run {_seconds(found.first)}"
    )
    apart, whole = (
        _ratio(costs[eager, BATCH], costs[graph, BATCH], _wall_ms)
        for eager, graph in ((EAGER_APART, GRAPH_APART), (EAGER, GRAPH))
    )
    share = 100 * _ratio(costs[SEARCH, LARGE_BATCH], costs[GRAPH, LARGE_BATCH], _cpu_ms)
    what = "{} x {} frames".format(*LARGE_BATCH)
    return _shown(
        Target("eager over graph, the alignment apart", apart, 3, at_most=False),
        Target("eager over graph, with the alignment", whole, 3, at_most=False),
        Target(f"the alignment search's share of a step of {what}", share, 5, unit="%"),
        Target(f"traces for {2 + len(OTHER_BATCHES)} shapes without XLA", found.traces, 1, unit=""),
    )


def measure_steps(rounds: int) -> Steps:
    """Make steps of all kinds in turn, all on one model."""
    batch, make_step = make_batch(*BATCH), step_maker()
    graph, graph_apart, eager = make_step(), make_step(), make_step(graph=False)
    trace = _cost(graph.function.get_concrete_function)
    first = _cost(partial(graph, batch, 1))
    with _alignment_apart():
        graph_apart(batch, 1)  # traced here, it keeps what it met

    def eager_apart(batch, number):
        with _alignment_apart():
            return eager(batch, number)

    steps = {GRAPH_APART: graph_apart, EAGER_APART: eager_apart, GRAPH: graph, EAGER: eager}
    costs = {}
    for shape in (BATCH, LARGE_BATCH):
        batch = make_batch(*shape)
        calls = {kind: partial(step, batch, 1) for kind, step in steps.items()}
        calls[SEARCH] = alignment_search(batch)
        variants = {(kind, shape): partial(_cost, call, 2) for kind, call in calls.items()}
        timing.interleaved(variants, 1)  # a graph's first run of a shape is not like the others
        costs |= timing.interleaved(variants, rounds)
    for shape in OTHER_BATCHES:
        graph(make_batch(*shape), 1)
    return Steps(trace, first, costs, graph.function.experimental_get_tracing_count())


def alignment_search(batch: dict) -> Callable:
    """The search as a step of this batch makes it."""
    import tensorflow as tf

    from myxtts.models import alignment

    scores = tf.random.normal([*batch["tokens"].shape, batch["mel"].shape[1]])
    search = tf.function(alignment.monotonic_alignment)
    return partial(search, scores, batch["text_lengths"], batch["mel_lengths"])


@contextmanager
def _alignment_apart() -> Iterator[None]:
    """Deal the frames to the tokens evenly, which costs next to nothing, instead of searching."""
    from myxtts.models import alignment

    with mock.patch.object(alignment, "monotonic_alignment", even_alignment):
        yield


def even_alignment(scores, text_lengths, mel_lengths):
    """A monotonic and complete alignment that no score has a say in."""
    import tensorflow as tf

    frame = tf.range(tf.shape(scores)[2])[None, :]
    tokens = frame * text_lengths[:, None] // mel_lengths[:, None]
    return tf.minimum(tokens, text_lengths[:, None] - 1)


# XLA


@dataclass(frozen=True)
class Compilation:
    """The first and the second step of a shape."""

    shape: tuple[int, int]
    first: Cost
    second: Cost

    @property
    def cpu_seconds(self) -> float:
        return self.first.cpu_seconds - self.second.cpu_seconds


def xla_bars(count: int) -> list[Target]:
    """How often XLA compiles where a few shapes come again and again, and what that takes."""
    if not count:
        return []
    with tempfile.TemporaryDirectory() as dump:
        flags = f"--xla_dump_to={dump} --xla_dump_hlo_as_text"
        with mock.patch.dict(os.environ, XLA_FLAGS=flags):
            found, traces = timing.in_fresh_process(compile_with_xla, count)
        # XLA writes each module that it is given to compile, and gives each its own number.
        modules = len(list(Path(dump).glob("*_packed_*.before_optimizations.txt")))
    print("\nXLA, compiling included; it dumps its modules meanwhile, which takes time as well")
    rows = [
        (
            "{} x {} frames".format(*one.shape),
            f"{one.cpu_seconds:.1f}",
            f"{one.first.wall_seconds:.1f}",
            f"{1e3 * one.second.cpu_seconds:.0f}",
        )
        for one in found
    ]
    header = ("shape", "compiling, CPU-s", "first step, s", "then a step, CPU-ms")
    print(timing.table(header, rows))
    return _shown(
        Target(f"compilations by XLA for {count} shapes", modules, count, unit=""),
        Target(f"traces for {count} shapes with XLA", traces, 1, unit=""),
    )


def compile_with_xla(count: int) -> tuple[list[Compilation], int]:
    """Take each shape twice, and all of them once more at the end."""
    step = step_maker()(xla=True)
    step.function.get_concrete_function()
    batches = [make_batch(*shape) for shape in OTHER_BATCHES[:count]]
    found = [
        Compilation(shape, *(_cost(partial(step, batch, 1)) for _ in range(2)))
        for shape, batch in zip(OTHER_BATCHES, batches, strict=False)
    ]
    for batch in batches:
        step(batch, 1)
    return found, step.function.experimental_get_tracing_count()


# Speaking


def synthesis_bars(rounds: int) -> list[Target]:
    """Seconds of speech per CPU-second, from tokens to mel, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the child inherits it, and so do all of its threads
    try:
        found = timing.in_fresh_process(measure_synthesis, rounds)
    finally:
        os.sched_setaffinity(0, cores)
    print(f"\nSpeaking on one core, without vocoder; medians of {rounds} rounds")
    rows = [(f"{size} at a time", f"{seconds:.1f}", f"{rate:.0f}") for size, seconds, rate in found]
    print(timing.table(("sentences", "speech, s", "x real time"), rows))
    what = "seconds of speech per CPU-second, a sentence at a time"
    return _shown(Target(what, found[0][2], 100, at_most=False))


def measure_synthesis(rounds: int) -> list[tuple[int, float, float]]:
    """Say sentences of usual length, and return how many at a time, seconds, and speed."""
    config = tiny_config()
    model = build_model(config)
    # An untrained model says tokens of any length; this one speaks about as fast as people do.
    out = model.prosody.out
    out.kernel.assign(np.zeros(out.kernel.shape))
    out.bias.assign([math.log(FRAMES_PER_TOKEN), 0.0, 0.0])
    found = []
    for size in (1, 8):
        inputs = sentences(size, config.model.speaker_embedding_dim)
        said = model.synthesize(*inputs)
        spec = config.data.audio_spec
        seconds = int(np.sum(said["mel_lengths"])) * spec.hop_length / spec.sample_rate
        costs = [_cost(partial(model.synthesize, *inputs), 5) for _ in range(rounds)]
        spent = statistics.median(cost.cpu_seconds / cost.batches for cost in costs)
        found.append((size, seconds, seconds / spent))
    return found


def sentences(size: int, voice_dim: int) -> tuple:
    """What `synthesize` takes."""
    import tensorflow as tf

    tokens = SENTENCE_FRAMES // FRAMES_PER_TOKEN
    return (
        tf.random.uniform([size, tokens], 1, VOCABULARY, tf.int32),
        tf.fill([size], tokens),
        tf.zeros([size], tf.int32),
        tf.random.normal([size, voice_dim]),
        tf.ones([size]),
    )


# Waiting for data


def waiting_bars(work: Path, steps: int) -> list[Target]:
    """The share of a step that a real run waits for its batch, as the trainer reports it."""
    from myxtts.monitoring.verdict import performance_report

    data_ms, compute_ms, found = timing.in_fresh_process(train, work, steps)
    print("\nTraining on the built-in corpus\n" + performance_report(data_ms, compute_ms, found))
    share = 100 * found.wait_ms / found.wall_ms
    return _shown(Target("waiting for data, share of the step", share, 2, unit="%"))


def train(work: Path, steps: int) -> tuple[list[float], list[float]]:
    """Train a little, and return the trainer's own times of each step but the first."""
    from myxtts.demo_corpus.corpus import make_demo
    from myxtts.training.trainer import XTTSTrainer

    corpus = make_demo(work / "corpus", speakers=SPEAKERS, clauses=CLAUSES)
    with tempfile.TemporaryDirectory() as folder:
        config = tiny_config(
            str(corpus), text_units="phonemes", max_steps=steps, checkpoint_dir=folder
        )
        trainer = XTTSTrainer(config)
        trainer.train()
    recorder = trainer.performance.recorder
    return list(recorder.series["data"]), list(recorder.series["compute"]), recorder.evidence()


# The model, its batches, and timing


def step_maker() -> Callable:
    """What makes steps, graph or eager or XLA, all of the same model and optimizer."""
    from myxtts.training.losses import XTTSLoss
    from myxtts.training.optimizer import build_optimizer
    from myxtts.training.steps import batch_signature, make_train_step

    config = tiny_config()
    return partial(
        make_train_step,
        build_model(config),
        build_optimizer(config.training, total_steps=1600),
        XTTSLoss.from_config(config),
        batch_signature(make_batch(*OTHER_BATCHES[0]), config.data.n_mels),
        seed=1,
        prior_steps=config.training.alignment_prior_steps,
    )


def build_model(config: XTTSConfig):
    from myxtts.models.xtts import build_xtts

    return build_xtts(config.model, config.data.audio_spec, VOCABULARY, 1, SPEAKERS)


def tiny_config(corpus: str = "unused", **settings) -> XTTSConfig:
    return create_default_config(corpus, model_size="tiny", **settings)


def make_batch(size: int, frames: int) -> dict:
    """Noise in the shape of what the readers deliver, the first utterance of so many frames."""
    import tensorflow as tf

    random = np.random.default_rng(frames)
    mel_lengths = random.integers(3 * frames // 4, frames + 1, size, np.int32)
    mel_lengths[0] = frames
    text_lengths = mel_lengths // FRAMES_PER_TOKEN
    tokens = int(text_lengths.max())
    is_frame = np.arange(frames) < mel_lengths[:, None]
    is_token = np.arange(tokens) < text_lengths[:, None]
    mel = random.normal(-5.5, 2.5, (size, frames, 80)) * is_frame[:, :, None]
    batch = {
        "tokens": random.integers(1, VOCABULARY, (size, tokens), np.int32) * is_token,
        "text_lengths": text_lengths,
        "mel": mel.astype(np.float16),
        "mel_lengths": mel_lengths,
        "energy": is_frame.astype(np.float32),
        "pitch": 150 * is_frame.astype(np.float32),
        "speaker": np.arange(size, dtype=np.int32) % SPEAKERS,
        "language": np.zeros(size, np.int32),
        "index": np.arange(size),
    }
    return {name: tf.constant(value) for name, value in batch.items()}


def _cost(call: Callable, count: int = 1) -> Cost:
    """What so many calls take; on a CPU a call has ended when it returns."""
    return timing.measure(lambda: (call() for _ in range(count)), count)


def _cpu_ms(cost: Cost) -> float:
    return 1e3 * cost.cpu_seconds / cost.batches


def _wall_ms(cost: Cost) -> float:
    return cost.ms_per_batch


def _median(costs: Sequence[Cost], of: Callable[[Cost], float]) -> float:
    return statistics.median(of(cost) for cost in costs)


def _ratio(costs: Sequence[Cost], reference: Sequence[Cost], of: Callable[[Cost], float]) -> float:
    """The median of the ratios of rounds that ran next to each other."""
    return statistics.median(of(a) / of(b) for a, b in zip(costs, reference, strict=True))


def _seconds(cost: Cost) -> str:
    return f"{cost.wall_seconds:.1f} s ({cost.cpu_seconds:.1f} CPU-s)"


def _shown(*bars: Target) -> list[Target]:
    for bar in bars:
        print(bar)
    return list(bars)


if __name__ == "__main__":
    main()
