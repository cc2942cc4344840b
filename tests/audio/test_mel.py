"""The log-mel against independent implementations, and its two twins against each other."""

import numpy as np
import pytest

from myxtts.audio.mel import (
    log_mel,
    log_mel_tf,
    mel_and_energy,
    mel_and_energy_tf,
    mel_filterbank,
    num_frames,
)
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.presets import create_default_config
from tests.helpers.shared_data import shared

SPEC = AudioSpec()
SMALL = AudioSpec(16000, n_fft=512, hop_length=160, win_length=400, n_mels=40, fmin=50, fmax=7600)
WIDE = create_default_config(audio="24k").data.audio_spec
SPECS = pytest.mark.parametrize("spec", [SPEC, WIDE, SMALL], ids=["default", "24k", "short window"])
LENGTHS = [9000, 8999, 5000, 1024, 700, 385, 384, 256, 255, 0]


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, samples).astype(np.float32)


def mel_by_definition(samples: np.ndarray, spec: AudioSpec) -> tuple[np.ndarray, np.ndarray]:
    """Compute log-mel and energy frame by frame in float64, straight from the definition."""
    padded = np.pad(samples.astype(np.float64), (spec.n_fft - spec.hop_length) // 2, "reflect")
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(spec.win_length) / spec.win_length)
    side = (spec.n_fft - spec.win_length) // 2
    hann = np.pad(hann, (side, spec.n_fft - spec.win_length - side))
    mels, energies = [], []
    for start in range(0, len(padded) - spec.n_fft + 1, spec.hop_length):
        frame = padded[start : start + spec.n_fft] * hann
        magnitude = np.sqrt(np.abs(np.fft.rfft(frame)) ** 2 + 1e-9)
        mels.append(np.log(np.maximum(mel_filterbank(spec) @ magnitude, spec.floor)))
        energies.append(np.linalg.norm(np.fft.fft(frame)))
    return np.array(mels), np.array(energies)


@pytest.fixture(scope="module")
def reference():
    return np.load(shared("reference") / "mel.npz")


def test_filterbank_equals_the_reference(reference):
    np.testing.assert_allclose(mel_filterbank(SPEC), reference["mel_basis"], atol=1e-8)


def test_filterbank_equals_librosa_for_another_spec():
    filters = pytest.importorskip("librosa.filters")
    expected = filters.mel(sr=16000, n_fft=512, n_mels=40, fmin=50, fmax=7600)
    np.testing.assert_allclose(mel_filterbank(SMALL), expected, atol=1e-8)


def test_filterbank_is_shared_and_cannot_be_changed():
    assert mel_filterbank(SPEC) is mel_filterbank(AudioSpec())
    with pytest.raises(ValueError, match="read-only"):
        mel_filterbank(SPEC)[0, 0] = 1.0


@pytest.mark.parametrize("clip", ["LJ_61", "WS_61", "HS_61"])
def test_log_mel_equals_the_reference(reference, clip):
    mel = log_mel(reference[f"pcm_{clip}"] / np.float32(32768), SPEC)
    assert_equals_reference(mel, reference[f"logmel_{clip}"])


@pytest.mark.parametrize("clip", ["LJ_61", "WS_61", "HS_61"])
def test_graph_twin_equals_the_reference(reference, clip):
    pytest.importorskip("tensorflow")
    mel, _ = log_mel_tf(reference[f"pcm_{clip}"][None] / np.float32(32768), SPEC)
    assert_equals_reference(mel[0].numpy(), reference[f"logmel_{clip}"])


def assert_equals_reference(mel: np.ndarray, expected: np.ndarray):
    assert mel.shape == expected.shape and mel.dtype == np.float32
    difference = np.abs(mel - expected)
    assert difference.mean() < 1e-5 and difference.max() < 1e-3


@SPECS
def test_mel_and_energy_by_definition(spec):
    # 20000 samples are more frames than one block.
    mel, energy = mel_and_energy(noise(20000), spec)
    expected_mel, expected_energy = mel_by_definition(noise(20000), spec)
    np.testing.assert_allclose(mel, expected_mel, atol=1e-4)
    np.testing.assert_allclose(energy, expected_energy, rtol=1e-5)
    assert mel.dtype == energy.dtype == np.float32
    np.testing.assert_array_equal(mel, log_mel(noise(20000), spec))


