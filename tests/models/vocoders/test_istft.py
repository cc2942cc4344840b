"""The light vocoder: its pulses, what it depends on, and that its sound has the given mel."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.audio.stft import istft_tf, stft_tf
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.vocoders.istft import BEATS, NOISE_FRAMES, ISTFTVocoder, _noise_spectra
from myxtts.training.vocoder.losses import pitch_loss
from tests.helpers.tiny_vocoder import SMALL, SPEC, tiny_vocoder, voiced_mel


@pytest.fixture(scope="module")
def model() -> ISTFTVocoder:
    return tiny_vocoder()


@pytest.fixture(scope="module")
def small() -> ISTFTVocoder:
    return tiny_vocoder(SMALL)


def excitation(model: ISTFTVocoder, pitch: np.ndarray) -> np.ndarray:
    """The samples [batch, frames * hop] of the pulses of pitches [batch, frames]."""
    samples, _ = model.pulse_train(tf.constant(pitch, tf.float32))
    spectra = stft_tf(samples, model.spec, "CONSTANT")
    return istft_tf(spectra, model.spec).numpy()


def clock_of(pitch: np.ndarray, spec: AudioSpec) -> tuple[np.ndarray, np.ndarray]:
    """In float64: the cycles at each sample of a pitch that runs straight between the middles."""
    hop = spec.hop_length
    at = np.arange(len(pitch) * hop) + 0.5
    hz = np.interp(at, hop * (np.arange(len(pitch)) + 0.5), pitch) / spec.sample_rate
    cycles = np.cumsum(hz)
    return cycles - 0.5 * hz, np.concatenate([[0.0], cycles])[:-1:hop]


def harmonics_of(pitch: np.ndarray, spec: AudioSpec) -> np.ndarray:
    return np.floor(0.5 * spec.sample_rate / np.float32(pitch)).astype(int)


def turned(difference: np.ndarray) -> np.ndarray:
    """How far two clocks are apart, in cycles."""
    return np.abs(difference - np.round(difference))


# What comes out.


@pytest.mark.parametrize("frames", [1, 2, 5, 30])
def test_there_are_hop_length_samples_to_a_frame(model, frames):
    said = model(np.repeat(voiced_mel(frames), 2, axis=0))
    assert said["waveform"].shape == (2, frames * 256)
    assert said["pitch"].shape == said["clock"].shape == (2, frames)
    assert np.isfinite(said["waveform"]).all()
    assert np.all((said["pitch"] >= 50) & (said["pitch"] <= 700))
    assert np.all((said["clock"] >= 0) & (said["clock"] < 1))


def test_a_hop_that_leaves_an_odd_padding_has_its_samples_as_well():
    spec = AudioSpec(hop_length=255)
    assert tiny_vocoder(spec)(np.zeros((1, 9, 80), np.float32))["waveform"].shape == (1, 9 * 255)


def test_mels_in_half_precision_are_computed_in_float32(small):
    mel = voiced_mel(20, SMALL).astype(np.float16)
    half, full = small(mel)["waveform"], small(mel.astype(np.float32))["waveform"]
    assert half.dtype == tf.float32
    np.testing.assert_array_equal(half, full)


def test_speaking_has_no_product_that_is_compiled_for_each_number_of_frames(small):
    """oneDNN keeps the code of products in three dimensions for every shape and every thread."""
    operations = small.inference_function.get_concrete_function().graph.get_operations()
    assert not [one.name for one in operations if one.type == "BatchMatMulV2"]


def test_the_rows_of_a_batch_do_not_hear_each_other(small):
    mels = np.concatenate([voiced_mel(25, SMALL, hz=hz) for hz in (110.0, 190.0)])
    both = small(mels)["waveform"]
    for row in range(2):
        alone = small(mels[row : row + 1])["waveform"][0]
        np.testing.assert_allclose(both[row], alone, atol=1e-4)


# Pulses.


def height_at(samples: np.ndarray, hz: np.ndarray) -> np.ndarray:
    """How loud some frequencies are, whatever their phases."""
    window = np.hanning(len(samples))
    turns = np.outer(hz, np.arange(len(samples)) / SPEC.sample_rate)
    return 2.0 * np.abs(np.exp(-2j * np.pi * turns) @ (window * samples)) / window.sum()


@pytest.mark.parametrize("hz", [52.0, 110.0, 187.3, 440.0, 690.0])
def test_pulses_have_the_given_pitch(model, hz):
    (samples,) = excitation(model, np.full((1, 60), hz))
    # The lowest peak of the spectrum.
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    found = np.fft.rfftfreq(len(samples), 1 / SPEC.sample_rate)
    low = found < 1.5 * hz
    assert found[low][power[low].argmax()] == pytest.approx(hz, abs=1.5)
    # The harmonics are in tune, up to the last, as loud as each other, with nothing between.
    count = harmonics_of(hz, SPEC)
    numbers = np.unique(np.linspace(1, count - 1, 12).astype(int))
    np.testing.assert_allclose(height_at(samples, numbers * hz), np.sqrt(2 / count), rtol=0.02)
    assert height_at(samples, (numbers - 0.5) * hz).max() < 0.01 * np.sqrt(2 / count)


def test_pulses_of_every_pitch_are_finite_and_as_loud_as_the_noise(model):
    pitches = np.linspace(50.0, 700.0, 131)
    samples = excitation(model, np.repeat(pitches[:, None], 24, axis=1))
    assert np.isfinite(samples).all()
    # Never more than all of its harmonics at once.
    highest = np.sqrt(2 * harmonics_of(pitches, SPEC))
    assert np.all(np.abs(samples).max(axis=1) < highest + 0.01)
    np.testing.assert_allclose(np.sqrt(np.mean(samples**2, axis=1)), 1.0, rtol=0.06)
    noise = np.abs(_noise_spectra(SPEC))
    variance = np.sum(np.square(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)))
    assert np.mean(noise[:, 1:-1] ** 2) == pytest.approx(variance, rel=0.01)


def test_pulses_follow_a_moving_pitch_without_a_jump(model):
    pitch = 150.0 * np.exp(np.random.default_rng(0).normal(0, 0.2, 60).cumsum() * 0.3)
    pitch = np.clip(pitch, 50, 700)
    cycles, _ = clock_of(pitch, SPEC)
    expected = np.zeros(len(cycles))
    # The highest harmonic is there as far as half the sample rate is beyond it.
    count = np.repeat(0.5 * SPEC.sample_rate / pitch, SPEC.hop_length)
    for number in range(1, int(count.max()) + 1):
        expected += np.clip(count - number, 0.0, 1.0) * np.cos(2 * np.pi * number * cycles)
    found = excitation(model, pitch[None])[0]
    np.testing.assert_allclose(found, expected / np.sqrt((count - 1) / 2), atol=0.05)


def test_the_clock_runs_on_from_frame_to_frame_and_through_a_minute(small):
    # Frame by frame it shows the cycles so far; after 7,500 frames it is still in tune.
    pitch = 200.0 + 80.0 * np.sin(np.arange(7500) / 11)
    _, clock = small.pulse_train(tf.constant(pitch[None], tf.float32))
    _, expected = clock_of(pitch.astype(np.float32), SMALL)
    assert turned(clock[0].numpy() - expected).max() < 1e-3


def test_the_clock_shows_the_phase_at_its_anchor_and_runs_as_before(small):
    mel = np.concatenate([voiced_mel(30, SMALL, seed=seed) for seed in (0, 1)])
    free = small(mel)["clock"].numpy()
    phase = np.array([0.25, 0.9], np.float32)
    anchored = small(mel, anchor=11, phase=phase)["clock"].numpy()
    np.testing.assert_allclose(anchored[:, 11], phase, atol=1e-6)
    ahead = phase - free[:, 11]
    assert turned(anchored - free - ahead[:, None]).max() < 1e-5


def test_from_beat_to_beat_the_clock_turns_a_whole_number_of_times(small):
    pitch = 150.0 + 40.0 * np.sin(np.arange(150) / 9)
    free = small.pulse_train(tf.constant(pitch[None], tf.float32))[1][0].numpy()
    start = 7  # the place of the first frame
    samples, clock = small.pulse_train(tf.constant(pitch[None], tf.float32), first_frame=start)
    clock = clock[0].numpy()
    for length, parts in BEATS:
        beats = np.flatnonzero((np.arange(150) + start) % length == 0)
        assert turned(parts * (clock[beats] - clock[beats[0]])).max() < 1e-4
    assert turned(clock - free).max() > 0.05  # which it would not do by itself
    # Each row adds at most half a part from step to step.
    steps = np.diff(clock) - np.diff(free)
    most = sum(0.5 / (length * parts) for length, parts in BEATS)
    assert np.abs(steps - np.round(steps)).max() <= most + 1e-5
    assert np.isfinite(samples).all()


def test_a_tiny_change_of_the_pitch_stays_tiny_over_a_minute(model):
    pitch = np.full((1, 2000), 181.7) + np.random.default_rng(0).normal(0, 5, (1, 2000))
    near = pitch * (1 + 3e-7)

    def last(first_frame):
        said = [
            model.pulse_train(tf.constant(one, tf.float32), first_frame=first_frame)[0][0, -5120:]
            for one in (pitch, near)
        ]
        return np.abs(said[0] - said[1]).max()

    assert last(0) < 0.1 * last(None)


def test_no_harmonic_jumps_in_or_out(model):
    # Half the sample rate is exactly 100 harmonics of 110.25 Hz.
    below, above = (
        model.pulse_train(tf.fill([1, 2], tf.constant(hz, tf.float32)))[0].numpy()
        for hz in (110.24995, 110.25005)
    )
    # One harmonic is .14 of these samples.
    assert np.abs(below - above).max() < 0.01


def test_a_given_pitch_is_used_where_there_is_one(small):
    mel = voiced_mel(30, SMALL)
    unaided = small(mel)
    predicted = unaided["pitch"].numpy()
    assert np.abs(np.diff(predicted)).max() > 1.0  # another one in every frame
    given = np.where(np.arange(30) < 18, 210.0, 0.0).astype(np.float32)[None]
    aided = small(mel, pitch=given)
    used = np.where(given > 0, given, predicted)
    assert turned(aided["clock"][0].numpy() - clock_of(used[0], SMALL)[1]).max() < 1e-4
    np.testing.assert_array_equal(aided["pitch"], predicted)  # it returns its prediction
    assert np.abs(aided["waveform"] - unaided["waveform"]).max() > 0.01
    silent = small(mel, pitch=np.zeros((1, 30), np.float32))
    np.testing.assert_array_equal(silent["waveform"], unaided["waveform"])


# What a frame depends on.


def test_the_noise_is_that_of_the_place_and_comes_round(small):
    mel = voiced_mel(20, SMALL)
    first, second, round_again = (
        small(mel, first_frame=at)["waveform"].numpy() for at in (0, 1, NOISE_FRAMES)
    )
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(first, round_again)
    # White noise that goes round has no seam: the last frame continues in the first.
    spectra = _noise_spectra(SMALL)
    samples = np.fft.irfft(spectra)
    window = np.maximum(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256), 1e-12)
    overlap = slice(64 + 16, 256 - 16), slice(16, 192 - 16)
    last, again = ((samples[n] / window)[part] for n, part in zip((-1, 0), overlap, strict=True))
    np.testing.assert_allclose(last, again, atol=1e-2)


@pytest.mark.parametrize("projections", [0, 2])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_sample_depends_on_the_frames_of_its_context_and_no_others(projections, side):
    model = tiny_vocoder(SMALL, projections=projections, blocks=2)
    context, hop = model.context_frames, SMALL.hop_length
    middle = context + 2
    mel = voiced_mel(2 * context + 5, SMALL)

    def said(changed: int) -> np.ndarray:
        other = mel.copy()
        other[0, middle + side * changed] += 3.0 if changed else 0.0
        waveform = model(other, anchor=middle, phase=np.zeros(1, np.float32))["waveform"]
        return waveform[0, middle * hop : (middle + 1) * hop].numpy()

    truth = said(0)
    np.testing.assert_array_equal(said(context + 1), truth)
    for near in (1, 2 + 2):  # the latter matters through the trunk alone
        assert np.abs(said(near) - truth).max() > 1e-4


# The given mel.


def test_every_projection_brings_the_mel_nearer(model):
    mel = voiced_mel(60)

    def off(projections: int) -> float:
        samples = model(mel, projections=projections)["waveform"][0].numpy()
        return float(np.abs(log_mel(samples, SPEC) - mel[0])[4:-4].mean())

    none, some, many = off(0), off(2), off(6)
    assert many < some < none
    assert many < 0.6 * none
    default = model(mel)["waveform"]
    np.testing.assert_array_equal(default, model(mel, projections=1)["waveform"])


# The model as a Keras model.


def test_a_configuration_makes_the_same_model_again(small):
    again = ISTFTVocoder.from_config(small.get_config())
    again.build()
    assert again.settings == small.settings and again.name == small.name
    assert [w.shape for w in again.weights] == [w.shape for w in small.weights]
    again.set_weights(small.get_weights())
    mel = voiced_mel(20, SMALL)
    np.testing.assert_array_equal(again(mel)["waveform"], small(mel)["waveform"])


def test_a_policy_of_half_precision_does_not_reach_it():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = tiny_vocoder(SMALL)
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy(policy)
    assert {layer.compute_dtype for layer in model._flatten_layers()} == {"float32"}


def test_the_loss_reaches_every_weight(small):
    mel = voiced_mel(24, SMALL)
    with tf.GradientTape() as tape:
        said = small(mel, projections=0)
        sound = tf.reduce_mean(tf.abs(said["waveform"]))
        loss = sound + pitch_loss(said["pitch"], tf.fill([1, 24], 120.0))
    gradients = tape.gradient(loss, small.trainable_variables)
    for weight, gradient in zip(small.trainable_variables, gradients, strict=True):
        assert gradient is not None, weight.path
        assert np.isfinite(gradient).all() and np.any(gradient != 0), weight.path


def test_the_pitch_is_learnt_from_its_own_loss_alone(small):
    with tf.GradientTape() as tape:
        sound = tf.reduce_mean(tf.abs(small(voiced_mel(24, SMALL))["waveform"]))
    kernel = small.pitch_head.kernel
    assert tape.gradient(sound, kernel) is None
