"""Voices that are made by playing recordings slower and faster."""

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio.io import AudioError, read_info
from myxtts.config.config import AudioSpec
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.corpus.utterance import SPEEDS, Utterance, with_speed_perturbation
from myxtts.data.features.features import (
    FeatureSettings,
    at_speed,
    compute_features,
    frames_of_header,
    load_samples,
)
from tests.data.conftest import TRAINED, configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches, rows_by_index
from tests.helpers.tiny_cache import contents

pytestmark = pytest.mark.slow

MODES = ("precompute", "auto", "runtime")


# One recording.


def tone(hertz: float, seconds: float, rate: int) -> np.ndarray:
    time = np.arange(round(seconds * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


@pytest.mark.parametrize("rate", [16000, 22050])
@pytest.mark.parametrize("speed", SPEEDS)
def test_pitch_rises_and_length_falls_by_the_speed(speed, rate):
    samples = at_speed(tone(440.0, 1.0, rate), rate, speed)
    assert len(samples) == pytest.approx(rate / speed, rel=1e-3)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 2**18))
    highest = np.argmax(spectrum) * rate / 2**18
    assert highest == pytest.approx(440.0 * speed, rel=1e-3)
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("speed", [SPEEDS[-2], SPEEDS[-1]])
def test_the_features_are_those_of_the_faster_recording(speed, tmp_path):
    path, settings = tmp_path / "tone.wav", FeatureSettings(AudioSpec())
    # A tone has no pitch that is found as surely as that of a sound with overtones.
    samples = sum(tone(150.0 * k, 1.0, 22050) / k for k in range(1, 8)) / 3
    soundfile.write(path, samples, 22050)
    plain, found = compute_features(path, settings), compute_features(path, settings, speed)
    assert len(found["mel"]) == pytest.approx(len(plain["mel"]) / speed, abs=1)
    for features, hertz in ((plain, 150.0), (found, 150.0 * speed)):
        voiced = features["pitch"][features["pitch"] > 0]
        assert len(voiced) > 0.9 * len(features["pitch"])
        assert np.median(voiced) == pytest.approx(hertz, rel=0.01)


def test_a_speed_of_one_is_the_recording_itself():
    samples = tone(440.0, 0.1, 22050)
    assert at_speed(samples, 22050, 1.0) is samples


LENGTHS = (2800, 2999, 5000, 7777, 11025, 16001, 22050, 30001)


