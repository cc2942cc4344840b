"""Pitch on signals whose F0 is known, on real speech, and its two twins against each other."""

import numpy as np
import pytest
from scipy.signal import sawtooth

from myxtts.audio.io import read_audio
from myxtts.audio.mel import mel_and_energy, num_frames
from myxtts.audio.pitch import mel_energy_and_pitch, mel_energy_and_pitch_tf, pitch, pitch_tf
from myxtts.audio.yin import yin, yin_tf
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.presets import create_default_config
from tests.helpers.shared_data import shared

SPEC = AudioSpec()
WIDE = create_default_config(audio="24k").data.audio_spec
TIME = np.arange(22050) / 22050
METHODS = {"spectrum": (pitch, pitch_tf), "yin": (yin, yin_tf)}


def harmonics(hz: float, first: int, last: int) -> np.ndarray:
    """Add harmonics of equal strength; without the first, the fundamental itself is missing."""
    parts = [np.sin(2 * np.pi * k * hz * TIME + k * k) for k in range(first, last + 1)]
    return np.sum(parts, axis=0) / len(parts)


WAVES = {
    "sine": lambda hz: np.sin(2 * np.pi * hz * TIME),
    "sawtooth": lambda hz: sawtooth(2 * np.pi * hz * TIME),
    "ten harmonics": lambda hz: harmonics(hz, 1, 10),
    "missing fundamental": lambda hz: harmonics(hz, 2, 5),
}


def read_clip(name: str, rate: int = 22050) -> np.ndarray:
    return read_audio(shared("excerpts80") / "wavs" / f"{name}.flac", rate)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("hz", [70.0, 100.0, 123.4, 200.0, 311.0, 440.0, 590.0])
def test_known_f0(wave, hz, method):
    f0 = METHODS[method][0]((0.3 * WAVES[wave](hz)).astype(np.float32), SPEC)
    assert f0.shape == (num_frames(22050, SPEC),) and f0.dtype == np.float32
    # The reflected ends are not periodic.
    np.testing.assert_allclose(f0[3:-3], hz, rtol=0.01)


@pytest.mark.parametrize(
    "spec",
    [
        AudioSpec(sample_rate=16000, hop_length=200),
        AudioSpec(sample_rate=44100, hop_length=441, n_fft=2048, win_length=2048),
        AudioSpec(sample_rate=24000, hop_length=255),
    ],
)
def test_other_rates_and_hops(spec):
    time = np.arange(spec.sample_rate) / spec.sample_rate
    f0 = pitch(sawtooth(2 * np.pi * 150.0 * time).astype(np.float32), spec)
    assert len(f0) == num_frames(spec.sample_rate, spec)
    np.testing.assert_allclose(f0[5:-5], 150.0, rtol=0.01)


@pytest.mark.parametrize(
    ("spec", "fmin"),
    [
        (AudioSpec(n_fft=512, win_length=512), 65.0),
        (AudioSpec(n_fft=4096, win_length=4096), 65.0),
        (AudioSpec(), 25.0),
        (AudioSpec(fmax=1500.0), 65.0),
    ],
    ids=["short frames", "long frames", "low voice", "narrow mels"],
)
def test_frames_that_do_not_suit_the_pitch_are_replaced_by_others(spec, fmin):
    wave = sawtooth(2 * np.pi * 3 * fmin * TIME).astype(np.float32)
    mel, energy, f0 = mel_energy_and_pitch(wave, spec, fmin, 600.0)
    np.testing.assert_allclose(f0[20:-20], 3 * fmin, rtol=0.01)
    np.testing.assert_array_equal(f0, pitch(wave, spec, fmin, 600.0))
    assert len(mel) == len(energy) == len(f0) == num_frames(len(wave), spec)


