"""Batches whose features are computed from the recordings in the graph: nothing is stored."""

from collections.abc import Callable, Iterator
from functools import cache as cached_once
from functools import partial

import numpy as np
import tensorflow as tf

from myxtts.audio.io import AudioError
from myxtts.audio.mel import mel_and_energy_tf
from myxtts.audio.pitch import mel_energy_and_pitch_tf
from myxtts.audio.yin import yin_tf
from myxtts.data.batches import readers
from myxtts.data.batches.ahead import worked_ahead
from myxtts.data.batches.graph_reader import (
    Batches,
    ReaderOptions,
    TensorBatch,
    batch_signature,
    finish,
    on_device,
    to_tensors,
)
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.features.features import FeatureSettings, load_samples
from myxtts.data.store.mmap import aligned_empty, keep_freed_memory
from myxtts.data.store.packed_cache import PackedCache
from myxtts.monitoring.timers import FEATURES, stages

Compute = Callable[[TensorBatch], TensorBatch]


def runtime_batches(
    cache: PackedCache, plan: BatchPlan, settings: FeatureSettings, options: ReaderOptions
) -> Batches:
    """Batches from the recordings: threads decode, the graph computes, nothing is stored.

    Without tf.data: who drops an iterator of it while its threads ask Python for the next batch
    waits for them with Python's lock in hand, for ever.
    """
    keep_freed_memory()
    ahead = options.prefetch if options.overlap else 0
    compute = _compiled_features(cache, settings)

    def features(waveforms: readers.Batch) -> TensorBatch:
        with tf.device("/CPU:0"):
            batch = compute(to_tensors(waveforms, ""))
        return on_device(batch, options.device)

    def make() -> Iterator[TensorBatch]:
        waveforms = _waveform_batches(cache, plan, settings, options.workers, ahead)
        if not options.overlap:
            return map(features, waveforms)
        found = readers.mapped_ahead(waveforms, features, options.workers)
        return readers.in_background(found, options.prefetch)

    return Batches(make, plan, "runtime")


def runtime_dataset(
    cache: PackedCache, plan: BatchPlan, settings: FeatureSettings, options: ReaderOptions
) -> tf.data.Dataset:
    """Waveforms from decoding threads, features from the graph."""
    ahead = options.prefetch if options.overlap else 0
    make = lambda: _waveform_batches(cache, plan, settings, options.workers, ahead)  # noqa: E731
    dataset = tf.data.Dataset.from_generator(make, output_signature=_waveform_signature(cache))
    calls = options.workers if options.overlap else None
    dataset = dataset.map(_features_in_graph(settings), num_parallel_calls=calls)
    return finish(dataset, options, threads=max(2, options.workers))


def _waveform_batches(
    cache: PackedCache, plan: BatchPlan, settings: FeatureSettings, workers: int, ahead: int
) -> Iterator[readers.Batch]:
    """Decoded recordings, padded to the samples of the planned frames, with the batch's labels."""
    decode = partial(_decode, cache, settings)
    for number, found in worked_ahead(plan, decode, lambda i: True, workers, ahead):
        samples = [found[i] for i in plan[number].tolist()]
        yield _waveform_batch(cache, plan, number, samples, settings.spec.hop_length)


def _decode(cache: PackedCache, settings: FeatureSettings, position: int) -> np.ndarray | None:
    try:
        recording = cache.recordings[position]
        return load_samples(recording.audio, settings, recording.speed)
    except AudioError as error:
        readers.log_once(cache.logged, error)
        return None


def _waveform_batch(
    cache: PackedCache, plan: BatchPlan, number: int, found: list[np.ndarray | None], hop: int
) -> readers.Batch:
    kept = [row for row, samples in enumerate(found) if samples is not None]
    positions = plan[number][kept]
    # A frame more than planned: what is left over of the last hop must have room.
    samples = aligned_empty((len(kept), (int(plan.frames[number]) + 1) * hop), np.float32)
    lengths = np.zeros(len(kept), np.int32)
    for row, source in enumerate(one for one in found if one is not None):
        lengths[row] = len(source)
        samples[row, : lengths[row]] = source
        samples[row, lengths[row] :] = 0
    batch = readers.labels(cache, positions, cache.mel_lengths[positions].astype(np.int32))
    tokens = cache.columns["tokens"]
    batch["tokens"] = np.zeros((len(kept), int(plan.tokens[number])), np.int32)
    for row, position in enumerate(positions.tolist()):
        length = int(cache.text_lengths[position])
        tokens.copy(int(cache.starts["tokens"][position]), length, batch["tokens"][row])
    return batch | {"samples": samples, "sample_lengths": lengths}


def _waveform_signature(cache: PackedCache) -> dict[str, tf.TensorSpec]:
    spec = batch_signature(cache, skip=("mel", "energy", "pitch"))
    spec["samples"] = tf.TensorSpec([None, None], tf.float32)
    return spec | {"sample_lengths": tf.TensorSpec([None], tf.int32)}


def _compiled_features(cache: PackedCache, settings: FeatureSettings) -> Compute:
    """The function waveforms -> features for batches of a cache, traced only once."""
    signature = _waveform_signature(cache)
    key = (settings, tuple(signature.items()))
    if key not in _compiled:
        # Nothing in it is Python to convert, and looking for it takes longer than tracing.
        make = partial(tf.function, input_signature=[signature], autograph=False)
        _compiled[key] = make(_features_in_graph(settings))
    return _compiled[key]


_compiled: dict = {}


def _features_in_graph(settings: FeatureSettings) -> Compute:
    """Build the function that replaces a batch's waveforms by their features."""
    spec = settings.spec
    spent = _seconds_in_graph()

    def features(batch: TensorBatch) -> TensorBatch:
        began = tf.timestamp()
        with tf.control_dependencies([began]):
            found = compute(batch)
        with tf.control_dependencies(list(found.values())):
            counted = spent.assign_add(tf.timestamp() - began)
        with tf.control_dependencies([counted]):
            return {name: tf.identity(tensor) for name, tensor in found.items()}

    def compute(batch: TensorBatch) -> TensorBatch:
        batch = dict(batch)
        samples, lengths = tf.identity(batch.pop("samples")), batch.pop("sample_lengths")
        frames = tf.shape(samples)[1] // spec.hop_length - 1
        limits = (settings.pitch_fmin, settings.pitch_fmax)
        if settings.with_pitch and settings.pitch_method == "spectrum":
            mel, energy, f0, counts = mel_energy_and_pitch_tf(samples, lengths, spec, *limits)
            batch["pitch"] = f0[:, :frames]
        else:
            mel, energy, counts = mel_and_energy_tf(samples, spec, lengths)
            if settings.with_pitch:
                batch["pitch"] = yin_tf(samples, lengths, spec, *limits)[:, :frames]
        batch["mel"] = tf.cast(mel[:, :frames], settings.dtype)
        batch["energy"] = energy[:, :frames]
        batch["mel_lengths"] = counts
        return batch

    return features


@cached_once
def _seconds_in_graph() -> tf.Variable:
    """What graphs that compute features count their time in."""
    with tf.device("/CPU:0"):
        spent = tf.Variable(0.0, dtype=tf.float64, trainable=False)
    stages.add_source(FEATURES, lambda: float(spent.numpy()))
    return spent
