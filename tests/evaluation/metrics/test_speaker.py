"""Whose voice is heard, by embeddings that are written down."""

import math

import numpy as np
import pytest

from myxtts.audio.io import SILENT, AudioError, read_audio
from myxtts.checkpoints.speaker_encoders import load_speaker_encoder
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.speaker import (
    compare_recordings,
    median_pitch,
    place_voice,
    spread,
)
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

SPEC = AudioSpec()


def test_silence_has_no_pitch():
    assert np.isnan(median_pitch([np.zeros(SPEC.sample_rate, np.float32)], SPEC))


def by_angle(recordings, sample_rate):
    """Embeddings of recordings of one sample, their angle in degrees; of none where it is 0."""
    angles = [np.radians(float(samples[0])) for samples in recordings]
    refused = AudioError("it", SILENT, "nobody is heard")
    return [np.array([np.cos(a), np.sin(a)]) if a else refused for a in angles]


def voices(**angles):
    return {name: np.array(own, np.float64)[:, None] for name, own in angles.items()}


def cosines(*degrees):
    return pytest.approx(np.sort(np.cos(np.radians(degrees))))


def test_recordings_are_compared_within_and_between_voices():
    found = compare_recordings(voices(anna=[10, 20, 40], ben=[80, 0], carl=[]), by_angle, 16000)
    assert found.same == cosines(10, 20, 30)
    assert found.different == cosines(70, 60, 40)
    # The threshold is in the middle of the least of one voice and the most of different ones.
    least, most = np.cos(np.radians([30, 40]))
    assert found.threshold == pytest.approx((least + most) / 2)
    assert found.equal_error_rate == 0.0


def test_the_equal_error_rate_is_where_as_many_are_wrong_on_both_sides():
    known = voices(anna=[10, 20], ben=[30, 50], carl=[90, 120, 150], dora=[95])
    found = compare_recordings(known, by_angle, 16000)
    assert found.same == cosines(10, 20, 30, 30, 60)
    rejected = np.mean(found.same < found.threshold)
    accepted = np.mean(found.different >= found.threshold)
    assert found.equal_error_rate == pytest.approx((rejected + accepted) / 2)
    other = np.linspace(-1, 1, 4001)
    gaps = [abs(np.mean(found.same < t) - np.mean(found.different >= t)) for t in other]
    assert abs(rejected - accepted) == pytest.approx(min(gaps))


def test_one_voice_alone_has_no_threshold():
    found = compare_recordings(voices(anna=[10, 20, 40]), by_angle, 16000)
    assert math.isnan(found.threshold) and math.isnan(found.equal_error_rate)
    place = place_voice([[30.0]], [[20.0]], found, by_angle, 16000)
    assert math.isnan(place.among_different) and math.isnan(place.accepted)
    # 10 degrees are as near as the nearest of three, which counts half.
    assert place.among_same == pytest.approx(100 * 2.5 / 3)
    with pytest.raises(ValueError, match="no recording in which a voice is heard"):
        compare_recordings(voices(anna=[0]), by_angle, 16000)


def test_a_spread_has_the_mean_and_quantiles():
    found = spread(np.linspace(0, 1, 101))
    assert (found.mean, found.median, found.pairs) == (pytest.approx(0.5), pytest.approx(0.5), 101)
    assert (found.low, found.high) == (pytest.approx(0.05), pytest.approx(0.95))
    assert math.isnan(spread(np.zeros(0)).median)


def test_a_voice_is_placed_among_recordings():
    among = compare_recordings(voices(anna=[10, 20, 40], ben=[80, 90]), by_angle, 16000)
    # Of one voice there are 10, 10, 20 and 30 degrees; of different ones 40 to 80.
    own = np.array([[15.0]])
    near, far = (place_voice([[a]], own, among, by_angle, 16000) for a in (15.1, 90.0))
    assert (near.among_same, near.among_different, near.accepted) == (100.0, 100.0, 1.0)
    # 75 degrees: farther than all but one of the six pairs, 80 degrees.
    assert (far.among_same, far.accepted) == (0.0, 0.0)
    assert far.among_different == pytest.approx(100 / 6)
    both = place_voice([[15.1], [90.0], [0.0]], own, among, by_angle, 16000)
    assert both.sentences == 2  # nobody is heard in the third
    assert both.accepted == 0.5 and both.among_same == 50.0
    assert both.similarity == pytest.approx((near.similarity + far.similarity) / 2)


def test_nobody_heard_has_no_place():
    among = compare_recordings(voices(anna=[10, 20], ben=[80]), by_angle, 16000)
    found = place_voice([[0.0]], [[15.0]], among, by_angle, 16000)
    assert found.sentences == 0
    assert all(map(math.isnan, (found.similarity, found.among_same, found.accepted)))


def test_real_voices_are_apart_and_what_is_no_voice_is_nobodys():
    pytest.importorskip("webrtcvad")
    embed = load_speaker_encoder("resemblyzer", public_weights("resemblyzer")).embed_many
    rate = SPEC.sample_rate

    def excerpts(speaker, numbers):
        folder = shared("excerpts80") / "wavs"
        return [read_audio(folder / f"{speaker}-{number:02d}.flac", rate) for number in numbers]

    known = {speaker: excerpts(speaker, range(1, 5)) for speaker in ("LJ", "WS", "HS")}
    among = compare_recordings(known, embed, rate)
    assert among.equal_error_rate < 0.05
    assert spread(among.same).low > spread(among.different).high + 0.1
    phase = 2 * np.pi * 200 * np.arange(3 * rate) / rate
    heard = {
        "own": excerpts("LJ", (20, 21)),
        "stranger": excerpts("HS", (20, 21)),
        "noise": [0.1 * np.random.default_rng(0).standard_normal(3 * rate)],
        "drone": [0.1 * sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 20))],
        "silence": [np.zeros(3 * rate)],
    }
    places = {
        name: place_voice([np.float32(x) for x in one], known["LJ"], among, embed, rate)
        for name, one in heard.items()
    }
    own = places["own"]
    assert own.among_different > 99 and own.accepted > 0.9 and own.among_same > 2
    for name in ("stranger", "noise", "drone"):
        assert places[name].similarity < own.similarity - 0.2
        assert places[name].among_same < 1 and places[name].accepted == 0
    assert places["silence"].sentences == 0
