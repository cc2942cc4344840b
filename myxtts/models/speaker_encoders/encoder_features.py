"""The features of the published speaker encoders, estimated from log-mels in the graph.

The encoders were trained on features of 16 kHz samples, and in training the model's output has no
samples. Each band's mean magnitude is spread over their finer bins, squared, filtered as they
filter, and brought to their 100 frames a second. It is an estimate, smoother in time and frequency
than the real features, and it has a gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from myxtts.audio import speaker_features as published
from myxtts.audio.mel import edge_padding, hann_window, mel_filterbank
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.layers import sequence_mask

# A mean of magnitudes, squared, is less than the mean of their squares: of noise, by pi / 4.
_MEAN_SQUARE = 4.0 / np.pi


@dataclass(frozen=True)
class _Frontend:
    """An encoder's filters [bins, bands], its window, and what it does with filtered powers."""

    filters: Callable[[], np.ndarray]
    window: Callable[[], np.ndarray]
    scaled: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # powers and mask -> features
    pre_emphasis: float = 0.0


class EncoderFeatures:
    """Log-mels [batch, frames, mels] and lengths -> an encoder's features, and their lengths."""

    def __init__(self, kind: str, spec: AudioSpec):
        frontend = _FRONTENDS[kind]
        self._scaled = frontend.scaled
        self._spread, self._filters = _matrices(frontend, spec)
        self._frames_per_frame = spec.sample_rate / published.SAMPLE_RATE * published.HOP
        self._frames_per_frame /= spec.hop_length
        # The middle of the first frame, in frames; for the encoders it is the first sample.
        self._first = (spec.n_fft / 2 - edge_padding(spec)) / spec.hop_length

    def __call__(self, mel: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        magnitude = tf.matmul(tf.exp(tf.cast(mel, tf.float32)), self._spread)
        powers = tf.matmul(tf.square(magnitude), self._filters)
        powers, counts = self._at_encoder_rate(powers, lengths)
        mask = sequence_mask(counts, tf.shape(powers)[1])[:, :, None]
        return self._scaled(powers, mask), counts

    def _at_encoder_rate(self, values, lengths):
        """Interpolate between the two frames around each frame of the encoder."""
        rate = self._frames_per_frame
        counts = 1 + tf.cast(tf.cast(lengths, tf.float32) / rate, tf.int32)
        at = tf.range(tf.cast(tf.shape(values)[1], tf.float32) / rate + 1.0) * rate - self._first
        at = tf.minimum(tf.maximum(at, 0.0), tf.cast(lengths, tf.float32)[:, None] - 1.0)
        before = tf.floor(at)
        share = (at - before)[:, :, None]
        first = tf.cast(before, tf.int32)
        second = tf.minimum(first + 1, lengths[:, None] - 1)
        both = [tf.gather(values, index, batch_dims=1) for index in (first, second)]
        return (1.0 - share) * both[0] + share * both[1], counts


def _matrices(frontend: _Frontend, spec: AudioSpec) -> tuple[np.ndarray, np.ndarray]:
    """From a mel band to the encoder's bins [mels, bins], and from those to its bands."""
    bank = mel_filterbank(spec).astype(np.float64)
    frequencies = np.arange(bank.shape[1]) * spec.sample_rate / spec.n_fft
    centres = (bank @ frequencies) / bank.sum(axis=1)
    filters = frontend.filters()
    bins = np.linspace(0.0, published.SAMPLE_RATE / 2, len(filters))
    place = np.interp(bins, centres, np.arange(spec.n_mels))
    between = np.maximum(0.0, 1.0 - np.abs(place - np.arange(spec.n_mels)[:, None]))
    spread = between / bank.sum(axis=1)[:, None]
    # A square of a bin is a density over the hertz times the rate and the window's energy.
    gain = np.sum(frontend.window() ** 2) / np.sum(hann_window(spec).astype(np.float64) ** 2)
    gain *= published.SAMPLE_RATE / spec.sample_rate
    angle = 2.0 * np.pi * bins / published.SAMPLE_RATE
    response = np.abs(1.0 - frontend.pre_emphasis * np.exp(-1j * angle)) ** 2
    weighted = filters * (_MEAN_SQUARE * gain * response)[:, None]
    return spread.astype(np.float32), weighted.astype(np.float32)


def _plain(powers, mask):
    return powers * mask


def _decibel_without_mean(powers, mask):
    decibel = 10.0 / np.log(10.0) * tf.math.log(tf.maximum(powers, 1e-10))
    highest = tf.reduce_max(tf.where(mask > 0.0, decibel, -1e9), axis=[1, 2], keepdims=True)
    decibel = tf.maximum(decibel, highest - 80.0)
    return (decibel - _mean(decibel, mask)) * mask


def _log_of_unit_variance(powers, mask):
    values = tf.math.log(powers + 1e-6)
    values -= _mean(values, mask)
    return values * tf.math.rsqrt(_mean(tf.square(values), mask) + 1e-5) * mask


def _mean(values, mask):
    total = tf.reduce_sum(values * mask, axis=1, keepdims=True)
    return total / tf.reduce_sum(mask, axis=1, keepdims=True)


_FRONTENDS = {
    "ecapa_tdnn": _Frontend(
        published.ecapa_filters, published.hamming_window, _decibel_without_mean
    ),
    "resemblyzer": _Frontend(published.resemblyzer_filters, published.hann_window, _plain),
    "coqui": _Frontend(
        published.coqui_filters, published.hamming_window, _log_of_unit_variance, pre_emphasis=0.97
    ),
}
