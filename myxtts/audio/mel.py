"""The log-mel spectrogram and the frame energy, defined once, in NumPy and in the graph.

Frames of `n_fft` samples every `hop_length`, after reflecting (n_fft - hop_length) / 2 samples at
both ends; a periodic Hann window; magnitude sqrt(re² + im² + 1e-9); Slaney mel filters; natural
logarithm, clamped at `floor`. The energy of a frame is the L2 norm of its magnitude over all
`n_fft` bins, which by Parseval is sqrt(n_fft * sum of the squared windowed samples).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.transforms import rfft
from myxtts.config.audio_spec import AudioSpec

if TYPE_CHECKING:
    import tensorflow as tf


_POWER_FLOOR = 1e-9
# 64 frames and their spectra are about half a megabyte, which stays in a core's L2 cache.
_BLOCK_FRAMES = 64


def num_frames(samples: int, spec: AudioSpec) -> int:
    """Count the frames of a signal of so many samples."""
    padded = samples + 2 * edge_padding(spec)
    return max(0, (padded - spec.n_fft) // spec.hop_length + 1) if samples > 0 else 0


def log_mel(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    """Return the log-mel spectrogram, float32 [frames, n_mels]."""
    (mel,) = frame_products(samples, spec, (_transposed_filters(spec),))
    return _log(mel, spec)


def mel_and_energy(samples: np.ndarray, spec: AudioSpec) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-mel [frames, n_mels] and the energy [frames], from one pass."""
    energy = np.empty(num_frames(len(samples), spec), np.float32)
    (mel,) = frame_products(samples, spec, (_transposed_filters(spec),), energy)
    return _log(mel, spec), energy


def mel_energy_and_product(
    samples: np.ndarray, spec: AudioSpec, table: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same and, of the same magnitudes, their product with a table [bins, columns]."""
    energy = np.empty(num_frames(len(samples), spec), np.float32)
    mel, product = frame_products(samples, spec, (_transposed_filters(spec), table), energy)
    return _log(mel, spec), energy, product


def log_mel_tf(
    samples: "tf.Tensor", spec: AudioSpec, lengths: "tf.Tensor | None" = None
) -> "tuple[tf.Tensor, tf.Tensor]":
    """Return log-mels [batch, frames, n_mels] of padded signals, and the frame counts [batch]."""
    frames, counts = _windowed_frames_tf(samples, spec, lengths)
    return _log_mel_of_frames_tf(frames, counts, spec), counts


def mel_and_energy_tf(
    samples: "tf.Tensor", spec: AudioSpec, lengths: "tf.Tensor | None" = None
) -> "tuple[tf.Tensor, tf.Tensor, tf.Tensor]":
    """Return log-mels [batch, frames, n_mels], energies [batch, frames], frame counts [batch].

    `lengths` [batch] are the true lengths of `samples` [batch, samples]. Each row equals what its
    signal gives without padding; frames past its own count are zero.
    """
    frames, counts = _windowed_frames_tf(samples, spec, lengths)
    return _log_mel_of_frames_tf(frames, counts, spec), _energy_tf(frames, counts, spec), counts


def mel_energy_and_product_tf(
    samples: "tf.Tensor", spec: AudioSpec, lengths: "tf.Tensor | None", table: np.ndarray
) -> "tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]":
    """Return the same and, of the same magnitudes, their product with a table [bins, columns]."""
    import tensorflow as tf

    frames, counts = _windowed_frames_tf(samples, spec, lengths)
    filters = _transposed_filters(spec)
    magnitude = _magnitude_tf(frames, max(len(filters), len(table)))
    mel = _log_tf(tf.matmul(magnitude[..., : len(filters)], filters), counts, spec)
    product = tf.matmul(magnitude[..., : len(table)], table)
    return mel, _energy_tf(frames, counts, spec), counts, product


def product_tf(
    samples: "tf.Tensor", spec: AudioSpec, lengths: "tf.Tensor | None", table: np.ndarray
) -> "tuple[tf.Tensor, tf.Tensor]":
    """Return the product of the magnitudes of all frames with a table, and the frame counts."""
    import tensorflow as tf

    frames, counts = _windowed_frames_tf(samples, spec, lengths)
    return tf.matmul(_magnitude_tf(frames, len(table)), table), counts


@lru_cache(maxsize=8)
def mel_filterbank(spec: AudioSpec) -> np.ndarray:
    """Return Slaney's triangular filters of equal area, float32 [n_mels, n_fft // 2 + 1]."""
    limits = mel_scale(np.array([spec.fmin, spec.fmax]))
    edges = _mel_to_hz(np.linspace(limits[0], limits[1], spec.n_mels + 2))
    lower, centre, upper = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bins = np.arange(spec.n_fft // 2 + 1) * (spec.sample_rate / spec.n_fft)
    triangles = np.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre))
    filters = np.maximum(triangles, 0.0) * (2.0 / (upper - lower))
    return _read_only(filters)


