"""Whether the verdict names what holds a run back: seven faults injected live, and a healthy run.

    python benchmarks/verdict.py [--work FOLDER] [--steps 40] [--step-ms 20] [FAULT ...]

Each fault is profiled as `myxtts profile` does it, on the built-in corpus and an accelerator that
is simulated but for two faults, and what is said of it is printed. Then the change that the verdict
proposes is really made, and the gain that it predicts is compared with the gain that comes of it.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from opening import run_in_work

from myxtts.bench.timing import Target, table
from myxtts.monitoring import timers
from myxtts.monitoring.verdict import COMPILATION, DEVICE, HEALTHY, HOST, LOGGING

CLAUSES = 240
BATCH_SIZE = 16
# How far a prediction may be from what the change brings.
TOLERANCE = 1.3


def main() -> None:
    run_in_work(run, _parse())


@dataclass(frozen=True)
class Fault:
    """Something that slows a run down, the stage that is to be named, and its remedy."""

    name: str
    stage: str
    settings: dict = field(default_factory=dict)
    mended: dict = field(default_factory=dict)  # the settings after the proposed change
    injected: Callable = nullcontext  # stays after the change
    wrap: Callable | None = None  # around the batches; gone after the change
    hook_seconds: float = 0.0
    make_step: Callable | None = None
    steps: int = 0  # others than asked for
    mended_steps: int = 0


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    corpus = _corpus(work)
    bars, rows = [], []
    for fault in faults(asked.step_ms):
        if asked.faults and fault.name not in asked.faults:
            continue
        profile = _profile(fault, corpus, asked, is_mended=False)
        verdict = profile.verdict
        print(f"\n{fault.name}\n  {verdict}", flush=True)
        gain = 1.0
        if not verdict.is_healthy:
            after = _profile(fault, corpus, asked, is_mended=True)
            gain = profile.evidence.wall_ms / after.evidence.wall_ms
            print(f"  after the change, {gain:.2f} x as fast: {after.verdict}", flush=True)
        rows.append(
            (
                fault.name,
                fault.stage,
                verdict.stage,
                f"{100 * verdict.share:.1f} %",
                f"{verdict.gain:.2f}",
                f"{gain:.2f}",
            )
        )
        is_named = verdict.stage == fault.stage
        named = Target(f"{fault.name}: named {fault.stage}", is_named, 1, at_most=False, unit="")
        ratio = max(verdict.gain / gain, gain / verdict.gain)
        predicted = Target(f"{fault.name}: prediction over outcome", ratio, TOLERANCE)
        bars += [named] if verdict.is_healthy else [named, predicted]
    head = ("fault", "injected at", "named", "share", "predicted", "came of it")
    print("\n" + table(head, rows) + "\n" + "\n".join(map(str, bars)))
    return bars


def faults(step_ms: float) -> list[Fault]:
    """The healthy run and the seven faults; the device takes so long where it is simulated."""
    cached = {"preprocessing_mode": "precompute"}
    from_disk = {**cached, "use_tf_native_loading": False, "enable_memory_mapping": False}
    # Another trimming is another cache, which the budget keeps empty.
    computed = {"preprocessing_mode": "auto", "cache_budget_gb": 1e-6, "mel_floor": 2e-5}
    return [
        Fault("undisturbed", HEALTHY, cached),
        Fault(
            "slowed disk",
            timers.READ,
            from_disk,
            mended={**from_disk, "memory_cache": True},
            injected=_slow_disk,
        ),
        Fault(
            "slowed feature function",
            timers.FEATURES,
            computed,
            mended=cached,
            injected=_slow_features,
            steps=20,
        ),
        Fault("tokenizer in the hot path", timers.TOKENS, cached, cached, wrap=_tokenised),
        Fault(
            "eager execution",
            HOST,
            {**cached, "enable_eager_debug": True},
            mended=cached,
            make_step=_real_step,
            steps=6,
        ),
        Fault(
            "a new shape every step",
            COMPILATION,
            {**cached, "pad_to_multiple": 1, "batch_size": 4},
            mended={**cached, "pad_to_multiple": 64, "batch_size": 4},
            make_step=_compiled_step,
            mended_steps=400,  # the few shapes that are left are compiled once in a run
        ),
        Fault("slow logging hook", LOGGING, cached, cached, hook_seconds=1.5 * step_ms / 1e3),
        Fault(
            "slow device",
            DEVICE,
            cached,
            cached,
            make_step=_throttled_step,
            steps=120,
        ),
    ]


def _profile(fault: Fault, corpus: Path, asked: argparse.Namespace, is_mended: bool):
    """What `myxtts profile` would find, with the fault or after the change."""
    from myxtts.bench import profiling
    from myxtts.config.presets import create_default_config
    from myxtts.training.loop import Hook
    from myxtts.training.trainer import XTTSTrainer

    settings = fault.mended if is_mended else fault.settings
    common = {"model_size": "tiny", "batch_size": BATCH_SIZE, "checkpoint_dir": str(corpus / "run")}
    trainer = XTTSTrainer(create_default_config(str(corpus), **{**common, **settings}))
    trainer.prepare_datasets()
    data = trainer.data
    batch = profiling.middling_batch(data)
    make_step = fault.make_step or _simulated_step
    step = make_step(trainer, batch, asked.step_ms, is_mended)

    class SlowHook(Hook):
        """Writes a log as if to a far disk; after the change only every twentieth step."""

        def after_step(self, record):
            if not is_mended or record.step % 20 == 0:
                time.sleep(fault.hook_seconds)

    make = data.stream
    if fault.wrap and not is_mended:
        make = lambda: fault.wrap(data)  # noqa: E731
    hooks = [SlowHook()] if fault.hook_seconds else []
    feeds = {profiling.CONFIGURED: profiling.Feed(make, hooks)}
    data.refresh()
    if data.train.mode != "runtime" and data.train.is_complete:
        warm = profiling.reopened(data, memory_cache=True)
        make_warm = (lambda: fault.wrap(warm)) if fault.wrap and not is_mended else warm.stream
        feeds[profiling.IN_MEMORY] = profiling.Feed(make_warm)
    if step.is_eager:
        feeds[profiling.GRAPH] = profiling.Feed(
            lambda: profiling.repeated(batch),
            make_step=lambda: profiling.as_graph(trainer.config, data, batch),
        )
    steps = (is_mended and fault.mended_steps) or fault.steps or asked.steps
    with fault.injected():
        return profiling.compare(step, feeds, batch, steps)


# The faults


@contextmanager
def _slow_disk() -> Iterator[None]:
    """Every read of the cache's files takes a millisecond more; memory is as fast as ever."""
    from myxtts.data.store import mmap

    read = mmap.read_range

    def slow(*arguments):
        time.sleep(0.001)
        return read(*arguments)

    with mock.patch.object(mmap, "read_range", slow):
        yield


