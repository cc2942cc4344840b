import math
import sys
import warnings

import numpy as np
import pytest

from myxtts.audio.cleanup import loudness
from myxtts.audio.griffin_lim import griffin_lim
from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.evaluation.metrics.quality import LOUDNESS, Dnsmos, QualityScore, estoi, joined
from tests.helpers.shared_data import shared
from tests.helpers.shared_weights import public_weights

SPEC = AudioSpec()
RATE = 16000
# What speechmos 0.0.1.1 says of these files. The first is long enough, the others are doubled:
# once (LJ001-0080 with a click between, by the rounding of its length), three times, and once to
# 17.6 s, where the published program drops the last window.
PUBLISHED = {
    "LJ001-0001": (3.622180, 4.036641, 3.333727),
    "LJ001-0004": (3.496074, 3.792040, 3.071119),
    "LJ001-0080": (3.509159, 2.836113, 2.519774),
    "LJ001-0002": (3.574184, 3.205652, 2.832084),
    "LJ001-0010": (3.703541, 4.161456, 3.467954),
}


class Listener:
    """Replaces the network: records how each window begins, and returns given outputs."""

    def __init__(self, *outputs: float):
        self.outputs = outputs
        self.begins = []

    def run(self, names, inputs):
        (window,) = inputs["input_1"]
        assert (window.dtype, window.shape) == (np.float32, (144160,))
        self.begins.append(float(window[0]))
        return [np.full((1, 3), self.outputs[(len(self.begins) - 1) % len(self.outputs)])]


def counted(seconds: float) -> np.ndarray:
    """Samples that say at which second they are."""
    return np.arange(round(seconds * RATE), dtype=np.float32) / RATE


@pytest.mark.parametrize(
    "seconds, begins",
    [
        (9.01, [0]),
        (10.99, [0]),
        (11, [0, 1]),
        (5, [0]),  # 10 s
        (4, [0, 1, 2, 3, 0, 1, 2]),  # 16 s
        (36, [0, 1, 2, 3, 4, 5, 6, 24, 25, 26]),
    ],
)
def test_the_windows_are_those_of_the_published_program(seconds, begins):
    listener = Listener(3.0)
    Dnsmos(listener).score(counted(seconds), RATE)
    assert listener.begins == begins


def test_each_window_is_fitted_to_ratings_before_they_are_averaged():
    # By hand: overall is 1.0938272 for an output of 1, and 2.78345392 for one of 3.
    one, three = (Dnsmos(Listener(x)).score(counted(11), RATE) for x in (1.0, 3.0))
    assert one.overall == pytest.approx(1.0938272)
    assert three == QualityScore(*map(pytest.approx, (2.91200747, 3.24640004, 2.78345392)))
    both = Dnsmos(Listener(1.0, 3.0)).score(counted(11), RATE)
    assert both.overall == pytest.approx((1.0938272 + 2.78345392) / 2)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(RATE), np.full(RATE, 0.0009)])
def test_silence_has_no_rating(samples):
    listener = Listener(3.0)
    score = Dnsmos(listener).score(samples, RATE)
    assert all(map(math.isnan, (score.signal, score.background, score.overall)))
    assert listener.begins == []


def test_samples_that_are_not_finite_are_rejected():
    broken = np.array([0.5, np.nan])
    with pytest.raises(ValueError, match="NaN or infinite"):
        Dnsmos(Listener(3.0)).score(broken, RATE)


def test_a_missing_runtime_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # importing it now fails
    with pytest.raises(UserError, match=r"myxtts\[eval\]"):
        Dnsmos.open(tmp_path / "dnsmos.onnx")