def test_the_filters_of_24_khz_reach_every_bin_up_to_half_the_rate():
    """All mels show something, and together all that there is; of equal area."""
    bank = mel_filterbank(WIDE)
    assert bank.shape == (100, 513)
    assert ((bank > 0).sum(axis=1) >= 2).all() and bank[:, 1:512].any(axis=0).all()
    area = bank.sum(axis=1) * WIDE.sample_rate / WIDE.n_fft
    np.testing.assert_allclose(area[30:], 1.0, rtol=0.1)


def test_energy_of_a_constant():
    # Inside a constant 1 the windowed frame is the Hann window; its squares sum to 3/8 n_fft.
    _, energy = mel_and_energy(np.ones(5120, np.float32), SPEC)
    np.testing.assert_allclose(energy, 1024 * np.sqrt(3 / 8), rtol=1e-6)


def test_digital_silence_is_the_floor():
    mel, energy = mel_and_energy(np.zeros(2560, np.float32), SPEC)
    np.testing.assert_allclose(mel, np.full((10, 80), np.log(1e-5)), rtol=1e-6)
    np.testing.assert_array_equal(energy, np.zeros(10))


@pytest.mark.parametrize("spec", [SPEC, WIDE, SMALL, AudioSpec(hop_length=255)])
def test_num_frames_is_what_log_mel_gives(spec):
    for samples in [*range(0, 1100, 37), 255, 256, 257, 511, 512, 22050]:
        assert log_mel(noise(samples), spec).shape == (num_frames(samples, spec), spec.n_mels)


def test_num_frames_is_samples_over_hop():
    assert [num_frames(n, SPEC) for n in (0, 255, 256, 511, 512, 74198)] == [0, 0, 1, 1, 2, 289]


def padded_batch() -> np.ndarray:
    """Make rows of different lengths, padded with loud garbage that must not matter."""
    batch = np.full((len(LENGTHS), max(LENGTHS)), 7.0, np.float32)
    for row, length in enumerate(LENGTHS):
        batch[row, :length] = noise(length, seed=row)
    return batch


def assert_rows_equal_unpadded(mel, energy, counts, spec):
    assert mel.shape == (len(LENGTHS), num_frames(max(LENGTHS), spec), spec.n_mels)
    for row, length in enumerate(LENGTHS):
        expected_mel, expected_energy = mel_and_energy(noise(length, seed=row), spec)
        count = len(expected_mel)
        assert counts[row] == count
        np.testing.assert_allclose(mel[row, :count], expected_mel, atol=1e-4)
        np.testing.assert_allclose(energy[row, :count], expected_energy, rtol=1e-5)
        assert not mel[row, count:].any() and not energy[row, count:].any()


@SPECS
@pytest.mark.parametrize("how", ["eager", "graph", "xla", "dataset"])
def test_graph_twin_does_not_hear_the_padding(how, spec):
    tf = pytest.importorskip("tensorflow")

    def analyse(samples, lengths):
        return mel_and_energy_tf(samples, spec, lengths)

    signature = [tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None], tf.int32)]
    run = {
        "eager": analyse,
        "graph": tf.function(analyse, input_signature=signature),
        "xla": tf.function(analyse, jit_compile=True),
        "dataset": lambda *batch: next(
            iter(tf.data.Dataset.from_tensors(batch).repeat().map(analyse))
        ),
    }[how]
    mel, energy, counts = run(padded_batch(), np.array(LENGTHS, np.int32))
    assert_rows_equal_unpadded(mel.numpy(), energy.numpy(), counts.numpy(), spec)


def test_graph_twin_without_lengths_takes_whole_rows():
    pytest.importorskip("tensorflow")
    batch = np.stack([noise(3000, 1), noise(3000, 2)])
    mel, counts = log_mel_tf(batch, SPEC)
    np.testing.assert_array_equal(counts, [11, 11])
    np.testing.assert_allclose(mel[1], log_mel(batch[1], SPEC), atol=1e-4)
