"""Checks that the promises of fast loading hold on this machine."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from myxtts.bench.simulated import SimulatedStep
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.config.presets import create_default_config
from myxtts.errors import UserError
from myxtts.monitoring.console import columns
from myxtts.monitoring.evidence import Evidence, Setup
from myxtts.monitoring.gpus import GpuReader
from myxtts.monitoring.system import SystemSample, SystemSampler, gpu_percent
from myxtts.monitoring.verdict import diagnose

FAILED = 1  # exit code
# Where the machine is this full, and others take this much, low utilisation is not our fault.
FULL_PERCENT, OTHERS_PERCENT = 90.0, 25.0
RATE = 22050
RECORDINGS, BATCH_SIZE = 48, 8
STEP_MS, STEPS, TARGET_PERCENT = 20.0, 100, 70.0
GPU_MODEL, GPU_STEPS, INTERVAL = "normal", 200, 0.1
PYTHON_OPS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
WORDS = "amber bridge candle distant early forest garden hollow island lantern morning".split()


@dataclass(frozen=True)
class Check:
    """A promise and what was found of it; `holds` is None where it cannot be tried.

    A check is `disturbed` where other processes made it fail; `details` say what held it back.
    """

    what: str
    result: str
    holds: bool | None
    disturbed: bool = False
    details: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        if self.disturbed:
            return "inconclusive"
        return {True: "ok", False: "FAILED", None: "not here"}[self.holds]


def check_loading(settings: Path, folder: Path) -> Iterator[Check]:
    """Whether the switches in a settings file are in force, on a small corpus."""
    from myxtts.data.batches.graph_reader import cached_batches, cached_dataset, reader_options
    from myxtts.data.batches.training_data import TrainingData

    config, name = load_config(settings), settings.name
    switches = ("use_tf_native_loading", "prefetch_to_gpu", "optimize_cpu_gpu_overlap")
    off = [switch for switch in switches if not getattr(config.data, switch)]
    yield Check(f"{name} loads", f"off: {', '.join(off)}" if off else "all switches on", not off)
    yield Check(
        "features are made before the first step",
        config.data.preprocessing_mode,
        config.data.preprocessing_mode == "precompute",
    )

    data = TrainingData(_on_corpus(config, folder))
    options = reader_options(data.config.data)
    batches = data.train_batches()
    yield Check("native loading", f"{batches.reader} reader", batches.reader == "native")
    ahead = f"{options.prefetch} batches ahead"
    yield Check("prefetching", ahead, options.prefetch == config.data.prefetch_buffer_size > 0)
    yield _gpu_prefetch(options.device, batches)
    overlaps = _works_ahead(batches)
    yield Check("overlap", "a thread works ahead" if overlaps else "nothing works ahead", overlaps)

    cache, plan = data.train.cache, batches.plan
    calls = python_calls(cached_dataset(cache, plan, options))
    yield Check("calls of Python per utterance", f"{calls} in the graph", calls == 0)
    readers = (cached_batches(cache, plan, replace(options, native=n)) for n in (True, False))
    same = same_batches(*readers)
    result = f"{len(plan)} batches, {'the same bits' if same else 'which DIFFER'}"
    yield Check("the native and the host reader agree", result, same)


def check_utilisation(folder: Path) -> Iterator[Check]:
    """How busy an accelerator is kept: the GPU where there is one, else a simulated one."""
    from myxtts import runtime
    from myxtts.bench.profiling import Feed, run_trial
    from myxtts.data.batches.training_data import TrainingData

    config = _on_corpus(XTTSConfig(), folder)
    what = f"a simulated accelerator, {STEP_MS:g} ms a step"
    feed = Feed(TrainingData(config).stream)
    with SystemSampler(INTERVAL, gpus=GpuReader(None)) as sampler:
        trial = run_trial(what, feed, SimulatedStep(STEP_MS), STEPS)
    evidence = replace(trial.evidence, setup=Setup(mode="precompute"))
    check = reaches(what, 100 * evidence.utilisation)
    yield judged(check, list(sampler.samples), evidence)

    what = "GPU utilisation while training, by its driver"
    reader = GpuReader.open()
    reason = reader.reason or ("" if runtime.gpus() else "TensorFlow sees no GPU: `myxtts doctor`")
    if reason:
        yield Check(what, f"cannot be measured here: {reason}", None)
    else:
        samples, evidence = _while_training(config.data.dataset_path, folder, reader)
        yield judged(reaches(what, busy_percent(samples)), samples, evidence)
    reader.close()


def reaches(what: str, percent: float) -> Check:
    """Hold a utilisation against the target."""
    result = f"{percent:.1f} % (at least {TARGET_PERCENT:.0f} %)"
    return Check(what, result, percent >= TARGET_PERCENT)


def judged(check: Check, samples: Sequence[SystemSample], evidence: Evidence | None) -> Check:
    """A check that did not hold, with what held it back; inconclusive where others took the CPU."""
    if check.holds is not False:
        return check
    details = [f"verdict: {diagnose(evidence)}"] if evidence else []
    cpu, others = (_mean(samples, name) for name in ("cpu_percent", "others_percent"))
    is_disturbed = cpu >= FULL_PERCENT and others >= OTHERS_PERCENT
    if is_disturbed:
        details.insert(
            0,
            f"other processes took {others:.0f} % of this machine's CPU, which was {cpu:.0f} % "
            "busy: this says nothing about the loader; stop them, or check again later",
        )
    holds = None if is_disturbed else False
    return replace(check, holds=holds, disturbed=is_disturbed, details=tuple(details))


def _mean(samples: Sequence[SystemSample], name: str) -> float:
    """The mean of what was sampled, or 0 where it could not be."""
    found = [value for one in samples if (value := getattr(one, name)) is not None]
    return sum(found) / len(found) if found else 0.0


def busy_percent(samples: Sequence[SystemSample]) -> float:
    """How busy the busiest GPU was in the later half of the samples: the earlier one compiles."""
    percent = gpu_percent(samples[len(samples) // 2 :])
    if percent is None:
        raise UserError("the driver does not report how busy the GPU is: check on another one")
    return percent


def python_calls(dataset) -> int:
    """Return how many operations of a dataset's graph call Python."""
    import tensorflow as tf

    variant = tf.data.experimental.to_variant(dataset)
    graph = tf.compat.v1.GraphDef()
    # Calls of Python have state outside the graph. It is dropped here: the graph is not run.
    graph.ParseFromString(
        tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=1).numpy()
    )
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    return sum(node.op in PYTHON_OPS for node in nodes)