def test_only_the_published_network_is_opened(tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "dnsmos.onnx"
    with pytest.raises(UserError, match="cannot be read .*`myxtts weights get dnsmos` fetches it"):
        Dnsmos.open(path)
    path.write_bytes(b"another")
    with pytest.raises(UserError, match="is not the network of DNSMOS P.835 that was published"):
        Dnsmos.open(path)


@pytest.fixture(scope="module")
def dnsmos() -> Dnsmos:
    pytest.importorskip("onnxruntime")
    return Dnsmos.open(public_weights("dnsmos"))


def recording(name: str) -> np.ndarray:
    return read_audio(shared("ljspeech100") / "wavs" / f"{name}.flac", SPEC.sample_rate)


def test_ratings_equal_the_published_ones_in_any_number_of_threads(dnsmos):
    recordings = [(recording(name), SPEC.sample_rate) for name in PUBLISHED]
    done = []
    scores = dnsmos.score_many(recordings, lambda *counts: done.append(counts))
    assert done == [(count, 5) for count in range(1, 6)]
    found = [(one.signal, one.background, one.overall) for one in scores]
    np.testing.assert_allclose(found, list(PUBLISHED.values()), atol=1e-3)
    assert dnsmos.score(*recordings[0]) == scores[0]
    assert dnsmos.score_many([]) == []


def test_sentences_are_joined_at_one_loudness():
    speech = [recording(name)[: 6 * SPEC.sample_rate] for name in ("LJ001-0001", "LJ001-0003")]
    quiet = [0.25 * samples for samples in speech]
    ((loud, rate),) = joined(speech, SPEC.sample_rate)
    ((found, _),) = joined(quiet, SPEC.sample_rate)
    assert rate == SPEC.sample_rate
    assert len(loud) == sum(map(len, speech))
    np.testing.assert_allclose(found, loud, atol=1e-5)
    half = len(speech[0])
    for part in (loud[:half], loud[half:]):
        assert abs(loudness(part, rate) - LOUDNESS) < 0.1


@pytest.mark.parametrize("name", ["LJ001-0001", "LJ001-0003"])
def test_a_recording_is_rated_above_its_resynthesis_and_noise_below_both(dnsmos, name):
    natural = recording(name)
    copy = griffin_lim(log_mel(natural, SPEC), SPEC)
    noise = natural.std() * np.random.default_rng(0).standard_normal(len(natural))
    scores = dnsmos.score_many([(one, SPEC.sample_rate) for one in (natural, copy, noise)])
    recorded, copied, noisy = (one.overall for one in scores)
    assert recorded > copied + 0.1
    assert copied > noisy + 1
    assert noisy < 1.5


@pytest.fixture(scope="module")
def babble() -> np.ndarray:
    """Two seconds of noise whose loudness comes and goes as that of syllables."""
    pytest.importorskip("pystoi")
    seconds = np.arange(2 * RATE) / RATE
    noise = np.random.default_rng(1).standard_normal(len(seconds))
    return (0.1 * noise * (1 + np.sin(2 * np.pi * 4 * seconds))).astype(np.float32)


def test_estoi_falls_with_noise(babble):
    noise = np.random.default_rng(2).standard_normal(len(babble)).astype(np.float32)
    scores = [estoi(babble, babble + level * noise, RATE) for level in (0, 0.03, 0.1, 0.3)]
    assert scores[0] == pytest.approx(1, abs=1e-6)
    assert scores == sorted(scores, reverse=True)
    assert scores[1] > 0.8 and scores[3] < 0.5
    assert abs(estoi(babble, noise, RATE)) < 0.1
    assert estoi(babble, np.zeros_like(babble), RATE) == 0.0


def test_estoi_ignores_loudness_and_surplus_samples(babble):
    longer = np.concatenate([babble, np.ones(500, np.float32)])
    assert estoi(babble, longer / 5000, RATE) == pytest.approx(1, abs=1e-6)
    assert estoi(longer, babble, RATE) == pytest.approx(1, abs=1e-6)


def test_too_little_speech_has_no_estoi(babble):
    silence = np.zeros_like(babble)
    few = np.concatenate([babble[: RATE // 4], silence])  # a quarter of a second of it is heard
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(estoi(few, few, RATE))
        assert math.isnan(estoi(silence, babble, RATE))
        for length in (0, 1, 200, 6559):
            assert math.isnan(estoi(babble[:length], babble[:length], RATE))
        assert estoi(babble[:8000], babble[:8000], RATE) == pytest.approx(1, abs=1e-6)


def test_estoi_rejects_samples_that_are_not_finite(babble):
    with pytest.raises(ValueError, match="NaN or infinite"):
        estoi(babble, np.full_like(babble, np.nan), RATE)


def test_a_missing_pystoi_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pystoi", None)  # importing it now fails
    with pytest.raises(UserError, match=r"myxtts\[eval\]"):
        estoi(np.ones(RATE), np.ones(RATE), RATE)


def test_a_resynthesis_stays_intelligible():
    pytest.importorskip("pystoi")
    natural = recording("LJ001-0002")
    copy = griffin_lim(log_mel(natural, SPEC), SPEC)
    assert estoi(natural, copy, SPEC.sample_rate) > 0.9
