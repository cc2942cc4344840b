"""Fundamental frequency per mel frame by YIN (de Cheveigné and Kawahara, 2002), in two twins.

What caches and runs have that are older than `audio.pitch`, which costs a fraction of it.

The signal is low-passed and decimated, then cut into frames centred on the mel's frames. For each,
the difference function d(lag) comes from FFTs, and d'(lag) is d divided by its mean over the
shorter lags. A frame is voiced where d' falls below `VOICED_BELOW` anywhere; its period is the
first dip that is nearly as deep as the deepest one, refined by a parabola.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from myxtts.audio.mel import mask_frames_tf, num_frames, num_frames_tf, reflect_tf
from myxtts.audio.transforms import fast_length, irfft, rfft
from myxtts.config.audio_spec import AudioSpec

if TYPE_CHECKING:
    import tensorflow as tf


VOICED_BELOW = 0.25
# A dip may be this much shallower than the deepest and still win, so that of a period and its
# multiples, which are all equally deep, the period itself is taken.
_DEPTH_MARGIN = 0.1
_ANALYSIS_RATE = 11025
_LOWPASS_TAPS_PER_FACTOR = 16
_SILENCE_RMS = 1e-4
_BLOCK_FRAMES = 128


def yin(
    samples: np.ndarray, spec: AudioSpec, fmin: float = 65.0, fmax: float = 600.0
) -> np.ndarray:
    """Return F0 in Hz per mel frame, float32 [frames], 0 where unvoiced."""
    plan = _plan(spec, fmin, fmax)
    count = num_frames(len(samples), spec)
    f0 = np.zeros(count, np.float32)
    if count == 0:
        return f0
    padded = np.pad(np.asarray(samples, np.float32), plan.padding, mode="reflect")
    decimated = _decimate(padded, plan)
    frames = np.lib.stride_tricks.sliding_window_view(decimated, plan.frame)[:: plan.hop]
    for start in range(0, count, _BLOCK_FRAMES):
        block = frames[start : min(start + _BLOCK_FRAMES, count)]
        f0[start : start + len(block)] = _frame_pitch(block, plan)
    return f0


def yin_tf(
    samples: "tf.Tensor",
    lengths: "tf.Tensor",
    spec: AudioSpec,
    fmin: float = 65.0,
    fmax: float = 600.0,
) -> "tf.Tensor":
    """Return F0 [batch, frames] of padded signals [batch, samples], 0 where unvoiced.

    `lengths` [batch] are the true lengths, or None. Padding never changes a frame, and frames past
    a row's own count are 0.
    """
    import tensorflow as tf

    plan = _plan(spec, fmin, fmax)
    samples = tf.cast(samples, tf.float32)
    if lengths is None:
        lengths = tf.repeat(tf.shape(samples)[1], tf.shape(samples)[0])
    lengths = tf.cast(lengths, tf.int32)
    padded = reflect_tf(samples, lengths, plan.padding)
    frames = tf.signal.frame(_decimate_tf(padded, plan), plan.frame, plan.hop)
    return mask_frames_tf(_frame_pitch_tf(frames, plan), num_frames_tf(lengths, spec))


class _Plan(NamedTuple):
    """Everything derived from the spec and the range of F0, in samples of the decimated signal."""

    factor: int
    lowpass: np.ndarray
    padding: int  # in samples of the original signal
    hop: int
    frame: int
    window: int
    shortest: int
    longest: int
    rate: float


@lru_cache(maxsize=8)
def _plan(spec: AudioSpec, fmin: float, fmax: float) -> _Plan:
    factor = _decimation(spec)
    rate = spec.sample_rate / factor
    shortest, longest = int(rate / fmax), int(np.ceil(rate / fmin))
    if not 2 <= shortest < longest:
        raise ValueError(f"no F0 range between fmin={fmin} and fmax={fmax} at {rate:.0f} Hz")
    # The window holds two of the longest periods; it slides over one more, and a sample for the
    # parabola. An even surplus over the hop keeps the frame centred on the mel's.
    frame = fast_length(3 * longest + 2)
    hop = spec.hop_length // factor
    frame += (frame - hop) % 2
    lowpass = _lowpass(factor)
    padding = (frame - hop) * factor // 2 + (len(lowpass) - 1) // 2
    window = frame - longest - 1
    return _Plan(factor, lowpass, padding, hop, frame, window, shortest, longest, rate)


def _decimation(spec: AudioSpec) -> int:
    """Return the largest whole factor that keeps the analysis rate, and divides the hop."""
    largest = max(1, spec.sample_rate // _ANALYSIS_RATE)
    return max(factor for factor in range(1, largest + 1) if spec.hop_length % factor == 0)


def _lowpass(factor: int) -> np.ndarray:
    """Return a Hamming-windowed sinc, cut off at 35 % of the decimated signal's bandwidth.

    Higher harmonics would make the dips of d' narrower than the lags that sample them.
    """
    if factor == 1:
        return np.ones(1, np.float32)
    half = _LOWPASS_TAPS_PER_FACTOR * factor // 2
    time = np.arange(-half, half + 1)
    taps = np.sinc(0.35 * time / factor) * (0.54 + 0.46 * np.cos(np.pi * time / half))
    return (taps / taps.sum()).astype(np.float32)


def _decimate(padded: np.ndarray, plan: _Plan) -> np.ndarray:
    if plan.factor == 1:
        return padded
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(plan.lowpass))
    return windows[:: plan.factor] @ plan.lowpass


def _decimate_tf(padded: "tf.Tensor", plan: _Plan) -> "tf.Tensor":
    import tensorflow as tf

    if plan.factor == 1:
        return padded
    kernel = plan.lowpass[:, None, None]
    return tf.nn.conv1d(padded[..., None], kernel, plan.factor, padding="VALID")[..., 0]


def _frame_pitch(frames: np.ndarray, plan: _Plan) -> np.ndarray:
    """Return F0 [frames] of decimated frames [frames, plan.frame]."""
    normalised, is_loud = _normalised_difference(frames, plan)
    before, here, after = normalised[:, :-2], normalised[:, 1:-1], normalised[:, 2:]
    deepest = here.min(axis=1)
    limit = np.minimum(deepest + _DEPTH_MARGIN, VOICED_BELOW)[:, None]
    is_dip = (here < limit) & (here <= before) & (here <= after)
    first = is_dip.argmax(axis=1)
    rows = np.arange(len(frames))
    a, b, c = before[rows, first], here[rows, first], after[rows, first]
    shift = np.clip(0.5 * (a - c) / np.maximum(a - 2 * b + c, 1e-9), -0.5, 0.5)
    f0 = plan.rate / (plan.shortest + first + shift)
    return np.where(is_dip[rows, first] & is_loud, f0, 0.0)


def _normalised_difference(frames: np.ndarray, plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return d' at lags shortest - 1 to longest + 1, and which frames are above the noise floor."""
    lags = plan.longest + 2
    power = np.cumsum(np.square(frames), axis=1, dtype=np.float32)
    power = np.concatenate([np.zeros((len(frames), 1), np.float32), power], axis=1)
    energy = power[:, plan.window : plan.window + lags] - power[:, :lags]
    spectrum = rfft(frames)
    windowed = rfft(frames[:, : plan.window], plan.frame)
    correlation = irfft(spectrum * windowed.conj(), plan.frame)[:, :lags]
    difference = np.maximum(energy[:, :1] + energy - 2.0 * correlation, 0.0)[:, 1:]
    total = np.cumsum(difference, axis=1)
    lag = np.arange(1, lags, dtype=np.float32)
    normalised = difference * lag / np.maximum(total, 1e-12)
    is_loud = energy[:, 0] > plan.window * _SILENCE_RMS**2
    return normalised[:, plan.shortest - 2 :], is_loud


