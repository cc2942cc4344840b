"""What a vocoder is trained on, in every mode: stored once, or read and stored nowhere."""

import logging
import shutil
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio.mel import log_mel
from myxtts.data.batches import residence
from myxtts.data.batches.resident import ResidentBatch, stacked
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features.repair import verify_cache
from myxtts.data.features.status import take_inventory
from myxtts.data.segments.predictions import Predictor
from myxtts.data.segments.vocoder_data import VocoderData
from myxtts.data.store.errors import CacheError, PreparationError
from myxtts.errors import UserError
from tests.data.conftest import configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches
from tests.helpers.resident_cache import copy_at_once
from tests.helpers.tiny_cache import contents, flip_bit

FRAMES, SIZE = 24, 4  # some recordings are shorter than a segment
KEYS = {"mel", "pitch", "waveform", "first_frame", "index"}


def settings_of(path: Path, **settings):
    return configured(path, **{"val_fraction": 0.25, **settings})


def open_segments(path: Path, predictor: Predictor | None = None, **settings) -> VocoderData:
    return VocoderData(
        TrainingData(settings_of(path, **settings)), FRAMES, SIZE, predictor=predictor
    )


CORPUS = {"count": 12, "speakers": 2, "seconds": (0.2, 0.6)}  # of which three are held out


@pytest.fixture(scope="module")
def stored_path(shared_corpus, tmp_path_factory) -> Path:
    """The corpus with its features and waveforms in the cache; nothing may be written to it."""
    path = tmp_path_factory.mktemp("segments") / "stored"
    shutil.copytree(shared_corpus, path)
    open_segments(path, preprocessing_mode="precompute")
    return path


@pytest.fixture
def stored(stored_path, tmp_path) -> Path:
    return Path(shutil.copytree(stored_path, tmp_path / "stored"))


def wave_files(path: Path) -> list[Path]:
    return sorted(path.glob("cached_features/waves-*/*.wave"))


# The modes.


@pytest.mark.parametrize("mode", ["precompute", "auto"])
def test_waveforms_are_stored_beside_the_mels(corpus, mode):
    segments = open_segments(corpus, preprocessing_mode=mode)
    assert segments.train.is_stored and segments.val.is_stored
    assert (len(segments.train), len(segments.val)) == (9, 3)
    before = contents(corpus)
    assert wave_files(corpus)
    again = open_segments(corpus, preprocessing_mode=mode)
    assert contents(corpus) == before
    assert_same_batches(arrays_of(again.train_batches()), arrays_of(segments.train_batches()))


def test_a_batch_is_what_its_recordings_hold(stored_path):
    segments = open_segments(stored_path)
    batches = arrays_of(segments.train_batches(2))
    assert len(batches) == 2
    plan = segments.plan(2)
    audio = {one.id: one.audio for one in TrainingData(settings_of(stored_path)).train.utterances}
    for number, batch in enumerate(batches):
        assert batch.keys() == KEYS
        for row, (at, first) in enumerate(zip(plan[number], plan.starts(number), strict=True)):
            assert batch["index"][row] == at
            samples, _ = soundfile.read(audio[segments.train.ids[at]], dtype="int16")
            count = min(FRAMES, segments.train.lengths[at] - first)
            inside = samples[first * 256 : (first + count) * 256]
            np.testing.assert_array_equal(batch["waveform"][row, : count * 256], inside)
            assert not batch["waveform"][row, count * 256 :].any()
            mel = log_mel(samples / np.float32(32768), segments.train.settings.spec)[
                first : first + count
            ]
            np.testing.assert_allclose(batch["mel"][row, :count], mel, atol=2e-2)
            assert np.all(batch["mel"][row, count:] == np.float16(np.log(1e-5)))


