"""Where the harmonics of a pitch are among the mel bands, which a decoder need not learn then.

A pitch is one number, and the mel of a voiced sound a comb whose teeth move with it: at first by
little, the tenth by ten times as much. From the comb itself a voice of any height is one step away.
"""

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import hann_window, mel_filterbank
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.prosody import PITCH_CENTRE, PITCH_SCALE

LOWEST, HIGHEST, STEPS = 55.0, 650.0, 256
# Above, the bands are too wide to resolve the harmonics of low voices.
HIGHEST_BAND = 3000.0


class Harmonics:
    """Scaled pitch [batch, tokens] -> its comb [batch, tokens, bands], of about unit scale."""

    def __init__(self, spec: AudioSpec):
        self.table = combs(spec)
        self.bands = self.table.shape[1]

    def __call__(self, pitch: tf.Tensor) -> tf.Tensor:
        logarithm = tf.cast(pitch, tf.float32) * PITCH_SCALE + PITCH_CENTRE
        place = (logarithm - np.log(LOWEST)) / np.log(HIGHEST / LOWEST) * (STEPS - 1)
        # NaN would pass the clipping, and has no place in the table.
        place = tf.where(tf.math.is_nan(place), 0.0, tf.clip_by_value(place, 0.0, STEPS - 1.001))
        before = tf.floor(place)
        share = (place - before)[..., None]
        first = tf.cast(before, tf.int32)
        table = tf.constant(self.table)
        return (1.0 - share) * tf.gather(table, first) + share * tf.gather(table, first + 1)


def combs(spec: AudioSpec) -> np.ndarray:
    """The log-mels [steps, bands] of equally loud harmonics, without their means."""
    bank = mel_filterbank(spec).astype(np.float64)
    bins = np.arange(bank.shape[1]) * spec.sample_rate / spec.n_fft
    used = (bank @ bins) / bank.sum(axis=1) < HIGHEST_BAND
    bank = bank[used]
    lobe = _lobe(spec)
    rows = []
    for hertz in np.geomspace(LOWEST, HIGHEST, STEPS):
        teeth = np.arange(hertz, min(1.5 * HIGHEST_BAND, spec.sample_rate / 2), hertz)
        magnitude = sum(lobe(bins - tooth) for tooth in teeth)
        rows.append(np.log(bank @ magnitude + 1e-3 * bank.sum(axis=1)))
    table = np.array(rows)
    table -= table.mean(axis=1, keepdims=True)
    return (table / table.std()).astype(np.float32)


def _lobe(spec: AudioSpec):
    """The window's magnitude response at distances in Hz, 1 at none."""
    window = hann_window(spec).astype(np.float64)
    at = np.arange(len(window)) / spec.sample_rate
    grid = np.linspace(0.0, 8.0 * spec.sample_rate / spec.win_length, 257)
    response = np.abs(np.exp(-2j * np.pi * grid[:, None] * at) @ window) / window.sum()
    return lambda distance: np.interp(np.abs(distance), grid, response, right=0.0)
