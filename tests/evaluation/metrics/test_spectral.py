"""Measures of a signal: exact where they can be worked out, and by their margins on what is wrong.

What is wrong with speech here is noise, silence, a drone, words in another order, another voice.
"""

import math

import numpy as np
import pytest

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.levels import measure_levels
from myxtts.evaluation.metrics.quality import Dnsmos
from myxtts.evaluation.metrics.spectral import (
    compare_pitch,
    compare_speech,
    mel_cepstra,
    shortest_path,
    warp_mels,
    warped,
)
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

SPEC = AudioSpec()
RATE = SPEC.sample_rate
# Of each word: two formants in Hz, and where its pitch begins and ends.
WORDS = (
    (300, 2300, 190, 230),
    (700, 1200, 230, 210),
    (450, 900, 200, 240),
    (600, 1800, 240, 180),
    (350, 800, 210, 170),
    (500, 2000, 180, 150),
)
SHUFFLED = (3, 0, 5, 1, 4, 2)


def word(first: float, second: float, start: float, end: float, seconds: float) -> np.ndarray:
    """Harmonics under two formants, and a short hiss behind them."""
    at = np.arange(round(seconds * RATE)) / RATE
    hertz = np.geomspace(start, end, len(at))
    phase = 2 * np.pi * np.cumsum(hertz) / RATE
    voice = np.zeros(len(at))
    for harmonic in range(1, 40):
        near = [np.exp(-(((harmonic * hertz - one) / 150) ** 2)) for one in (first, second)]
        voice += (near[0] + 0.5 * near[1] + 0.01) * np.sin(harmonic * phase)
    hiss = np.random.default_rng(int(first)).normal(size=round(0.05 * RATE))
    return np.concatenate([0.1 * voice * np.hanning(len(at)) ** 0.3, 0.02 * hiss])


def sentence(order=range(6), seconds=0.2, formants=1.0, pitch=1.0) -> np.ndarray:
    words = [WORDS[number] for number in order]
    return np.concatenate(
        [word(f * formants, s * formants, a * pitch, b * pitch, seconds) for f, s, a, b in words]
    )


def drone(length: int, hertz: float = 200.0) -> np.ndarray:
    phase = 2 * np.pi * hertz * np.arange(length) / RATE
    return 0.1 * sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 20))


def noise(length: int) -> np.ndarray:
    return 0.1 * np.random.default_rng(0).standard_normal(length)


def slow_path_cost(distances: np.ndarray) -> float:
    cost = np.full(np.add(distances.shape, 1), np.inf)
    cost[0, 0] = 0
    for i, row in enumerate(distances):
        for j, own in enumerate(row):
            cost[i + 1, j + 1] = own + min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
    return cost[-1, -1]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (7, 7), (12, 5), (5, 30)])
def test_the_path_is_complete_and_costs_as_little_as_by_a_loop_over_cells(shape):
    distances = np.random.default_rng(sum(shape)).uniform(size=shape)
    path = shortest_path(distances)
    assert path[0].tolist() == [0, 0] and path[-1].tolist() == [shape[0] - 1, shape[1] - 1]
    assert {tuple(step) for step in np.diff(path, axis=0)} <= {(0, 1), (1, 0), (1, 1)}
    assert distances[tuple(path.T)].sum() == pytest.approx(slow_path_cost(distances))


def test_of_paths_of_equal_cost_the_straight_one_is_taken():
    assert shortest_path(np.zeros((3, 3))).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_the_path_follows_the_zeros():
    path = [[0, 0], [1, 0], [2, 1], [2, 2], [3, 3]]
    distances = np.ones((4, 4))
    distances[tuple(np.transpose(path))] = 0
    assert shortest_path(distances).tolist() == path