@pytest.mark.parametrize("spec", [SPEC, AudioSpec(n_fft=512, win_length=512)])
def test_pitch_beside_the_mel_changes_no_bit_of_either(spec):
    rng = np.random.default_rng(1)
    wave = (0.3 * sawtooth(2 * np.pi * 150 * TIME) + rng.normal(0, 0.1, 22050)).astype(np.float32)
    mel, energy, f0 = mel_energy_and_pitch(wave, spec)
    for found, expected in zip((mel, energy), mel_and_energy(wave, spec), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(f0, pitch(wave, spec))
    assert (f0 > 0).mean() > 0.9


def test_an_offset_and_a_rumble_are_no_pitch():
    noise = np.random.default_rng(0).normal(0, 0.01, 22050)
    rumble = 0.3 * np.sin(2 * np.pi * 30 * TIME)
    assert (pitch((0.2 + noise).astype(np.float32), SPEC) > 0).mean() < 0.02
    assert (pitch((rumble + noise).astype(np.float32), SPEC)[3:-3] > 0).mean() < 0.02


def test_a_glide_is_aligned_with_the_mel_frames():
    phase = 2 * np.pi * (100 * TIME + 150 * TIME**2)  # from 100 to 400 Hz within a second
    f0 = pitch(np.sin(phase).astype(np.float32), SPEC)
    centres = (np.arange(len(f0)) * 256 + 128) / 22050
    np.testing.assert_allclose(f0[3:-3], (100 + 300 * centres)[3:-3], rtol=0.01)


def test_loudness_does_not_matter():
    wave = sawtooth(2 * np.pi * 150.0 * TIME)
    loud, soft = (pitch((scale * wave).astype(np.float32), SPEC) for scale in (0.9, 0.003))
    np.testing.assert_allclose(loud, soft, rtol=1e-3)


def test_silence_and_noise_are_unvoiced():
    noise = np.random.default_rng(0).normal(0, 0.1, 44100).astype(np.float32)
    dither = np.sin(2 * np.pi * 100 * TIME).astype(np.float32) / 32768
    assert not pitch(np.zeros(22050, np.float32), SPEC).any()
    assert not pitch(dither, SPEC).any()
    assert (pitch(noise, SPEC) > 0).mean() < 0.02


def test_voicing_begins_and_ends_with_the_tone():
    samples = np.random.default_rng(0).normal(0, 0.01, 3 * 22050).astype(np.float32)
    samples[22050:44100] += 0.3 * sawtooth(2 * np.pi * 200.0 * TIME)
    is_voiced = np.flatnonzero(pitch(samples, SPEC))
    assert abs(is_voiced[0] - 22050 / 256) <= 3 and abs(is_voiced[-1] - 44100 / 256) <= 3


def test_impossible_range_is_rejectd():
    with pytest.raises(ValueError, match="fmin=500"):
        pitch(np.zeros(22050, np.float32), SPEC, fmin=500.0, fmax=100.0)


@pytest.mark.parametrize("samples", [0, 1, 255, 256, 300, 1024])
def test_short_signals(samples):
    assert len(pitch(np.zeros(samples, np.float32), SPEC)) == num_frames(samples, SPEC)


@pytest.mark.parametrize(("clip", "low", "high"), [("WS-61", 80, 140), ("HS-61", 140, 240)])
def test_speech_agrees_with_another_yin(clip, low, high):
    librosa = pytest.importorskip("librosa")
    samples = read_clip(clip)
    ours = pitch(samples, SPEC)
    theirs = librosa.yin(
        np.pad(samples, 896, mode="reflect"), fmin=65, fmax=600, sr=22050, center=False,
        frame_length=2048, hop_length=256,
    )  # fmt: skip
    is_voiced = ours > 0
    ratio = ours[is_voiced] / theirs[: len(ours)][is_voiced]
    assert 0.25 < is_voiced.mean() < 0.8
    assert low < np.median(ours[is_voiced]) < high
    assert np.median(np.abs(ratio - 1)) < 0.02
    assert (np.abs(ratio - 1) > 0.2).mean() < 0.1  # octave errors of either


def test_the_pitch_of_a_clip_does_not_depend_on_the_mels():
    """Frames of both rates at the same times, where both are voiced."""
    narrow = pitch(read_clip("HS-61"), SPEC)
    wide = pitch(read_clip("HS-61", 24000), WIDE)
    at = ((np.arange(len(wide)) + 0.5) * 256 / 24000 * 22050 / 256 - 0.5).round().astype(int)
    at = np.clip(at, 0, len(narrow) - 1)
    both = (wide > 0) & (narrow[at] > 0)
    assert both.sum() > 0.9 * (wide > 0).sum()
    assert np.median(np.abs(wide[both] / narrow[at][both] - 1)) < 0.02


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spec", [SPEC, WIDE], ids=["default", "24k"])
@pytest.mark.parametrize("how", ["graph", "xla", "dataset"])
def test_graph_twin_does_not_hear_the_padding(how, spec, method):
    tf = pytest.importorskip("tensorflow")
    names = ("LJ-61", "WS-61", "HS-61")
    clips = [read_clip(name, spec.sample_rate)[:40000] for name in names]
    clips = [clips[0], clips[1][:30001], clips[2][:9000], clips[2][5000:5600]]
    lengths = np.array([len(clip) for clip in clips], np.int32)
    batch = np.random.default_rng(0).normal(0, 1, (4, 40000)).astype(np.float32)
    for row, clip in enumerate(clips):
        batch[row, : len(clip)] = clip

    def analyse(samples, lengths):
        return METHODS[method][1](samples, lengths, spec)

    signature = [tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None], tf.int32)]
    run = {
        "graph": tf.function(analyse, input_signature=signature),
        "xla": tf.function(analyse, jit_compile=True),
        "dataset": lambda *batch: next(iter(tf.data.Dataset.from_tensors(batch).map(analyse))),
    }[how]
    f0 = run(batch, lengths).numpy()
    assert f0.shape == (4, num_frames(40000, spec))
    agreement = []
    for row, clip in enumerate(clips):
        expected = METHODS[method][0](clip, spec)
        agreement.append(np.isclose(f0[row, : len(expected)], expected, rtol=0.005))
        assert not f0[row, len(expected) :].any()
    assert np.concatenate(agreement).mean() >= 0.99


@pytest.mark.parametrize("spec", [SPEC, AudioSpec(n_fft=512, win_length=512)])
def test_graph_twin_beside_the_mel(spec):
    pytest.importorskip("tensorflow")
    batch = np.stack([WAVES["sawtooth"](100.0), WAVES["ten harmonics"](300.0)]).astype(np.float32)
    mel, energy, f0, counts = mel_energy_and_pitch_tf(batch, None, spec)
    for row, wave in enumerate(batch):
        expected = mel_energy_and_pitch(wave, spec)
        for found, one in zip((mel, energy, f0), expected, strict=True):
            np.testing.assert_allclose(found[row], one, rtol=0.005, atol=1e-3)
        assert counts[row] == len(expected[2])


def test_graph_twin_without_lengths_takes_whole_rows():
    pytest.importorskip("tensorflow")
    batch = np.stack([WAVES["sawtooth"](100.0), WAVES["sine"](300.0)]).astype(np.float32)
    np.testing.assert_allclose(pitch_tf(batch, None, SPEC)[1], pitch(batch[1], SPEC), rtol=0.005)
