"""Waveforms to complex spectra and back, in the graph; the frames are those of `audio.mel`."""

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import edge_padding, hann_window, reflect_tf
from myxtts.config.audio_spec import AudioSpec

_TINY = 1e-6
LEAST_POWER = 1e-20  # a gradient at zero


def stft_tf(samples: tf.Tensor, spec: AudioSpec, mode: str = "REFLECT") -> tf.Tensor:
    """Spectra [batch, frames, bins] of signals [batch, frames * hop_length], their ends padded."""
    before = edge_padding(spec)
    behind = spec.n_fft - spec.hop_length - before  # the same, or one more: a frame for each hop
    if mode == "REFLECT":
        # As `tf.pad` does, which rejects signals shorter than the padding.
        lengths = tf.repeat(tf.shape(samples)[1], tf.shape(samples)[0])
        padded = reflect_tf(samples, lengths, behind)[:, behind - before :]
    else:
        padded = tf.pad(samples, [[0, 0], [before, behind]], mode=mode)
    frames = tf.signal.frame(padded, spec.n_fft, spec.hop_length)
    return tf.signal.rfft(frames * hann_window(spec))


def istft_tf(spectrum: tf.Tensor, spec: AudioSpec) -> tf.Tensor:
    """Signals [batch, frames * hop_length]: of the spectra of a signal, that signal."""
    frames = tf.signal.irfft(spectrum, [spec.n_fft]) * hann_window(spec)
    return overlap_add(frames, spec) / window_power(tf.shape(spectrum)[1], spec)


def magnitude_tf(spectrum: tf.Tensor) -> tf.Tensor:
    """Absolute values; `tf.abs` calls `hypotf` for one after the other, which is slower."""
    real, imaginary = tf.math.real(spectrum), tf.math.imag(spectrum)
    return tf.sqrt(tf.square(real) + tf.square(imaginary) + LEAST_POWER)


def window_power(count: tf.Tensor, spec: AudioSpec) -> tf.Tensor:
    """The sum of the squared windows over each sample of so many frames: [count * hop]."""
    hop, parts = spec.hop_length, -(-spec.n_fft // spec.hop_length)
    squares = np.zeros(parts * hop, np.float32)
    squares[: spec.n_fft] = np.square(hann_window(spec))
    # Which frame of those that reach into a hop is there: all but at the ends.
    frame = tf.range(count + parts - 1)[:, None] - tf.range(parts)
    is_there = tf.cast((frame >= 0) & (frame < count), tf.float32)
    power = tf.reshape(tf.matmul(is_there, squares.reshape(parts, hop)), [-1])
    start = edge_padding(spec)
    return tf.maximum(power[start : start + count * hop], _TINY)


def overlap_add(frames: tf.Tensor, spec: AudioSpec) -> tf.Tensor:
    """Add up frames [batch, count, n_fft], and cut the padded ends off: [batch, count * hop]."""
    hop, parts = spec.hop_length, -(-spec.n_fft // spec.hop_length)
    frames = tf.pad(frames, [[0, 0], [0, 0], [0, parts * hop - spec.n_fft]])
    batch, count = tf.shape(frames)[0], tf.shape(frames)[1]
    # In chunks of a hop, which overlap as whole rows: several times faster than by samples.
    chunks = tf.unstack(tf.reshape(frames, [batch, count, parts, hop]), axis=2)
    total = tf.add_n(
        [tf.pad(p, [[0, 0], [k, parts - 1 - k], [0, 0]]) for k, p in enumerate(chunks)]
    )
    start = edge_padding(spec)
    return tf.reshape(total, [batch, -1])[:, start : start + count * hop]
