"""The comb of a pitch: its teeth stand where harmonics of a real tone stand."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.presets import create_default_config
from myxtts.models.harmonics import HIGHEST, LOWEST, Harmonics
from myxtts.models.prosody import scaled_pitch

SPEC = AudioSpec()
WIDE = create_default_config(audio="24k").data.audio_spec
HARMONICS = {spec: Harmonics(spec) for spec in (SPEC, WIDE)}


def comb(hertz: float, spec: AudioSpec = SPEC) -> np.ndarray:
    return HARMONICS[spec](scaled_pitch(tf.constant([[hertz]])))[0, 0].numpy()


def tone(hertz: float, spec: AudioSpec) -> np.ndarray:
    """The mean log-mel of a second of equally loud harmonics, in the comb's bands."""
    at = np.arange(spec.sample_rate) / spec.sample_rate
    samples = sum(np.sin(2 * np.pi * h * at) for h in np.arange(hertz, 4500.0, hertz)) / 50.0
    mel = log_mel(samples.astype(np.float32), spec)
    return mel[10:-10].mean(axis=0)[: HARMONICS[spec].bands]


@pytest.mark.parametrize("spec", [SPEC, WIDE], ids=["default", "24k"])
@pytest.mark.parametrize("hertz", [120.0, 181.0, 250.0, 333.0])
def test_a_comb_looks_like_the_mel_of_its_tone(hertz, spec):
    likeness = np.corrcoef(comb(hertz, spec), tone(hertz, spec))[0, 1]
    assert likeness > 0.9
    assert likeness > np.corrcoef(comb(hertz * 1.1, spec), tone(hertz, spec))[0, 1] + 0.2


def test_both_audio_presets_have_the_bands_below_3_khz():
    assert [HARMONICS[spec].bands for spec in (SPEC, WIDE)] == [55, 61]


def test_pitches_beyond_the_table_are_taken_as_its_ends():
    np.testing.assert_allclose(comb(LOWEST / 2), comb(LOWEST), atol=1e-5)
    np.testing.assert_allclose(comb(HIGHEST * 2), comb(HIGHEST), atol=0.05)


def test_no_pitch_at_all_has_a_comb_of_numbers():
    combs = HARMONICS[SPEC](tf.zeros([2, 3]))
    assert np.isfinite(combs.numpy()).all()
    assert combs.shape == (2, 3, HARMONICS[SPEC].bands)
