"""All figures of a forecast, measured on this machine in about a minute."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from myxtts.audio.io import write_wav
from myxtts.bench.cluster.figures import ASSUMED, GIVEN, MEASURED, Figures, Network, StepCost
from myxtts.bench.cluster.network import gradient_bytes, measure_network
from myxtts.bench.cluster.processes import run_apart
from myxtts.bench.cluster.scale import make_listing, measure_scale
from myxtts.bench.cluster.step import PARTS, Measured, Sample, measure_step
from myxtts.bench.synthetic_cache import utterance_frames, utterance_id
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import batch_options
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.corpora import build_tokenizer, read_corpora
from myxtts.data.features.features import compute_features
from myxtts.data.features.location import locate_cache
from myxtts.data.features.prepare import prepare
from myxtts.data.features.status import disk_bytes
from myxtts.data.store.view import StoreView
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores, read_small
from myxtts.monitoring.progress import Progress
from myxtts.monitoring.system import MemoryLimit

LEAST_SAMPLE, LARGEST_SAMPLE = 64, 256
TIMED_FEATURES = 24
DISK_BYTES = 128 << 20
USUAL_LATENCY = 30e-6  # of a network between hosts whose bandwidth alone is given
PACKED = 2  # sums of a step on GPUs: the counts, and the gradients as one
NO_MAP_LIMIT = 1 << 62


@dataclass(frozen=True)
class Given:
    """What the user knows of the cluster, and need not be measured here; None is not given."""

    step_ms: float | None = None  # of one micro-batch on one device
    network_gbps: float | None = None
    latency_us: float | None = None
    disk_gbps: float | None = None


def measure(
    config: XTTSConfig,
    part_utterances: int,
    given: Given,
    has_corpus: bool,
    report: Progress | None = None,
) -> Figures:
    """Measure on a sample of the corpus, or on recordings that are made up where there is none."""
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if report:
            report(done, 6)

    with tempfile.TemporaryDirectory(prefix="myxtts-simulate-") as name:
        folder = Path(name)
        if not has_corpus:
            made = make_recordings(folder / "corpus", LEAST_SAMPLE, config.data.sample_rate)
            config = config.replace(dataset_path=str(made))
        count = min(LARGEST_SAMPLE, max(LEAST_SAMPLE, PARTS * part_utterances))
        sample = _take_sample(config, folder, count)
        advance()
        one = run_apart(measure_step, config, sample.stored, part_utterances, 1)
        advance()
        cores = available_cores()
        several = one
        if one.is_on_cpu and cores > 1 and given.step_ms is None:
            several = run_apart(measure_step, config, sample.stored, part_utterances, cores)
        advance()
        network = _network(one, given)
        advance()
        scale = run_apart(measure_scale, folder / "scale", batch_options(config))
        advance()
        figures = Figures(
            step=_step_cost(one, several, cores),
            network=network,
            scale=scale,
            gradient_bytes=gradient_bytes(one.shapes),
            frames=one.frames,
            reader_cpu=one.reader_cpu,
            prepare_cpu=sample.prepare_cpu,
            stored_bytes=sample.stored_bytes,
            mapped_files=len(sample.stored.features.columns) + len(sample.stored.tokens.columns),
            save_seconds=one.save,
            disk_bandwidth=_disk_bandwidth(folder) if given.disk_gbps is None else 0.0,
            cores=cores,
            memory=MemoryLimit().read()[1],
            map_limit=_map_limit(),
            sample=sample.what if has_corpus else "made-up recordings with the lengths of LJSpeech",
            origins=_origins(given),
        )
        advance()
    return with_given(figures, given, part_utterances)


def with_given(figures: Figures, given: Given, part_utterances: float) -> Figures:
    """The figures with what the user knows better."""
    if given.step_ms is not None:
        seconds, step = given.step_ms / 1e3, figures.step
        # What a device does faster, it is assumed to do faster throughout.
        ratio = seconds / max(1e-9, step.part * part_utterances / step.utterances)
        step = StepCost(
            fixed=step.fixed * ratio,
            part=seconds,
            utterances=part_utterances,
            evaluate=step.evaluate * ratio,
            is_on_cpu=False,
        )
        figures = figures.replace(GIVEN, step=step)
    if given.latency_us is not None:
        network = replace(figures.network, latency=given.latency_us / 1e6)
        figures = figures.replace(GIVEN, network=network)
    if given.disk_gbps is not None:
        figures = figures.replace(GIVEN, disk_bandwidth=given.disk_gbps * 1e9)
    return figures


def make_recordings(folder: Path, count: int, rate: int) -> Path:
    """A corpus of noise: what is computed of it takes as long as that of speech."""
    make_listing(folder, count)
    rng = np.random.default_rng(3)
    lengths = utterance_frames(count) / utterance_frames(count).mean() * 6.57
    for number, seconds in enumerate(lengths.tolist()):
        samples = 0.1 * rng.standard_normal(round(seconds * rate)).astype(np.float32)
        write_wav(folder / "wavs" / f"{utterance_id(number)}.wav", samples, rate)
    return folder


@dataclass(frozen=True)
class _Sampled:
    stored: Sample
    stored_bytes: float
    prepare_cpu: float
    what: str


def _take_sample(config: XTTSConfig, folder: Path, count: int) -> _Sampled:
    """Prepare some utterances of the corpus in a folder of their own."""
    corpus, _ = read_corpora(config.data)
    chosen = _spread(corpus.utterances, count)
    tokenizer = build_tokenizer([corpus], config.data)
    location = locate_cache(folder / "sample", replace(config.data, cache_dir=""), tokenizer)
    prepare(chosen, location, workers=config.data.num_workers, verify=False)
    usable = int((StoreView(location.features).lengths > 0).sum())
    if usable < PARTS:
        raise UserError(
            f"{config.data.dataset_path} has {usable} usable utterances: too few to measure; "
            "`myxtts data check` says what was dropped and why"
        )
    timed = [one for one in _spread(chosen, TIMED_FEATURES) if one.audio.exists()]
    began = time.process_time()
    for one in timed:
        compute_features(one.audio, location.settings, one.speed)
    cpu = (time.process_time() - began) / len(timed)
    size = sum(disk_bytes(store.folder) for store in (location.features, location.tokens))
    what = f"{usable} of {len(corpus.utterances):,} utterances of {config.data.dataset_path}"
    stored = Sample(location.features, location.tokens, tokenizer.vocab_size)
    return _Sampled(stored, size / usable, cpu, what)


def _spread(utterances: Sequence[Utterance], count: int) -> list[Utterance]:
    """So many of them, from everywhere."""
    if len(utterances) <= count:
        return list(utterances)
    return [utterances[i * len(utterances) // count] for i in range(count)]


def _step_cost(one: Measured, several: Measured, threads: int) -> StepCost:
    fixed, part = one.line
    return StepCost(
        fixed,
        part,
        one.utterances,
        one.evaluate,
        threads,
        max(1.0, one.wall / several.wall),
        one.is_on_cpu,
    )


def _network(one: Measured, given: Given) -> Network:
    if given.network_gbps is None:
        return measure_network(one.shapes)
    return Network(given.network_gbps * 1e9 / 8, USUAL_LATENCY, PACKED, is_on_cpu=False)


def _disk_bandwidth(folder: Path) -> float:
    """Bytes per second of reading a file that the kernel no longer holds in memory."""
    path = folder / "disk"
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for _ in range(DISK_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return DISK_BYTES / (time.perf_counter() - began)


def _map_limit() -> int:
    """The mappings that the kernel grants a process; other systems than Linux name no limit."""
    text = read_small(Path("/proc/sys/vm/max_map_count"))
    return int(text) if text.isdecimal() else NO_MAP_LIMIT


def _origins(given: Given) -> dict[str, str]:
    names = ("step", "network", "scale", "gradient_bytes", "reader_cpu", "prepare_cpu")
    names += ("stored_bytes", "save_seconds", "disk_bandwidth", "cores", "memory", "map_limit")
    origins = dict.fromkeys(names, MEASURED)
    if given.network_gbps is not None:
        origins["network"] = GIVEN
        origins["latency"] = ASSUMED
    return origins