def test_runtime_reads_the_same_segments_and_stores_nothing(corpus, stored_path):
    before = contents(corpus)
    read = open_segments(corpus, preprocessing_mode="runtime")
    assert not read.train.is_stored and not read.val.is_stored
    expected = open_segments(stored_path)
    assert list(read.train.ids) == list(expected.train.ids)
    for found, stored in (
        (read.train_batches(1), expected.train_batches(1)),
        (read.val_batches(), expected.val_batches()),
    ):
        found, stored = arrays_of(found), arrays_of(stored)
        assert len(found) == len(stored) > 0
        for one, other in zip(found, stored, strict=True):
            assert one.keys() == other.keys() == KEYS
            for name in ("waveform", "first_frame", "index"):
                np.testing.assert_array_equal(one[name], other[name])
            for name in ("mel", "pitch"):
                assert one[name].dtype == other[name].dtype
                np.testing.assert_allclose(one[name], other[name], rtol=1e-3)
    assert contents(corpus) == before
    assert not (corpus / "cached_features").exists()


READERS = {
    "host": {"use_tf_native_loading": False},
    "in memory": {"memory_cache": True},
    "in step": {"optimize_cpu_gpu_overlap": False},
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_delivers_the_same_bits(stored_path, reader):
    expected = arrays_of(open_segments(stored_path).train_batches(3))
    found = arrays_of(open_segments(stored_path, **READERS[reader]).train_batches(3))
    assert_same_batches(found, expected)


def test_the_device_cuts_the_same_segments(stored_path, monkeypatch):
    copy_at_once(monkeypatch)
    monkeypatch.setattr(residence, "PIECE_BYTES", 10_000)
    data = open_segments(stored_path, cache_on_device="on", prefetch_buffer_size=1)
    with closing(data.stream()) as items, closing(open_segments(stored_path).stream()) as known:
        found, expected = (list(islice(source, 9)) for source in (items, known))
        assert [item[:2] for item in found] == [item[:2] for item in expected]
        batches, others = ([item[2] for item in source] for source in (found, expected))
        assert sum(isinstance(batch, ResidentBatch) for batch in batches) >= 4
        assert_same_batches(arrays_of(batches), arrays_of(others))
        together = batches[6:8]  # an epoch
        apart = [one.tensors() for one in together]
        assert_same_batches(arrays_of([stacked(together)]), arrays_of([stacked(apart)]))
    assert data.release()
    # Where it is freed, the host cuts what was planned.
    assert_same_batches(arrays_of(batches), arrays_of(others))


def test_where_nothing_can_be_written_recordings_are_read(corpus, tmp_path, caplog):
    (tmp_path / "file").touch()
    settings = {"cache_dir": str(tmp_path / "file" / "cache")}
    with caplog.at_level(logging.WARNING, "myxtts"):
        segments = open_segments(corpus, preprocessing_mode="auto", **settings)
    assert "recordings are read while the vocoder trains" in caplog.text
    assert not segments.train.is_stored
    batch = arrays_of(segments.train_batches())[0]
    assert batch["mel"].shape == (SIZE, FRAMES, 80) and batch["waveform"].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"with_pitch": False}, "the cache has no pitch"),
        ({"enable_memory_mapping": False}, "enable_memory_mapping and memory_cache are off"),
    ],
)
def test_a_cache_that_segments_cannot_be_cut_from_is_an_error_or_read_past(
    corpus, caplog, settings, message
):
    with pytest.raises(CacheError, match=message):
        open_segments(corpus, preprocessing_mode="precompute", **settings)
    with caplog.at_level(logging.WARNING, "myxtts"):
        segments = open_segments(corpus, preprocessing_mode="auto", **settings)
    assert message in caplog.text and "recordings are read" in caplog.text
    batch = arrays_of(segments.train_batches())[0]
    assert batch["pitch"].any()  # a vocoder learns from it, whatever the model does


# Recordings and shards that are damaged.


def test_a_silent_recording_is_in_no_segment_and_named(corpus, caplog):
    chosen = TrainingData(settings_of(corpus, preprocessing_mode="runtime")).train.utterances[2]
    soundfile.write(chosen.audio, np.zeros(12000), 22050)
    with caplog.at_level(logging.WARNING, "myxtts"):
        segments = open_segments(corpus, preprocessing_mode="auto")
    assert f"1 of 9 utterances dropped: 1 x silent recording: {chosen.id}" in caplog.text
    assert chosen.id not in list(segments.train.ids) and len(segments.train) == 8
    found = {segments.train.ids[at] for b in segments.train_batches() for at in b["index"].numpy()}
    assert len(found) == 8
    with pytest.raises(PreparationError, match=chosen.id):
        open_segments(corpus, preprocessing_mode="precompute")