@pytest.mark.parametrize("speed", (1.0, *SPEEDS))
@pytest.mark.parametrize("source_rate", [22050, 16000, 44100])
def test_the_header_tells_exactly_how_many_frames_there_will_be(speed, source_rate, tmp_path):
    settings = FeatureSettings(AudioSpec(), with_pitch=False)
    random = np.random.default_rng(0)
    for length in LENGTHS:
        path = tmp_path / f"{length}.wav"
        samples = random.uniform(-0.5, 0.5, length * source_rate // 22050)
        soundfile.write(path, samples, source_rate)
        frames = len(compute_features(path, settings, speed)["mel"])
        assert frames_of_header(read_info(path), settings, speed) == frames


def test_a_recording_is_too_short_by_what_is_left_of_it_at_its_speed(tmp_path):
    settings = FeatureSettings(AudioSpec(), min_seconds=0.1)
    soundfile.write(tmp_path / "short.wav", tone(440.0, 0.11, 22050), 22050)
    # 2426 samples / 0.8 are 3032.5, and halves are rounded up.
    assert len(load_samples(tmp_path / "short.wav", settings, 0.8)) == 3033
    with pytest.raises(AudioError, match="too short"):
        load_samples(tmp_path / "short.wav", settings, 1.25)


# A corpus.


def utterances(count: int = 4) -> list[Utterance]:
    return [
        Utterance(f"u{n}", Path(f"{n}.wav"), f"text {n}", f"s{n % 2}", "en") for n in range(count)
    ]


@pytest.mark.parametrize("voices", range(9))
def test_every_speaker_gets_as_many_voices_as_asked_for(voices):
    own = utterances()
    found = with_speed_perturbation(own, voices)
    assert found[:4] == own  # first, and as they were
    assert len({one.id for one in found}) == len(found) == 4 * (voices + 1)
    assert set(Counter(one.speaker for one in found).values()) == {2}
    assert len({one.speaker for one in found}) == 2 * (voices + 1)
    for one in found[4:]:
        (source,) = [u for u in own if one.id.startswith(f"{u.id}@")]
        assert (one.audio, one.text, one.language) == (source.audio, source.text, source.language)
        assert one.speaker == f"{source.speaker}@{one.speed:g}" and one.speed != 1.0
    speeds = {one.speed for one in found[4:]}
    assert speeds == set(SPEEDS[:voices])


def open_data(path: Path, mode: str = "auto", voices: int = 2, **settings) -> TrainingData:
    return TrainingData(
        configured(path, preprocessing_mode=mode, voice_augmentation=voices, **settings)
    )


@pytest.mark.parametrize("mode", MODES)
def test_training_has_all_voices_and_validation_only_real_ones(corpus, mode):
    data = open_data(corpus, mode)
    speakers = ["speaker0", "speaker0@0.89", "speaker0@1.12"]
    assert data.train.cache.speakers == (
        *speakers, "speaker1", "speaker1@0.89", "speaker1@1.12"
    )  # fmt: skip
    ids = {u.id for u in data.train.utterances}
    assert len(ids) == len(data.train) == 3 * TRAINED
    assert {name.partition("@")[2] for name in ids} == {"", "0.89", "1.12"}
    assert {u.speed for u in data.val.utterances} == {1.0}
    assert not {u.id for u in data.val.utterances} & {name.partition("@")[0] for name in ids}
    numbers = {int(x) for batch in data.val_batches() for x in np.asarray(batch["speaker"])}
    assert numbers <= {0, 3}


def test_all_modes_give_the_same_utterances_in_the_same_batches(corpus, tmp_path):
    """What is computed in the graph differs in the last bits; all else to none."""
    opened = {mode: open_data(corpus, mode, cache_dir=str(tmp_path / mode)) for mode in MODES}
    batches = {mode: arrays_of(data.train_batches(1)) for mode, data in opened.items()}
    assert_same_batches(batches["auto"], batches["precompute"])
    assert len(batches["runtime"]) == len(batches["auto"]) == 20
    stored, computed = rows_by_index(batches["auto"]), rows_by_index(batches["runtime"])
    assert stored.keys() == computed.keys() and len(stored) == 3 * TRAINED
    for position, row in stored.items():
        for name in ("tokens", "text_lengths", "mel_lengths", "speaker", "language"):
            np.testing.assert_array_equal(computed[position][name], row[name], name)
        np.testing.assert_allclose(
            computed[position]["mel"].astype(np.float32), row["mel"].astype(np.float32), atol=0.05
        )


def test_a_batch_has_the_features_of_the_speed(prepared):
    data = open_data(prepared)
    rows = rows_by_index(arrays_of(data.train_batches()))
    settings = data.train.location.settings
    for position in (0, TRAINED, 2 * TRAINED + 5):
        utterance = data.train.utterances[position]
        expected = compute_features(utterance.audio, settings, utterance.speed)["mel"]
        np.testing.assert_array_equal(rows[position]["mel"], expected)


def test_the_plan_goes_on_anywhere_and_is_the_same_in_every_run(corpus):
    first = open_data(corpus)
    per_epoch = len(first.train_batches())
    whole = list(islice(first.stream(), 2 * per_epoch))  # the first epoch fills the cache
    again = open_data(corpus)
    assert again.train.is_complete
    rest = list(islice(again.stream(0, 5), 2 * per_epoch - 5))
    assert [(e, n) for e, n, _ in rest] == [(e, n) for e, n, _ in whole[5:]]
    assert_same_batches(
        arrays_of(batch for *_, batch in rest), arrays_of(batch for *_, batch in whole[5:])
    )


def test_without_voices_nothing_is_added_to_the_cache(prepared):
    def stored() -> dict[str, bytes]:
        return {name: data for name, data in contents(prepared).items() if ".lock" not in name}

    before = stored()
    open_data(prepared, "precompute", voices=0)
    assert stored() == before
    open_data(prepared, "precompute", voices=1)
    assert len(stored()) > len(before) and before.items() <= stored().items()


def test_trimmed_recordings_have_their_voices_too(corpus):
    data = open_data(corpus, "runtime", trim_silence=True)
    lengths = rows_by_index(arrays_of(data.train_batches()))
    assert len(lengths) == 3 * TRAINED
    for position, row in lengths.items():
        assert 0 < row["mel_lengths"] <= data.train.plan_lengths[position]