def test_the_distortion_is_the_difference_in_decibels():
    # A ripple of .3 in the logarithm of the magnitude, two and a half waves over the bands, is
    # the fifth cepstrum; its RMS is .3 / sqrt(2), which is 20 / ln(10) times as much in dB.
    bands = (np.arange(80) + 0.5) / 80
    flat = np.zeros((6, 80))
    ripple = flat + 0.3 * np.cos(5 * np.pi * bands)
    assert mel_cepstra(ripple)[0] == pytest.approx([0.3 if k == 5 else 0 for k in range(1, 14)])
    expected = 20 / math.log(10) * 0.3 / math.sqrt(2)
    assert warp_mels(ripple, flat)[0] == pytest.approx(expected)
    # Neither loudness counts, nor what is finer than the thirteenth.
    assert warp_mels(flat + 1.0, flat)[0] == pytest.approx(0.0)
    assert warp_mels(flat + np.cos(14 * np.pi * bands), flat)[0] == pytest.approx(0.0)


def test_warping_removes_a_difference_in_rhythm():
    mel = log_mel(sentence(), SPEC)
    times = np.random.default_rng(0).integers(1, 4, len(mel))
    distortion, path = warp_mels(np.repeat(mel, times, axis=0), mel)
    assert distortion == 0.0
    assert path[:, 1].tolist() == np.repeat(np.arange(len(mel)), times).tolist()


def test_pitch_is_compared_where_both_are_voiced():
    recorded = np.geomspace(100, 200, 40)
    recorded[::8] = 0
    spoken = recorded * 2 ** (1 / 12)  # a semitone higher
    spoken[5:9] = 0  # the last of which is silent in both
    straight = np.stack([np.arange(40)] * 2, axis=1)
    found = compare_pitch(spoken, recorded, straight)
    assert found.correlation == pytest.approx(1.0)
    assert found.rmse_cents == pytest.approx(100.0)
    assert found.voicing_error == pytest.approx(3 / 40)
    opposite = np.where(recorded > 0, 20000 / np.maximum(recorded, 1), 0)
    assert compare_pitch(opposite, recorded, straight).correlation == pytest.approx(-1.0)


def test_a_constant_pitch_has_no_correlation_and_too_few_frames_have_no_pitch():
    straight = np.stack([np.arange(40)] * 2, axis=1)
    recorded = np.geomspace(100, 200, 40)
    found = compare_pitch(np.full(40, 150.0), recorded, straight)
    assert math.isnan(found.correlation) and found.rmse_cents > 300
    found = compare_pitch(np.where(np.arange(40) < 9, recorded, 0), recorded, straight)
    assert math.isnan(found.correlation) and math.isnan(found.rmse_cents)
    assert found.voicing_error == pytest.approx(31 / 40)


def test_a_straight_path_does_not_change_speech():
    speech = sentence()[: 90 * 256]
    straight = np.stack([np.arange(90)] * 2, axis=1)
    # But for the fading in and out of the first and last half hop.
    found = warped(speech, straight, SPEC)
    assert len(found) == len(speech)
    np.testing.assert_allclose(found[128:-128], speech[128:-128], atol=1e-6)