def used_bins(spec: AudioSpec) -> int:
    """Count the bins up to the last one that a mel filter uses."""
    return len(_transposed_filters(spec))


def edge_padding(spec: AudioSpec) -> int:
    """Return how many samples are reflected at each end."""
    return (spec.n_fft - spec.hop_length) // 2


def reflect_tf(samples: "tf.Tensor", lengths: "tf.Tensor", padding: int) -> "tf.Tensor":
    """Reflect each row of [batch, samples] at its own end: [batch, samples + 2 * padding].

    Equals `np.pad(row[:length], padding, "reflect")`; what follows in a shorter row is arbitrary.
    """
    import tensorflow as tf

    # Only the two ends are gathered: a gather of every sample would cost as much as the FFT.
    offsets = tf.range(padding)[None, :]
    head = _folded_gather_tf(samples, lengths, offsets - padding)
    tail = _folded_gather_tf(samples, lengths, offsets + lengths[:, None])
    padded = tf.concat([head, samples, tf.zeros_like(tail)], axis=1)
    columns = offsets + lengths[:, None] + padding
    rows = tf.broadcast_to(tf.range(tf.shape(samples)[0])[:, None], tf.shape(columns))
    return tf.tensor_scatter_nd_update(padded, tf.stack([rows, columns], axis=-1), tail)


def _folded_gather_tf(
    samples: "tf.Tensor", lengths: "tf.Tensor", positions: "tf.Tensor"
) -> "tf.Tensor":
    """Gather [batch, n] samples at positions that are folded back into each row's length."""
    import tensorflow as tf

    last = tf.maximum(lengths[:, None] - 1, 0)
    folded = tf.math.floormod(positions, tf.maximum(2 * last, 1))
    return tf.gather(samples, tf.minimum(folded, 2 * last - folded), batch_dims=1)


def mask_frames_tf(values: "tf.Tensor", counts: "tf.Tensor") -> "tf.Tensor":
    """Set [batch, frames] or [batch, frames, mels] to zero from each row's count on."""
    import tensorflow as tf

    mask = tf.range(tf.shape(values)[1])[None, :] < counts[:, None]
    mask = mask[..., None] if values.shape.rank == 3 else mask
    return tf.where(mask, values, tf.zeros((), values.dtype))


