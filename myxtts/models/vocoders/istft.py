"""A light vocoder for CPUs: a source of pulses and noise, filtered in the frequency domain.

A convolutional trunk at the rate of the frames predicts pitch and timbre of a log-mel. A clock
turns the pitch into a train of pulses, whose phases run on through any vowel, however steady: a
network that sees some frames alone can only repeat itself with every hop. The trunk decides how
pulses and noise mix, with which phases, in each band; the mel decides how loud. What an inverse
STFT makes of that does not have exactly the wanted mel, since neighbouring frames overlap:
`projections` correct it, with the momentum of the fast Griffin-Lim algorithm.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.mel import hann_window, mel_filterbank, mel_scale
from myxtts.audio.stft import istft_tf, magnitude_tf, stft_tf
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import SETTINGS, ConfigError, ModelConfig, audio_spec_of
from myxtts.config.fields import coerce
from myxtts.models.layers import serialisable
from myxtts.models.vocoders.base import Size, Window
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.models.vocoders.settings import check_names, check_whole

LOWEST_PITCH, USUAL_PITCH, HIGHEST_PITCH = 50.0, 180.0, 700.0
MOMENTUM = 0.99
NOISE_FRAMES = 1024  # after 12 seconds the noise begins again
# From beat to beat the clock turns a whole number of times, so that an error of the pitch, however
# small, does not add up over a sentence: the highest harmonics would be elsewhere at its end. In
# shorter steps it turns whole parts of a cycle. Each row (frames, parts) moves the pitch by some
# tenths of a Hz, which is inaudible.
BEATS = ((64, 1), (32, 2), (16, 4), (8, 8), (4, 16))
BEAT = BEATS[0][0]
_LEAST_SINE = 1e-6
_LEVEL, _SPREAD = -5.0, 3.0  # of log-mels, roughly
QUIET = 1e-5
_MOST_BANDS = 4096


@serialisable
class ISTFTVocoder(NeuralVocoder):
    """Log-mels [batch, frames, n_mels] to waveforms [batch, frames * hop_length].

    Besides the waveform it returns the pitch [batch, frames] that it predicts, and the clock
    [batch, frames] in cycles. With `anchor` and `phase` the clock shows `phase` at frame
    `anchor` of each; `first_frame` is the place of the first frame in the noise, and gives the
    clock its beats. A given `pitch` [batch, frames] is used where it is above 0.
    """

    kind = "istft"
    predicts_pitch = True
    edge_frames = 4  # they lack the neighbours that overlap them

    def __init__(
        self,
        spec: dict,
        dim: int = 128,
        blocks: int = 2,
        bands: int = 64,
        projections: int = 4,
        **kwargs,
    ):
        super().__init__(**{**kwargs, "autocast": False, "dtype": "float32"})
        self.settings = {
            "spec": spec,
            "dim": dim,
            "blocks": blocks,
            "bands": bands,
            "projections": projections,
        }
        self.spec, self.projections = AudioSpec(**spec), projections
        layer = {"dtype": "float32"}
        self.pre = keras.layers.Conv1D(dim, 5, padding="same", name="pre", **layer)
        self.trunk = [_Block(dim, name=f"block_{n}", **layer) for n in range(blocks)]
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, name="norm", **layer)
        self.pitch_head = keras.layers.Dense(1, name="pitch", **layer)
        self.mix_head = keras.layers.Dense(3 * bands, name="mix", **layer)
        bins = self.spec.n_fft // 2 + 1
        self.gain_head = keras.layers.Dense(bins, kernel_initializer="zeros", name="gain", **layer)
        self.filters = mel_filterbank(self.spec).T
        self.shares = _band_shares(self.spec)
        self.spread = _band_spread(self.spec, bands)
        self.cycles = _clock_weights(self.spec)

    def build(self, input_shape=None):
        dim = self.settings["dim"]
        self.pre.build((None, None, self.spec.n_mels))
        for block in self.trunk:
            block.build((None, None, dim))
        for layer in (self.norm, self.pitch_head, self.mix_head, self.gain_head):
            layer.build((None, None, dim))
        self.built = True

    @classmethod
    def settings_from(cls, config: ModelConfig, spec: AudioSpec) -> dict[str, Any]:
        sizes = {
            name: getattr(config, f"istft_{name}") for name in ("dim", "blocks", "projections")
        }
        return {"spec": asdict(spec), **sizes}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any], spec: AudioSpec) -> Size:
        return _check_settings(settings, spec)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "ISTFTVocoder":
        return cls(**settings, name=cls.kind)

    @property
    def hop(self) -> int:
        return self.spec.hop_length

    @property
    def n_mels(self) -> int:
        return self.spec.n_mels

    @property
    def context_frames(self) -> int:
        """How many frames on each side a sample depends on, apart from clock and noise."""
        overlap = -(-self.spec.n_fft // self.spec.hop_length) - 1
        trunk = 2 + self.settings["blocks"] + 1
        return trunk + overlap * (2 + self.projections) + BEAT

    def call(self, mel, pitch=None, anchor=None, phase=None, first_frame=None, projections=None):
        mel = tf.cast(mel, tf.float32)
        predicted, mix, gain = self.trunk_outputs(mel)
        used = predicted if pitch is None else tf.where(pitch > 0, pitch, predicted)
        samples, clock = self.pulse_train(tf.stop_gradient(used), anchor, phase, first_frame)
        pulses = stft_tf(samples, self.spec, "CONSTANT")
        spectrum = self._filtered(pulses, mix, tf.shape(mel)[1], first_frame)
        spectrum = self._as_loud(spectrum, mel, gain)
        count = self.projections if projections is None else projections
        spectrum = self._projected(spectrum, mel, count)
        return {"waveform": istft_tf(spectrum, self.spec), "pitch": predicted, "clock": clock}

    def waveform(self, mel):
        return self(mel)["waveform"]

    def training_outputs(self, batch):
        return self(
            batch["mel"], pitch=batch["pitch"], first_frame=batch["first_frame"], projections=0
        )

    def generate(self, mel, state=None, seed=0, window=None):
        """The state is the phase of the clock [1] behind the window; the seed is another noise."""
        window = window or Window(0, len(mel))
        start, stop = window.start, window.stop
        phase = np.zeros(1, np.float32) if state is None else state
        out = self.inference_function(mel[None], start, phase, window.place(seed))
        samples = out["waveform"][0, start * self.hop : stop * self.hop].numpy()
        return samples, out["clock"][:, stop].numpy() if stop < len(mel) else phase

    @cached_property
    def inference_function(self):
        """The model, compiled once for mels of all lengths."""
        number, phase = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)

        def run(mel, anchor, phase, first_frame):
            return self(mel, anchor=anchor, phase=phase, first_frame=first_frame)

        return tf.function(run, input_signature=[self._mel_signature, number, phase, number])

    def trunk_outputs(self, mel):
        """Pitch [batch, frames] in Hz, mixture [batch, frames, 3 * bands], log-gain of bins."""
        h = self.features(mel)
        return self.pitch_of(h), self.mix_head(h), self.gain_head(h)

    def features(self, mel):
        """What all heads read: [batch, frames, dim]."""
        h = self.pre((mel - _LEVEL) / _SPREAD)
        for block in self.trunk:
            h = block(h)
        return self.norm(h)

    def pitch_of(self, features):
        """Pitch [batch, frames] in Hz."""
        octaves = 0.5 * self.pitch_head(features)[..., 0]
        return tf.clip_by_value(USUAL_PITCH * tf.exp(octaves), LOWEST_PITCH, HIGHEST_PITCH)

    def pulse_train(self, pitch, anchor=None, phase=None, first_frame=None):
        """The samples of a train of pulses of some pitch, and the clock at the frames' starts.

        A pulse is the sum of all harmonics below half the sample rate, in closed form; the highest
        one fades in, so that a pitch at a limit does not switch it on and off.
        """
        within, clock = self._cycles(pitch, first_frame)
        if anchor is not None:
            clock += tf.cast(phase, tf.float64)[:, None] - clock[:, anchor : anchor + 1]
        clock = tf.cast(tf.math.floormod(clock, 1.0), tf.float32)
        cycles = clock[..., None] + within
        angle = math.pi * (cycles - tf.round(cycles))
        below_nyquist = (0.5 * self.spec.sample_rate / pitch)[..., None]
        harmonics = tf.floor(below_nyquist)
        highest = below_nyquist - harmonics  # how much of the last one there is
        sine = tf.sin(angle)
        is_safe = tf.abs(sine) > _LEAST_SINE
        ratio = tf.sin((2.0 * harmonics - 1.0) * angle) / tf.where(is_safe, 2.0 * sine, 1.0)
        pulses = tf.where(is_safe, ratio, harmonics - 0.5) - 0.5
        pulses += highest * tf.cos(2.0 * harmonics * angle)
        pulses *= tf.math.rsqrt(0.5 * (below_nyquist - 1.0))  # as loud as the noise
        return tf.reshape(pulses, [tf.shape(pitch)[0], -1]), clock

    def _cycles(self, pitch, first_frame):
        """Cycles since the start of each frame at its samples, and at the frames' starts, float64.

        Without `first_frame` there are no beats.
        """
        before = tf.concat([pitch[:, :1], pitch[:, :-1]], axis=1)
        behind = tf.concat([pitch[:, 1:], pitch[:, -1:]], axis=1)
        around = tf.stack([before, pitch, behind], axis=-1)
        # Cycles add up to thousands: float32 would leave high harmonics out of tune.
        within = product(around, self.cycles)
        within, whole = within[..., :-1], tf.cast(within[..., -1], tf.float64)
        if first_frame is not None:
            lacks = _lacks(whole, first_frame)
            whole += lacks
            within += tf.cast(lacks, tf.float32)[..., None] * middles(self.spec)
        return within, tf.cumsum(whole, axis=1, exclusive=True)

    def _filtered(self, pulses, mix, frames, first_frame):
        """Pulses under a complex filter, and noise under a real one."""
        real, imaginary, noise_gain = (
            product(part, self.spread) for part in tf.split(mix, 3, axis=-1)
        )
        at = tf.range(frames)
        at = at if first_frame is None else at + first_frame
        noise = tf.gather(_noise_spectra(self.spec), tf.math.floormod(at, NOISE_FRAMES))[None]
        return tf.complex(1.0 + real, imaginary) * pulses + _scaled(
            noise, tf.nn.softplus(noise_gain)
        )

    def _as_loud(self, spectrum, mel, log_gain=None):
        """Each bin times what its bands lack of the mel."""
        present = product(magnitude_tf(spectrum), self.filters)
        gain = product(tf.exp(mel) / tf.maximum(present, QUIET), self.shares)
        return _scaled(spectrum, gain if log_gain is None else gain * tf.exp(log_gain))

    def _projected(self, spectrum, mel, count):
        before = None
        for _ in range(count):
            now = stft_tf(istft_tf(spectrum, self.spec), self.spec)
            pushed = now if before is None else now + MOMENTUM * (now - before)
            spectrum, before = self._as_loud(pushed, mel), now
        return spectrum

    def get_config(self):
        return {**super().get_config(), **self.settings}


@serialisable
class _Block(keras.layers.Layer):
    """A residual block: normalise, look at the neighbours, widen and narrow."""

    def __init__(self, dim: int, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        layer = {"dtype": "float32"}
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, name="norm", **layer)
        self.widen = keras.layers.Conv1D(2 * dim, 3, padding="same", name="widen", **layer)
        self.narrow = keras.layers.Dense(dim, name="narrow", **layer)

    def build(self, shape):
        self.norm.build(shape)
        self.widen.build(shape)
        self.narrow.build((*shape[:-1], 2 * self.dim))

    def call(self, x):
        return x + self.narrow(tf.nn.gelu(self.widen(self.norm(x)), approximate=True))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}


def _check_settings(settings: Mapping[str, Any], spec: AudioSpec) -> Size:
    check_names(settings, ("spec",), ("dim", "blocks", "bands", "projections"))
    if not isinstance(settings["spec"], dict) or audio_spec_of(settings["spec"]) != spec:
        raise ConfigError("the mels of its settings are not those that it was made for")
    sizes = {"dim": 0, "blocks": 0, "bands": 0, **settings}
    for name in ("dim", "blocks", "projections"):
        if name in settings:
            check_whole(name, settings[name])
            coerce(name, SETTINGS[f"model.istft_{name}"], settings[name])
    if "bands" in settings:
        check_whole("bands", settings["bands"], 2, _MOST_BANDS)
    dim, blocks, bands = (sizes[name] for name in ("dim", "blocks", "bands"))
    outputs = 3 * bands + spec.n_fft // 2 + 1
    return Size(dim * (5 * spec.n_mels + outputs) + blocks * 8 * dim * dim, blocks)


def product(x, matrix):
    """`x` [batch, frames, n] times a matrix [n, m].

    As a product in two dimensions: for one in three, oneDNN compiles code for every number of
    frames, and keeps 1.5 MB of it.
    """
    return tf.tensordot(x, matrix, 1)


def _lacks(cycles, first_frame):
    """What the cycles [batch, frames] of frames lack so that all `BEATS` turn whole parts."""
    frames = tf.shape(cycles)[1]
    at, lacks = tf.range(frames), tf.zeros_like(cycles)
    for length, parts in BEATS:
        ends = tf.cumsum(cycles + lacks, axis=1)
        ends = tf.concat([tf.zeros_like(ends[:, :1]), ends], axis=1)
        first = at - tf.math.floormod(at + first_frame, length)
        is_whole = (first >= 0) & (first + length <= frames)
        last = tf.gather(ends, tf.minimum(first + length, frames), axis=1)
        turned = parts * (last - tf.gather(ends, tf.maximum(first, 0), axis=1))
        lacks += tf.where(is_whole, (tf.round(turned) - turned) / (parts * length), 0.0)
    return lacks


def _scaled(spectrum, gain):
    return spectrum * tf.complex(gain, tf.zeros_like(gain))


def middles(spec: AudioSpec) -> np.ndarray:
    """How far into its hop the middle of each sample is: [hop]."""
    return ((np.arange(spec.hop_length) + 0.5) / spec.hop_length).astype(np.float32)


def _clock_weights(spec: AudioSpec) -> np.ndarray:
    """Cycles of a hop's samples and of a whole hop [3, hop + 1], per Hz before, in and behind it.

    The pitch of a frame is that in the middle of its hop, and runs straight in between.
    """
    at = (np.arange(spec.hop_length) + 0.5) / spec.hop_length
    before, behind = np.maximum(0.5 - at, 0.0), np.maximum(at - 0.5, 0.0)
    weights = np.stack([before, 1.0 - before - behind, behind]) / spec.sample_rate
    middles = np.cumsum(weights, axis=1) - 0.5 * weights
    whole = weights.sum(axis=1, keepdims=True)
    return np.concatenate([middles, whole], axis=1).astype(np.float32)


def _band_shares(spec: AudioSpec) -> np.ndarray:
    """The share of each band [n_mels, bins] in a bin; outside of all bands, the nearest one."""
    filters = mel_filterbank(spec)
    used = np.flatnonzero(filters.any(axis=0))
    shares = filters / np.maximum(filters.sum(axis=0), 1e-12)
    shares[0, : used[0]] = 1.0
    shares[-1, used[-1] + 1 :] = 1.0
    return shares.astype(np.float32)


def _band_spread(spec: AudioSpec, bands: int) -> np.ndarray:
    """Straight lines [bands, bins] between the values of bands, evenly spaced in mel."""
    bins = mel_scale(np.arange(spec.n_fft // 2 + 1) * (spec.sample_rate / spec.n_fft))
    centres = np.linspace(bins[0], bins[-1], bands)
    step = centres[1] - centres[0]
    near = np.maximum(0.0, 1.0 - np.abs(bins[None] - centres[:, None]) / step)
    return near.astype(np.float32)


def noise_samples(spec: AudioSpec) -> np.ndarray:
    """White noise [NOISE_FRAMES * hop] that goes round, in numbers that fit into float16."""
    samples = np.random.default_rng(0).normal(size=NOISE_FRAMES * spec.hop_length)
    return samples.astype(np.float16).astype(np.float64)


@lru_cache(maxsize=4)
def _noise_spectra(spec: AudioSpec) -> np.ndarray:
    """Spectra [NOISE_FRAMES, bins] of white noise that goes round."""
    samples = noise_samples(spec)
    around = np.concatenate([samples, samples[: spec.n_fft]])
    frames = np.lib.stride_tricks.sliding_window_view(around, spec.n_fft)[:: spec.hop_length]
    windowed = frames[:NOISE_FRAMES] * hann_window(spec)
    return np.fft.rfft(windowed, axis=1).astype(np.complex64)