def test_more_silent_recordings_than_may_be_left_out_are_an_error_unless_more_are_allowed(corpus):
    chosen = TrainingData(settings_of(corpus, preprocessing_mode="runtime")).train.utterances[:5]
    for one in chosen:
        soundfile.write(one.audio, np.zeros(12000), 22050)
    with pytest.raises(CorpusError, match="5 of 9 utterances.*at most 25% may be"):
        open_segments(corpus, preprocessing_mode="auto")
    assert len(open_segments(corpus, preprocessing_mode="auto", max_rejected=0.6).train) == 4


def test_a_damaged_shard_of_waveforms_is_found_and_made_again(stored, caplog):
    expected = arrays_of(open_segments(stored).train_batches())
    path = wave_files(stored)[0]
    flip_bit(path, 100)
    with caplog.at_level(logging.WARNING, "myxtts"):
        found = arrays_of(open_segments(stored).train_batches())
    assert path.name in caplog.text
    assert_same_batches(found, expected)
    data = TrainingData(settings_of(stored))
    assert verify_cache(data.train.location, data.train.utterances) == []


# Epochs.


def test_the_stream_goes_on_exactly_from_anywhere(stored_path):
    segments = open_segments(stored_path)
    whole = list(islice(segments.stream(), 7))
    assert [(epoch, number) for epoch, number, _ in whole] == [
        *((0, 0), (0, 1), (1, 0), (1, 1)),
        *((2, 0), (2, 1), (3, 0)),
    ]
    batches = arrays_of(batch for *_, batch in whole)
    for start in (1, 2, 5):
        epoch, number, _ = whole[start]
        found = list(islice(segments.stream(epoch, number), 7 - start))
        assert [item[:2] for item in found] == [item[:2] for item in whole[start:]]
        assert_same_batches(arrays_of(item[2] for item in found), batches[start:])
    # A run that was stopped behind the last batch of an epoch goes on with the next.
    ((epoch, number, batch),) = islice(segments.stream(0, 2), 1)
    assert (epoch, number) == (1, 0)
    assert_same_batches(arrays_of([batch]), batches[2:3])


def test_another_seed_cuts_other_segments(stored_path):
    one, other = (
        arrays_of(open_segments(stored_path, seed=seed).train_batches()) for seed in (1, 2)
    )
    assert one[0]["waveform"].tobytes() != other[0]["waveform"].tobytes()


def test_validation_is_always_the_same_and_whole(stored_path):
    segments = open_segments(stored_path)
    batches = segments.val_batches()
    assert len(batches) == 1
    (first,), (again,) = arrays_of(batches), arrays_of(batches)
    assert_same_batches([first], [again])
    assert first["index"].tolist() == [0, 1, 2]


def test_without_a_validation_part_it_says_how_to_have_one(stored_path):
    segments = open_segments(stored_path, val_fraction=0.0)
    assert segments.val is None
    with pytest.raises(CorpusError, match="raise val_fraction"):
        segments.val_batches()


def test_where_no_recording_can_be_read_any_more_it_says_so(corpus):
    segments = open_segments(corpus, preprocessing_mode="runtime")
    shutil.rmtree(corpus / "wavs")
    with pytest.raises(CorpusError, match="none of the corpus's recordings can be used any more"):
        next(segments.stream())


# Mels that a voice predicts.


class Speaker:
    """Stands for a voice: it says of every frame who it is, and counts whom it was asked for."""

    def __init__(self, voice: str = "someone"):
        self.voice, self.asked = voice, []

    def predictor(self) -> Predictor:
        return Predictor(self.voice, self.predict)

    def predict(self, split, positions: np.ndarray) -> list[np.ndarray]:
        self.asked += [str(split.cache.ids[at]) for at in positions]
        return [self.says(split.cache.ids[at], split.cache.mel_lengths[at]) for at in positions]

    def says(self, name: str, frames: int) -> np.ndarray:
        loudness = -float(str(name)[-2:]) - len(self.voice) / 64
        steps = np.arange(frames)[:, None] / 128
        return np.full((frames, 80), loudness, np.float32) + steps.astype(np.float32)


