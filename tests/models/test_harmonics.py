"""The comb of a pitch: its teeth stand where harmonics of a real tone stand."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.harmonics import HIGHEST, LOWEST, Harmonics
from myxtts.models.prosody import scaled_pitch

SPEC = AudioSpec()
HARMONICS = Harmonics(SPEC)


def comb(hertz: float) -> np.ndarray:
    return HARMONICS(scaled_pitch(tf.constant([[hertz]])))[0, 0].numpy()


def tone(hertz: float) -> np.ndarray:
    """The mean log-mel of a second of equally loud harmonics, in the comb's bands."""
    at = np.arange(SPEC.sample_rate) / SPEC.sample_rate
    samples = sum(np.sin(2 * np.pi * h * at) for h in np.arange(hertz, 4500.0, hertz)) / 50.0
    return log_mel(samples.astype(np.float32), SPEC)[10:-10].mean(axis=0)[: HARMONICS.bands]


@pytest.mark.parametrize("hertz", [120.0, 181.0, 250.0, 333.0])
def test_a_comb_looks_like_the_mel_of_its_tone(hertz):
    assert np.corrcoef(comb(hertz), tone(hertz))[0, 1] > 0.9
    other = np.corrcoef(comb(hertz * 1.1), tone(hertz))[0, 1]
    assert np.corrcoef(comb(hertz), tone(hertz))[0, 1] > other + 0.2


def test_pitches_beyond_the_table_are_taken_as_its_ends():
    np.testing.assert_allclose(comb(LOWEST / 2), comb(LOWEST), atol=1e-5)
    np.testing.assert_allclose(comb(HIGHEST * 2), comb(HIGHEST), atol=0.05)


def test_no_pitch_at_all_has_a_comb_of_numbers():
    assert np.isfinite(HARMONICS(tf.zeros([2, 3])).numpy()).all()
    assert HARMONICS(tf.zeros([2, 3])).shape == (2, 3, HARMONICS.bands)
