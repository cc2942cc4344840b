"""Speaker similarity, from given embeddings."""

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
    unit,
)
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

SPEC = AudioSpec()


def test_silence_has_no_pitch():
    assert np.isnan(median_pitch([np.zeros(SPEC.sample_rate, np.float32)], SPEC))


def at(*degrees):
    """Embeddings at angles in degrees; 0 stands for silence."""
    silent = AudioError("it", SILENT, "nobody is heard")
    angles = np.radians(degrees)
    return [unit(np.array([3 * np.cos(a), 3 * np.sin(a)]) if a else silent) for a in angles]


def cosines(*degrees):
    return pytest.approx(np.sort(np.cos(np.radians(degrees))))


def test_recordings_are_compared_within_and_between_speakers():
    found = compare_recordings([at(10, 20, 40), at(80, 0), at()])
    assert found.same == cosines(10, 20, 30)
    assert found.different == cosines(70, 60, 40)
    # The threshold is in the middle of the least of one voice and the most of different ones.
    least, most = np.cos(np.radians([30, 40]))
    assert found.threshold == pytest.approx((least + most) / 2)
    assert found.equal_error_rate == 0.0


def test_at_the_threshold_both_error_rates_are_equal():
    found = compare_recordings([at(10, 20), at(30, 50), at(90, 120, 150), at(95)])
    assert found.same == cosines(10, 20, 30, 30, 60)
    rejected = np.mean(found.same < found.threshold)
    accepted = np.mean(found.different >= found.threshold)
    assert found.equal_error_rate == pytest.approx((rejected + accepted) / 2)
    other = np.linspace(-1, 1, 4001)
    gaps = [abs(np.mean(found.same < t) - np.mean(found.different >= t)) for t in other]
    assert abs(rejected - accepted) == pytest.approx(min(gaps))


def test_a_single_speaker_has_no_threshold():
    found = compare_recordings([at(10, 20, 40)])
    assert math.isnan(found.threshold) and math.isnan(found.equal_error_rate)
    place = place_voice(at(30), at(20), found)
    assert math.isnan(place.among_different) and math.isnan(place.accepted)
    # 10 degrees are as near as the nearest of three, which counts half.
    assert place.among_same == pytest.approx(100 * 2.5 / 3)
    with pytest.raises(ValueError, match="no recording contains speech"):
        compare_recordings([at(0)])


def test_a_spread_has_the_mean_and_quantiles():
    found = spread(np.linspace(0, 1, 101))
    assert (found.mean, found.median, found.pairs) == (pytest.approx(0.5), pytest.approx(0.5), 101)
    assert (found.low, found.high) == (pytest.approx(0.05), pytest.approx(0.95))
    assert math.isnan(spread(np.zeros(0)).median)


def test_speech_is_compared_with_pairs_of_recordings():
    among = compare_recordings([at(10, 20, 40), at(80, 90)])
    # Of one voice there are 10, 10, 20 and 30 degrees; of different ones 40 to 80.
    near, far = (place_voice(at(angle), at(15), among) for angle in (15.1, 90))
    assert (near.among_same, near.among_different, near.accepted) == (100.0, 100.0, 1.0)
    # 75 degrees: farther than all but one of the six pairs, 80 degrees.
    assert (far.among_same, far.accepted) == (0.0, 0.0)
    assert far.among_different == pytest.approx(100 / 6)
    both = place_voice(at(15.1, 90, 0), at(15), among)
    assert both.sentences == 2  # the third is silent
    assert both.accepted == 0.5 and both.among_same == 50.0
    assert both.similarity == pytest.approx((near.similarity + far.similarity) / 2)


def test_silence_is_not_compared_with_recordings():
    among = compare_recordings([at(10, 20), at(80)])
    found = place_voice(at(0), at(15), among)
    assert found.sentences == 0
    assert all(map(math.isnan, (found.similarity, found.among_same, found.accepted)))


def test_real_speakers_are_distinguished_and_noise_is_no_speaker():
    pytest.importorskip("webrtcvad")
    encoder = load_speaker_encoder("resemblyzer", public_weights("resemblyzer"))
    rate = SPEC.sample_rate

    def embed(recordings):
        return [unit(one) for one in encoder.embed_many(recordings, rate)]

    def excerpts(speaker, numbers):
        folder = shared("excerpts80") / "wavs"
        return [read_audio(folder / f"{speaker}-{number:02d}.flac", rate) for number in numbers]

    known = {speaker: embed(excerpts(speaker, range(1, 5))) for speaker in ("LJ", "WS", "HS")}
    among = compare_recordings(list(known.values()))
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
        name: place_voice(embed([np.float32(x) for x in one]), known["LJ"], among)
        for name, one in heard.items()
    }
    own = places["own"]
    assert own.among_different > 99 and own.accepted > 0.9 and own.among_same > 2
    for name in ("stranger", "noise", "drone"):
        assert places[name].similarity < own.similarity - 0.2
        assert places[name].among_same < 1 and places[name].accepted == 0
    assert places["silence"].sentences == 0