def test_warped_speech_keeps_its_pitch():
    tone = np.sin(2 * np.pi * 220 * np.arange(100 * 256) / RATE)
    path = np.stack([np.arange(150) * 2 // 3, np.arange(150)], axis=1)
    found = warped(tone, path, SPEC)
    assert len(found) == 150 * 256
    spectrum = np.abs(np.fft.rfft(found * np.hanning(len(found))))
    assert spectrum.argmax() * RATE / len(found) == pytest.approx(220, abs=1)
    # Segments that were joined out of phase would cancel each other in places.
    loudness = np.sqrt(np.mean(found[256:-256].reshape(-1, 256) ** 2, axis=1))
    assert loudness.min() > 0.6


def test_speech_in_another_rhythm_is_similar_and_wrong_speech_is_not():
    pytest.importorskip("pystoi")
    recorded = sentence()
    slower = compare_speech(sentence(seconds=0.24), recorded, SPEC)
    shuffled = compare_speech(sentence(SHUFFLED, seconds=0.24), recorded, SPEC)
    stranger = compare_speech(sentence(seconds=0.24, formants=1.2, pitch=0.6), recorded, SPEC)
    noisy = compare_speech(noise(len(recorded)), recorded, SPEC)
    droning = compare_speech(drone(len(recorded)), recorded, SPEC)
    assert slower.length_ratio == pytest.approx(0.29 / 0.25, abs=0.01)
    assert slower.distortion < 1.5
    assert min(one.distortion for one in (shuffled, stranger, noisy, droning)) > 6
    assert slower.warped_estoi > 0.9
    assert max(shuffled.warped_estoi, stranger.warped_estoi) < 0.65
    assert max(noisy.warped_estoi, droning.warped_estoi) < 0.1
    assert slower.pitch.correlation > 0.9 and shuffled.pitch.correlation < 0.2
    assert math.isnan(noisy.pitch.correlation) and math.isnan(droning.pitch.correlation)
    # .6 of the pitch are 884 cents less.
    assert slower.pitch.rmse_cents < 250 and stranger.pitch.rmse_cents > 800
    assert slower.pitch.voicing_error < 0.05
    assert min(noisy.pitch.voicing_error, droning.pitch.voicing_error) > 0.15


def test_silence_has_no_figures():
    pytest.importorskip("pystoi")
    silence = np.zeros(RATE)
    nothing, click = np.zeros(0), np.ones(SPEC.hop_length - 1)
    for pair in [(one, sentence()) for one in (silence, nothing, click)] + [(sentence(), silence)]:
        found = compare_speech(*pair, SPEC)
        pitch = found.pitch
        values = (found.distortion, found.warped_estoi, found.length_ratio)
        assert all(map(math.isnan, (*values, pitch.correlation, pitch.rmse_cents)))
        assert math.isnan(pitch.voicing_error)


def test_samples_that_are_not_finite_are_rejected():
    broken = np.array([0.5, np.nan])
    with pytest.raises(ValueError, match="NaN or infinite"):
        compare_speech(broken, broken, SPEC)
    with pytest.raises(ValueError, match="NaN or infinite"):
        measure_levels(broken, RATE)


def test_levels_of_two_tones_with_silence_around_and_between():
    tone = 0.5 * np.sin(2 * np.pi * 100 * np.arange(2000) / 8000)  # of 0.25 s
    parts = [np.zeros(800), tone, np.zeros(1600), tone, np.zeros(400)]
    found = measure_levels(np.concatenate(parts), 8000)
    assert found.loudness == pytest.approx(20 * math.log10(0.5 / math.sqrt(2)))
    assert found.peak == pytest.approx(0.5)
    assert found.silent == pytest.approx(2800 / 6800)
    assert found.leading_silence == pytest.approx(0.1)
    assert found.longest_pause == pytest.approx(0.2)
    assert found.trailing_silence == pytest.approx(0.05)
    assert found.dc_offset == pytest.approx(0.0, abs=1e-6)
    assert found.clipped == 0.0


def test_far_below_the_loudest_is_silence_and_an_offset_is_measured():
    tone = 0.5 * np.sin(2 * np.pi * 100 * np.arange(8000) / 8000)
    hum = 10 ** (-41 / 20) * tone
    found = measure_levels(np.concatenate([tone, hum]) + 0.001, 8000)
    assert found.silent == 0.5
    assert found.trailing_silence == pytest.approx(1.0)
    assert found.dc_offset == pytest.approx(0.001)


@pytest.mark.parametrize("gain", [2.0, 0.8])
def test_clipped_samples_are_found_after_scaling_too(gain):
    tone = np.sin(2 * np.pi * np.arange(8000) / 80)
    found = measure_levels(gain * np.clip(tone, -0.5, 0.5), 8000)
    # From 30 to 150 degrees, both included, and the same below: 27 and 27 of 80 samples.
    assert found.clipped == pytest.approx(54 / 80)


def test_the_flat_top_of_a_quiet_tone_is_not_clipping():
    tone = np.round(300 * np.sin(2 * np.pi * 50 * np.arange(22050) / 22050)) / 32768
    assert measure_levels(tone, RATE).clipped == 0.0


def test_silence_has_no_loudness_and_no_pauses():
    found = measure_levels(np.zeros(800), 8000)
    assert (found.peak, found.silent, found.clipped, found.dc_offset) == (0.0, 1.0, 0.0, 0.0)
    unknown = (found.loudness, found.leading_silence, found.longest_pause, found.trailing_silence)
    assert all(map(math.isnan, unknown))
    nothing = measure_levels(np.zeros(0), 8000)
    assert math.isnan(nothing.peak) and math.isnan(nothing.silent)


def excerpt(name: str) -> np.ndarray:
    return read_audio(shared("excerpts80") / "wavs" / f"{name}.flac", RATE)


def in_another_order(samples: np.ndarray) -> np.ndarray:
    """The samples in segments, about as many as phrases in a sentence, in another order."""
    parts = np.array_split(samples, len(SHUFFLED))
    return np.concatenate([parts[number] for number in SHUFFLED])


def test_a_recording_is_nearest_to_its_resynthesis_and_then_to_the_same_words_by_another_speaker():
    pytest.importorskip("pystoi")
    found = {}
    for number in ("10", "25"):
        recorded, stranger = excerpt(f"LJ-{number}"), excerpt(f"HS-{number}")
        speech = {
            "copy": griffin_lim(log_mel(recorded, SPEC), SPEC),
            "stranger": stranger,
            "shuffled": in_another_order(recorded),
            "shuffled stranger": in_another_order(stranger),
            "noise": noise(len(recorded)),
            "drone": drone(len(recorded)),
        }
        for name, samples in speech.items():
            found.setdefault(name, []).append(compare_speech(samples, recorded, SPEC))

    def means(measure) -> dict[str, float]:
        return {
            name: float(np.mean([measure(one) for one in ones])) for name, ones in found.items()
        }

    distortion = means(lambda one: one.distortion)
    assert distortion["copy"] < 1
    assert min(distortion["stranger"], distortion["shuffled"]) > distortion["copy"] + 5
    assert distortion["shuffled stranger"] > distortion["stranger"] + 0.8
    assert min(distortion["noise"], distortion["drone"]) > distortion["shuffled stranger"] + 3
    heard = means(lambda one: one.warped_estoi)
    assert heard["copy"] > 0.95
    assert heard["copy"] > max(heard["shuffled"], heard["stranger"]) + 0.5
    assert heard["stranger"] > heard["shuffled stranger"] + 0.1
    assert heard["shuffled stranger"] > max(heard["noise"], heard["drone"]) + 0.1
    unvoiced = means(lambda one: one.pitch.voicing_error)
    assert unvoiced["copy"] < 0.05
    assert unvoiced["stranger"] > unvoiced["copy"] + 0.1
    assert unvoiced["shuffled stranger"] > unvoiced["stranger"] + 0.1
    assert min(unvoiced["noise"], unvoiced["drone"]) > unvoiced["stranger"] + 0.1


def test_levels_of_a_recording_show_how_it_was_edited():
    path = next((shared("kathleen_en") / "wavs").glob("arctic_a0003_*"))
    natural = read_audio(path, RATE)
    levels = measure_levels(natural, RATE)
    assert -40 < levels.loudness < -12 and levels.clipped == 0 and levels.longest_pause < 0.5
    middle = len(natural) // 2
    torn = np.concatenate([natural[:middle], np.zeros(RATE), natural[middle:]])
    assert measure_levels(torn, RATE).longest_pause > levels.longest_pause + 0.9
    assert measure_levels(torn, RATE).silent > levels.silent + 0.1
    loud = measure_levels(np.clip(natural / np.abs(natural).max() * 8, -1, 1), RATE)
    assert loud.clipped > 0.02 and loud.peak == 1 and loud.loudness > levels.loudness + 6
    for one in (noise(len(natural)), drone(len(natural))):
        assert measure_levels(one, RATE).silent == 0


def test_speech_is_rated_above_noise_a_drone_and_shuffled_segments():
    pytest.importorskip("onnxruntime")
    dnsmos = Dnsmos.open(public_weights("dnsmos"))
    natural = excerpt("HS-10")
    segments = np.stack(np.array_split(natural[: 60 * (len(natural) // 60)], 60))  # of about 0.1 s
    wrong = [
        noise(len(natural)),
        drone(len(natural)),
        np.random.default_rng(0).permutation(segments).ravel(),
        np.zeros(len(natural)),
    ]
    scores = dnsmos.score_many([(one, RATE) for one in (natural, *wrong)])
    recorded, noisy, droning, torn, silent = (one.overall for one in scores)
    assert recorded > 3
    assert recorded > noisy + 1.9
    assert recorded > droning + 1.3
    assert recorded > torn + 0.6
    assert math.isnan(silent)  # no score at all
