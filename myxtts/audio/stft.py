"""Waveforms to complex spectra and back, in the graph; the frames are those of `audio.mel`."""

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import edge_padding, hann_window, reflect_tf
from myxtts.config.audio_spec import AudioSpec

_TINY = 1e-6


def stft_tf(samples: tf.Tensor, spec: AudioSpec, mode: str = "REFLECT") -> tf.Tensor:
    """Spectra [batch, frames, bins] of signals [batch, frames * hop_length], their ends padded."""
    before = edge_padding(spec)
    behind = spec.n_fft - spec.hop_length - before  # the same, or one more: a frame for each hop
    if mode == "REFLECT":
        # As `tf.pad` does, which refuses what is shorter than the padding.
        lengths = tf.repeat(tf.shape(samples)[1], tf.shape(samples)[0])
        padded = reflect_tf(samples, lengths, behind)[:, behind - before :]
    else:
        padded = tf.pad(samples, [[0, 0], [before, behind]], mode=mode)
    frames = tf.signal.frame(padded, spec.n_fft, spec.hop_length)
    return tf.signal.rfft(frames * hann_window(spec))


def istft_tf(spectrum: tf.Tensor, spec: AudioSpec) -> tf.Tensor:
    """Signals [batch, frames * hop_length]: of the spectra of a signal, that signal."""
    frames = tf.signal.irfft(spectrum, [spec.n_fft]) * hann_window(spec)
    square = np.square(hann_window(spec))[None, None]
    power = _overlap_add(tf.tile(square, [1, tf.shape(spectrum)[1], 1]), spec)
    return _overlap_add(frames, spec) / tf.maximum(power, _TINY)


def _overlap_add(frames: tf.Tensor, spec: AudioSpec) -> tf.Tensor:
    """Add up frames [batch, count, n_fft], and cut the padded ends off: [batch, count * hop]."""
    hop, parts = spec.hop_length, -(-spec.n_fft // spec.hop_length)
    frames = tf.pad(frames, [[0, 0], [0, 0], [0, parts * hop - spec.n_fft]])
    batch, count = tf.shape(frames)[0], tf.shape(frames)[1]
    # In pieces of a hop, which overlap as whole rows: several times faster than by samples.
    pieces = tf.unstack(tf.reshape(frames, [batch, count, parts, hop]), axis=2)
    total = tf.add_n(
        [tf.pad(p, [[0, 0], [k, parts - 1 - k], [0, 0]]) for k, p in enumerate(pieces)]
    )
    start = edge_padding(spec)
    return tf.reshape(total, [batch, -1])[:, start : start + count * hop]