def same_batches(one: Iterable[dict], other: Iterable[dict]) -> bool:
    """Whether two readers deliver the same batches, bit by bit."""
    firsts, seconds = list(one), list(other)
    return len(firsts) == len(seconds) and all(map(_same, firsts, seconds))


def describe(checks: Sequence[Check]) -> str:
    """Return a table of all checks."""
    rows = [("check", "result", ""), *((one.what, one.result, one.verdict) for one in checks)]
    lines = [columns(rows), *(f"{one.what}: {detail}" for one in checks for detail in one.details)]
    failed = sum(one.holds is False for one in checks)
    inconclusive = sum(one.disturbed for one in checks)
    if failed or inconclusive:
        code = FAILED if failed else 0
        lines.append(f"{failed} failed, {inconclusive} inconclusive: exit code {code}")
    return "\n".join(lines)


def make_recordings(folder: Path, count: int = RECORDINGS) -> Path:
    """Write a small corpus of hummed signals: loading does not depend on what they say."""
    import soundfile

    (folder / "wavs").mkdir(parents=True)
    rng = np.random.default_rng(0)
    lines = []
    for number in range(count):
        time = np.arange(round(rng.uniform(0.8, 1.6) * RATE)) / RATE
        phase = 2 * np.pi * np.cumsum(120 * (1 + 0.1 * np.sin(3 * time))) / RATE
        hum = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 9))
        wave = 0.2 * hum * (0.6 - 0.4 * np.cos(20 * time)) + 0.002 * rng.standard_normal(len(time))
        soundfile.write(folder / "wavs" / f"hum-{number:03d}.wav", wave, RATE, subtype="PCM_16")
        text = " ".join(rng.choice(WORDS, 2)).capitalize() + "."
        lines.append(f"hum-{number:03d}|{text}|{text}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _on_corpus(config: XTTSConfig, folder: Path) -> XTTSConfig:
    """The same settings for a corpus of our own: small batches, all of them stored."""
    corpus = str(make_recordings(folder / "corpus"))
    return config.replace(
        dataset_path=corpus, batch_size=BATCH_SIZE, preprocessing_mode="precompute"
    )


def _gpu_prefetch(device: str, batches: Iterable[dict]) -> Check:
    what = "prefetching to the GPU"
    if not device:
        return Check(what, "inactive: no GPU", None)
    where = next(iter(batches))["mel"].device
    return Check(what, where, "GPU" in where)


def _works_ahead(batches: Iterable[dict]) -> bool:
    """Whether a thread makes batches while the step has one."""
    before = set(threading.enumerate())
    source = iter(batches)
    next(source)
    started = set(threading.enumerate()) - before
    source.close()
    return any(thread.name == "batches" for thread in started)


def _while_training(
    corpus: str, folder: Path, gpus: GpuReader
) -> tuple[list[SystemSample], Evidence | None]:
    """Train a model of the usual size for a while; return what was sampled, and of its steps."""
    from myxtts.training.trainer import XTTSTrainer

    config = create_default_config(
        corpus,
        model_size=GPU_MODEL,
        preprocessing_mode="precompute",
        max_steps=GPU_STEPS,
        checkpoint_dir=str(folder / "voice"),
    )
    trainer = XTTSTrainer(config)
    with SystemSampler(INTERVAL, gpus=gpus) as sampler:
        trainer.train()
    recorder = trainer.performance.recorder
    return list(sampler.samples), recorder.evidence() if len(recorder) else None


def _same(one: dict, other: dict) -> bool:
    if one.keys() != other.keys():
        return False
    pairs = [(np.array(one[name]), np.array(other[name])) for name in one]
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs
    )