def num_frames_tf(lengths: "tf.Tensor", spec: AudioSpec) -> "tf.Tensor":
    """Count frames as `num_frames` does, for a tensor of lengths."""
    import tensorflow as tf

    padded = lengths + 2 * edge_padding(spec)
    counts = tf.maximum((padded - spec.n_fft) // spec.hop_length + 1, 0)
    return tf.where(lengths > 0, counts, 0)


def frame_products(
    samples: np.ndarray,
    spec: AudioSpec,
    tables: Sequence[np.ndarray],
    energy: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Multiply the magnitudes of all frames with tables [bins, columns]: [frames, columns] each.

    It goes block by block, and fills `energy` on the way where it is given.
    """
    count = num_frames(len(samples), spec)
    products = [np.empty((count, table.shape[1]), np.float32) for table in tables]
    if count == 0:
        return products
    frames = _frames(_reflected(np.asarray(samples, np.float32), edge_padding(spec)), count, spec)
    window, bins = hann_window(spec), max(len(table) for table in tables)
    windowed = np.empty((_BLOCK_FRAMES, spec.n_fft), np.float32)
    magnitude = np.empty((_BLOCK_FRAMES, bins), np.float32)
    for start in range(0, count, _BLOCK_FRAMES):
        rows = slice(start, min(start + _BLOCK_FRAMES, count))
        size = rows.stop - start
        block = windowed[:size]
        np.multiply(frames[rows], window, out=block)
        if energy is not None:
            np.vecdot(block, block, out=energy[rows])
        spectrum = rfft(block, overwrite=True)
        _magnitude(spectrum[:, :bins], out=magnitude[:size])
        for table, product in zip(tables, products, strict=True):
            np.matmul(magnitude[:size, : len(table)], table, out=product[rows])
    if energy is not None:
        np.sqrt(np.multiply(energy, np.float32(spec.n_fft), out=energy), out=energy)
    return products


def _reflected(samples: np.ndarray, padding: int) -> np.ndarray:
    """Return what `np.pad` does, which takes three times as long where one reflection is enough."""
    if not 0 < padding < len(samples):
        return np.pad(samples, padding, mode="reflect")
    head, tail = samples[padding:0:-1], samples[-2 : -padding - 2 : -1]
    return np.concatenate([head, samples, tail])


def _frames(padded: np.ndarray, count: int, spec: AudioSpec) -> np.ndarray:
    """Return a view [count, n_fft]: `sliding_window_view` takes as long as ten frames."""
    strides = (padded.itemsize * spec.hop_length, padded.itemsize)
    return np.ndarray((count, spec.n_fft), padded.dtype, padded, 0, strides)


def _log(mel: np.ndarray, spec: AudioSpec) -> np.ndarray:
    np.maximum(mel, np.float32(spec.floor), out=mel)
    return np.log(mel, out=mel)


def _magnitude(spectrum: np.ndarray, out: np.ndarray) -> None:
    # abs() of complex64 is vectorised; squaring the two parts through strided views is not.
    np.abs(spectrum, out=out)
    np.multiply(out, out, out=out)
    np.add(out, np.float32(_POWER_FLOOR), out=out)
    np.sqrt(out, out=out)


def _windowed_frames_tf(
    samples: "tf.Tensor", spec: AudioSpec, lengths: "tf.Tensor"
) -> "tuple[tf.Tensor, tf.Tensor]":
    import tensorflow as tf

    samples = tf.cast(samples, tf.float32)
    if lengths is None:
        lengths = tf.repeat(tf.shape(samples)[1], tf.shape(samples)[0])
    lengths = tf.cast(lengths, tf.int32)
    padded = reflect_tf(samples, lengths, edge_padding(spec))
    frames = tf.signal.frame(padded, spec.n_fft, spec.hop_length)
    return frames * hann_window(spec), num_frames_tf(lengths, spec)


def _log_mel_of_frames_tf(frames: "tf.Tensor", counts: "tf.Tensor", spec: AudioSpec) -> "tf.Tensor":
    import tensorflow as tf

    filters = _transposed_filters(spec)
    return _log_tf(tf.matmul(_magnitude_tf(frames, len(filters)), filters), counts, spec)


def _magnitude_tf(frames: "tf.Tensor", bins: int) -> "tf.Tensor":
    import tensorflow as tf

    spectrum = tf.signal.rfft(frames)[..., :bins]
    power = tf.square(tf.math.real(spectrum)) + tf.square(tf.math.imag(spectrum))
    return tf.sqrt(power + _POWER_FLOOR)


def _log_tf(mel: "tf.Tensor", counts: "tf.Tensor", spec: AudioSpec) -> "tf.Tensor":
    import tensorflow as tf

    return mask_frames_tf(tf.math.log(tf.maximum(mel, spec.floor)), counts)


def _energy_tf(frames: "tf.Tensor", counts: "tf.Tensor", spec: AudioSpec) -> "tf.Tensor":
    import tensorflow as tf

    energy = tf.sqrt(float(spec.n_fft) * tf.reduce_sum(tf.square(frames), axis=-1))
    return mask_frames_tf(energy, counts)


@lru_cache(maxsize=8)
def hann_window(spec: AudioSpec) -> np.ndarray:
    """Return the periodic Hann window, centred in `n_fft` samples where it is shorter."""
    phase = 2.0 * np.pi * np.arange(spec.win_length) / spec.win_length
    missing = spec.n_fft - spec.win_length
    return _read_only(np.pad(0.5 - 0.5 * np.cos(phase), (missing // 2, missing - missing // 2)))


@lru_cache(maxsize=8)
def _transposed_filters(spec: AudioSpec) -> np.ndarray:
    """Return the filters as [bins, n_mels], without the bins above `fmax`, where all are zero."""
    filters = mel_filterbank(spec)
    used = int(np.flatnonzero(filters.any(axis=0))[-1]) + 1
    return _read_only(np.ascontiguousarray(filters[:, :used].T))


def _read_only(values: np.ndarray) -> np.ndarray:
    """Return float32 that a caller cannot change, for it is shared through a cache."""
    values = values.astype(np.float32)
    values.flags.writeable = False
    return values


# Slaney's mel scale: linear up to 1000 Hz (mel 15), logarithmic above.
_HZ_PER_MEL = 200.0 / 3.0
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _HZ_PER_MEL
_MELS_PER_LOG = 27.0 / np.log(6.4)


def mel_scale(hz: np.ndarray) -> np.ndarray:
    """Return Slaney's mels of frequencies."""
    above = _BREAK_MEL + _MELS_PER_LOG * np.log(np.maximum(hz, _BREAK_HZ) / _BREAK_HZ)
    return np.where(hz < _BREAK_HZ, hz / _HZ_PER_MEL, above)


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    above = _BREAK_HZ * np.exp((np.maximum(mel, _BREAK_MEL) - _BREAK_MEL) / _MELS_PER_LOG)
    return np.where(mel < _BREAK_MEL, mel * _HZ_PER_MEL, above)