def _frame_pitch_tf(frames: "tf.Tensor", plan: _Plan) -> "tf.Tensor":
    """Return F0 [batch, frames] of decimated frames [batch, frames, plan.frame]."""
    import tensorflow as tf

    normalised, is_loud = _normalised_difference_tf(frames, plan)
    before, here, after = normalised[..., :-2], normalised[..., 1:-1], normalised[..., 2:]
    deepest = tf.reduce_min(here, axis=-1, keepdims=True)
    limit = tf.minimum(deepest + _DEPTH_MARGIN, VOICED_BELOW)
    is_dip = (here < limit) & (here <= before) & (here <= after)
    first = tf.argmax(tf.cast(is_dip, tf.int8), axis=-1, output_type=tf.int32)
    a, b, c = (tf.gather(part, first, batch_dims=2) for part in (before, here, after))
    shift = tf.clip_by_value(0.5 * (a - c) / tf.maximum(a - 2 * b + c, 1e-9), -0.5, 0.5)
    f0 = plan.rate / (plan.shortest + tf.cast(first, tf.float32) + shift)
    return tf.where(tf.reduce_any(is_dip, axis=-1) & is_loud, f0, 0.0)


def _normalised_difference_tf(frames: "tf.Tensor", plan: _Plan) -> "tuple[tf.Tensor, tf.Tensor]":
    """Return what `_normalised_difference` does, [batch, frames, lags] and [batch, frames]."""
    import tensorflow as tf

    lags = plan.longest + 2
    power = tf.cumsum(tf.square(frames), axis=-1)
    power = tf.pad(power, [[0, 0], [0, 0], [1, 0]])
    energy = power[..., plan.window : plan.window + lags] - power[..., :lags]
    spectrum = tf.signal.rfft(frames)
    windowed = tf.signal.rfft(frames[..., : plan.window], fft_length=[plan.frame])
    product = spectrum * tf.math.conj(windowed)
    correlation = tf.signal.irfft(product, fft_length=[plan.frame])[..., :lags]
    difference = tf.maximum(energy[..., :1] + energy - 2.0 * correlation, 0.0)[..., 1:]
    total = tf.cumsum(difference, axis=-1)
    lag = np.arange(1, lags, dtype=np.float32)
    normalised = difference * lag / tf.maximum(total, 1e-12)
    is_loud = energy[..., 0] > plan.window * _SILENCE_RMS**2
    return normalised[..., plan.shortest - 2 :], is_loud