def test_predicted_mels_take_the_place_of_the_recorded_ones(stored):
    speaker = Speaker()
    recorded, predicted = open_segments(stored), open_segments(stored, speaker.predictor())
    assert sorted(speaker.asked) == [f"utt-{number:04d}" for number in range(12)]
    plan = predicted.plan(0)
    pairs = zip(recorded.train_batches(), predicted.train_batches(), strict=True)
    for number, (one, other) in enumerate(pairs):
        for name in KEYS - {"mel"}:
            np.testing.assert_array_equal(one[name], other[name])
        for row, (at, first) in enumerate(zip(plan[number], plan.starts(number), strict=True)):
            length = predicted.train.lengths[at]
            expected = speaker.says(predicted.train.ids[at], length)[first : first + FRAMES]
            found = other["mel"][row].numpy()
            assert found.dtype == np.float16
            np.testing.assert_array_equal(found[: len(expected)], expected.astype(np.float16))
            assert np.all(found[len(expected) :] == np.float16(np.log(1e-5)))
    (held_out,) = arrays_of(predicted.val_batches())
    assert np.all(held_out["mel"][:, 0, 0] <= 0) and np.all(np.ptp(held_out["mel"], axis=2) == 0)


def test_a_voice_is_asked_once_and_another_voice_for_itself(stored):
    first, other = Speaker(), Speaker("someone else")
    expected = arrays_of(open_segments(stored, first.predictor()).train_batches())
    before = contents(stored)
    assert_same_batches(
        arrays_of(open_segments(stored, first.predictor()).train_batches()), expected
    )
    assert len(first.asked) == 12 and contents(stored) == before
    found = arrays_of(open_segments(stored, other.predictor()).train_batches())
    assert len(other.asked) == 12
    assert np.all(found[0]["mel"][:, 0] != expected[0]["mel"][:, 0])
    data = TrainingData(settings_of(stored)).train
    derived = take_inventory(data.location, data.utterances).derived
    kinds = {(kind, maker): part.stored for kind, maker, part in derived}
    assert kinds == {
        ("predicted", "someone"): 9,
        ("predicted", "someone else"): 9,
        ("waves", ""): 9,
    }


def test_a_changed_recording_is_all_that_is_predicted_again(stored):
    speaker = Speaker()
    open_segments(stored, speaker.predictor())
    chosen = TrainingData(settings_of(stored)).train.utterances[4]
    samples, rate = soundfile.read(chosen.audio)
    soundfile.write(chosen.audio, samples[: 30 * 256], rate)
    speaker.asked.clear()
    segments = open_segments(stored, speaker.predictor())
    assert speaker.asked == [chosen.id]
    at = list(segments.train.ids).index(chosen.id)
    assert segments.train.lengths[at] == 30
    said = segments.train.utterance(at)
    np.testing.assert_array_equal(said["mel"], speaker.says(chosen.id, 30).astype(np.float16))


def test_damaged_predictions_are_predicted_again(stored, caplog):
    speaker = Speaker()
    expected = arrays_of(open_segments(stored, speaker.predictor()).train_batches())
    speaker.asked.clear()
    flip_bit(sorted(stored.glob("cached_features/predicted-*/*.mel"))[0], 100)
    with caplog.at_level(logging.WARNING, "myxtts"):
        found = arrays_of(open_segments(stored, speaker.predictor()).train_batches())
    assert "predicted-" in caplog.text and len(speaker.asked) == 1
    assert_same_batches(found, expected)


def test_what_is_predicted_needs_a_place_to_be_stored(stored, tmp_path):
    with pytest.raises(UserError, match="the mode runtime stores nothing.*--preprocessing-mode"):
        open_segments(stored, Speaker().predictor(), preprocessing_mode="runtime")
    (tmp_path / "file").touch()
    settings = {"cache_dir": str(tmp_path / "file" / "cache"), "preprocessing_mode": "auto"}
    with pytest.raises((CacheError, OSError)):
        open_segments(stored, Speaker().predictor(), **settings)
