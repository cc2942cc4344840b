"""Features of the published encoders from a log-mel, against those from the samples."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio import speaker_features as published
from myxtts.audio.io import resample
from myxtts.audio.mel import log_mel
from myxtts.config.config import AudioSpec
from myxtts.config.presets import create_default_config
from myxtts.models.speaker_encoders.encoder_features import EncoderFeatures
from tests.helpers.shared_data import shared

SPECS = {
    "22 kHz": AudioSpec(),
    "24k": create_default_config(audio="24k").data.audio_spec,
    "24 kHz": AudioSpec(sample_rate=24000, hop_length=300, n_fft=1200, win_length=1200, n_mels=100),
    "16 kHz": AudioSpec(sample_rate=16000, hop_length=200, n_fft=800, win_length=800),
}
BANDS = {
    "ecapa_tdnn": published.ECAPA_BANDS,
    "resemblyzer": published.RESEMBLYZER_BANDS,
    "coqui": published.COQUI_BANDS,
}
TRUE_FEATURES = {
    "ecapa_tdnn": published.ecapa_features,
    # Its powers span nine decades, of which a correlation would see the highest only.
    "resemblyzer": lambda samples: np.log(published.resemblyzer_mel(samples) + 1e-7),
    "coqui": published.coqui_features,
}
# What was measured on the clips of three readers at three rates: the lowest correlation of all
# features, and the highest root of the mean square of their differences, in each kind's own unit
# (decibels, natural logarithms of powers, deviations).
MEASURED = {"ecapa_tdnn": (0.948, 4.5), "resemblyzer": (0.975, 0.95), "coqui": (0.941, 0.35)}
CLIPS = ("LJ_61", "WS_61", "HS_61")


@cache
def clip(name: str) -> np.ndarray:
    """A real recording at 16 kHz."""
    vectors = np.load(shared("reference") / "ecapa.npz")
    return (vectors[f"pcm_{name}"] / 32768).astype(np.float32)


def noise(seconds: float) -> np.ndarray:
    random = np.random.default_rng(0)
    return (0.1 * random.normal(size=round(16000 * seconds))).astype(np.float32)


def mel_of(samples: np.ndarray, spec: AudioSpec) -> np.ndarray:
    return log_mel(resample(samples, 16000, spec.sample_rate), spec)


def features_of(kind: str, spec: AudioSpec, *mels: np.ndarray) -> list[np.ndarray]:
    """The features of some mels in one batch; what is behind their ends is no speech."""
    lengths = np.array([len(mel) for mel in mels], np.int32)
    batch = np.full((len(mels), lengths.max(), spec.n_mels), 3.0, np.float32)
    for row, mel in zip(batch, mels, strict=True):
        row[: len(mel)] = mel
    features, counts = EncoderFeatures(kind, spec)(batch, tf.constant(lengths))
    assert features.shape[2] == BANDS[kind]
    return [row[:count] for row, count in zip(features.numpy(), counts.numpy(), strict=True)]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kind", BANDS)
def test_features_of_a_mel_are_almost_those_of_the_samples(kind, spec):
    lowest, highest = MEASURED[kind]
    for name in CLIPS:
        samples = clip(name)
        truth = TRUE_FEATURES[kind](samples)
        (found,) = features_of(kind, SPECS[spec], mel_of(samples, SPECS[spec]))
        found = np.log(found + 1e-7) if kind == "resemblyzer" else found
        # The encoders' frames reach to the end, where the mel has one less.
        assert 0 <= len(truth) - len(found) <= 1
        truth = truth[: len(found)]
        assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > lowest - 0.01
        assert np.sqrt(np.mean((found - truth) ** 2)) < 1.1 * highest


@pytest.mark.parametrize("spec", SPECS)
def test_of_noise_the_powers_are_right_in_every_band(spec):
    """Only Resemblyzer's features keep the level; the others subtract each band's mean."""
    samples = noise(10.0)
    (found,) = features_of("resemblyzer", SPECS[spec], mel_of(samples, SPECS[spec]))
    truth = published.resemblyzer_mel(samples)
    # The highest band ends at 8 kHz, above which the mel has nothing to spread.
    ratio = (found[3:-3].mean(axis=0) / truth[3:-3].mean(axis=0))[:-1]
    assert 0.95 < ratio.min() and ratio.max() < 1.2


@pytest.mark.parametrize("kind", BANDS)
def test_features_are_aligned_with_the_frames(kind):
    """No shift in time fits as well as none, and a frame too late fits as one too early."""
    samples, spec = noise(6.0), AudioSpec()
    (found,) = features_of(kind, spec, mel_of(samples, spec))
    truth = TRUE_FEATURES[kind](samples)
    if kind == "resemblyzer":
        found = np.log(found + 1e-7)
    found, truth = found[5:-5], truth[5 : len(found) - 5]
    found, truth = found - found.mean(axis=0), truth - truth.mean(axis=0)
    early, at, late = (
        np.corrcoef(found[2 + s : len(found) - 2 + s].ravel(), truth[2:-2].ravel())[0, 1]
        for s in (-1, 0, 1)
    )
    assert at > 0.75 and early < at - 0.2 and late < at - 0.2
    assert early == pytest.approx(late, abs=0.05)


@pytest.mark.parametrize("kind", BANDS)
def test_padding_does_not_change_the_result(kind):
    spec = AudioSpec()
    mels = [mel_of(noise(seconds), spec) for seconds in (0.9, 0.4, 0.2)]
    mels[1] = mels[1] - np.linspace(0, 3, len(mels[1]), dtype=np.float32)[:, None]
    together = features_of(kind, spec, *mels)
    for mel, row in zip(mels, together, strict=True):
        (alone,) = features_of(kind, spec, mel)
        assert row.shape == alone.shape
        np.testing.assert_allclose(row, alone, rtol=1e-4, atol=1e-4 * np.abs(alone).max())


@pytest.mark.parametrize("kind", BANDS)
def test_behind_the_end_there_is_nothing(kind):
    spec = AudioSpec()
    mel = np.full((1, 60, spec.n_mels), 2.0, np.float32)
    mel[0, :20] = mel_of(noise(0.4), spec)[:20]
    features, counts = EncoderFeatures(kind, spec)(mel, tf.constant([20]))
    assert counts.numpy().tolist() == [1 + int(20 * 256 / 22050 * 100)]
    assert not features[0, int(counts[0]) :].numpy().any()


@pytest.mark.parametrize("kind", BANDS)
def test_a_gradient_reaches_every_real_frame_of_the_mel_and_no_other(kind):
    spec = AudioSpec()
    mel = tf.Variable(np.pad(mel_of(noise(0.5), spec), [(0, 5), (0, 0)])[None])
    length = mel.shape[1] - 5
    hearing = EncoderFeatures(kind, spec)
    with tf.GradientTape() as tape:
        features, _ = hearing(mel, tf.constant([length]))
        # Sums, and sums of squares, over time are constant in some.
        loss = tf.reduce_sum(features * np.random.default_rng(0).normal(size=features.shape[1:]))
    gradient = np.abs(tape.gradient(loss, mel)[0].numpy())
    assert np.isfinite(gradient).all()
    assert (gradient[:length].max(axis=1) > 0).all() and not gradient[length:].any()
    # Every band is felt by some of theirs.
    assert (gradient[:length].max(axis=0) > 0).all()


@pytest.mark.parametrize("kind", BANDS)
def test_silence_and_a_single_frame_give_numbers(kind):
    spec = AudioSpec()
    for frames in (1, 2, 40):
        mel = tf.Variable(np.full((1, frames, spec.n_mels), np.log(spec.floor), np.float32))
        with tf.GradientTape() as tape:
            features, _ = EncoderFeatures(kind, spec)(mel, tf.constant([frames]))
            loss = tf.reduce_sum(tf.square(features))
        assert np.isfinite(features).all()
        assert np.isfinite(tape.gradient(loss, mel)).all()