@contextmanager
def _slow_features() -> Iterator[None]:
    """Every recording's mel takes 20 milliseconds more."""
    from myxtts.data.features import features

    compute = features.mel_and_energy

    def slow(*arguments):
        time.sleep(0.02)
        return compute(*arguments)

    with mock.patch.object(features, "mel_and_energy", slow):
        yield


def _tokenised(data) -> Iterator:
    """Every batch's texts are encoded again, as a loader does that stores only mels."""
    texts = [one.text for one in data.train.utterances]
    for epoch, number, batch in data.stream():
        for position in batch["index"].numpy().tolist():
            for _ in range(20):
                data.tokenizer.encode(texts[position], "en")
        yield epoch, number, batch


def _simulated_step(trainer, batch, step_ms: float, is_mended: bool):
    from myxtts.bench.simulated import SimulatedStep

    return SimulatedStep(step_ms)


def _throttled_step(trainer, batch, step_ms: float, is_mended: bool):
    """A device that takes three times as long after half of the steps of the run itself."""
    from myxtts.bench.simulated import SimulatedStep

    class Throttled(SimulatedStep):
        # The trials with batches in memory come first, with as many steps each.
        slow_from = 2 * (120 + 6) + 66

        def __call__(self, batch, number):
            self.taken = getattr(self, "taken", 0) + 1
            is_hot = self.taken > self.slow_from and not is_mended
            self.step_seconds = (3 if is_hot else 1) * step_ms / 1e3
            return super().__call__(batch, number)

    return Throttled(step_ms)


def _real_step(trainer, batch, step_ms: float, is_mended: bool):
    return trainer.build_step(batch)


def _compiled_step(trainer, batch, step_ms: float, is_mended: bool):
    """A small network that XLA compiles anew for each shape it meets."""
    import keras
    import tensorflow as tf

    from myxtts.training.steps import batch_signature, compile_step

    layer = keras.layers.Dense(256, activation="gelu")
    layer.build((None, None, 80))

    def step(batch, number):
        hidden = layer(tf.cast(batch["mel"], tf.float32))
        return {"loss": tf.reduce_mean(tf.matmul(hidden, hidden, transpose_b=True))}

    return compile_step(step, batch_signature(batch, 80), graph=True, xla=True)


def _corpus(work: Path) -> Path:
    from myxtts.demo_corpus.corpus import make_demo

    folder = work / "verdict_corpus"
    if not (folder / "metadata.csv").exists():
        make_demo(str(folder), speakers=1, clauses=CLAUSES)
    return folder


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="(default: all)")
    parser.add_argument("--work", type=Path, help="keep the corpus here, and reuse it")
    parser.add_argument("--steps", type=int, default=40, help="of each short run")
    parser.add_argument("--step-ms", type=float, default=20.0, help="of the simulated device")
    return parser.parse_args()


if __name__ == "__main__":
    main()
