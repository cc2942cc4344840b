"""What a frozen encoder says of each recording: computed once, kept whole, and in every batch."""

import hashlib
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio.io import SILENT, AudioError, read_audio
from myxtts.data.batches.training_data import TrainingData, with_embeddings
from myxtts.data.corpus.utterance import CorpusError, with_speed_perturbation
from myxtts.data.features import embeddings
from myxtts.data.features.embeddings import (
    EmbeddingWork,
    VoiceEncoder,
    compute_embeddings,
    store_embeddings,
)
from myxtts.data.features.features import at_speed
from myxtts.data.features.repair import collect_garbage, fix_cache, verify_cache
from myxtts.data.features.status import take_inventory
from myxtts.data.store.errors import CacheError, PreparationError
from myxtts.data.store.packed_cache import Embeddings
from tests.data.conftest import TRAINED, configured
from tests.helpers.compare_batches import arrays_of
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_cache import TinyCache, contents, flip_bit, locate

DIM = 32


@dataclass
class Listener:
    """An encoder in NumPy: 32 correlations of the samples' sizes; it counts what it hears."""

    seed: int = 0
    heard: list[int] = field(default_factory=list)  # samples of each recording
    deaf_to: int = -1  # samples of a recording that it finds silent

    def encoder(self) -> VoiceEncoder:
        weights = hashlib.sha256(bytes([self.seed])).hexdigest()
        return VoiceEncoder("fake", weights, DIM, 16000, self.embed)

    def embed(self, recordings: Sequence[np.ndarray], sample_rate: int) -> list:
        assert sample_rate == 16000
        self.heard += [len(samples) for samples in recordings]
        return [
            AudioError("fake", SILENT, "nobody is heard")
            if len(samples) == self.deaf_to
            else self.describe(samples)
            for samples in recordings
        ]

    def describe(self, samples: np.ndarray) -> np.ndarray:
        random = np.random.default_rng(self.seed)
        parts = np.array_split(np.abs(samples), 8)
        return random.normal(size=(DIM, 8)) @ [part.mean() for part in parts]

    def truth(self, utterances) -> np.ndarray:
        """What it says of each, one by one."""
        samples = [at_speed(read_audio(u.audio, 16000), 16000, u.speed) for u in utterances]
        return np.array([self.describe(one) for one in samples], np.float32)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("voices") / "corpus", 20, seconds=(0.3, 0.6))


@pytest.fixture
def tiny(original, tmp_path, monkeypatch) -> TinyCache:
    """Twenty recordings, described in shards of eight, at most three at a time."""
    monkeypatch.setattr(embeddings.EmbeddingWork, "largest_shard", 8)
    monkeypatch.setattr(embeddings, "_AT_A_TIME", 3)
    return locate(Path(shutil.copytree(original, tmp_path / "corpus")))


def store(tiny: TinyCache, listener: Listener, **options) -> Embeddings:
    found, rejections = store_embeddings(
        tiny.utterances, tiny.folder, listener.encoder(), **options
    )
    assert rejections == []
    return found


def everyone(found: Embeddings) -> np.ndarray:
    return found[np.arange(len(found.rows))]


def assert_sound(found: Embeddings, tiny: TinyCache, listener: Listener) -> None:
    assert found.dim == DIM and found.array.dtype == np.float32
    np.testing.assert_array_equal(everyone(found), listener.truth(tiny.utterances))


# What is stored.


def test_what_was_described_is_not_described_again(tiny):
    listener = Listener()
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 20
    before = contents(tiny.folder)
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 20
    assert contents(tiny.folder) == before
    assert len(list(tiny.folder.rglob("*.index"))) == 3


def test_a_changed_recording_is_all_that_is_described_again(tiny):
    listener = Listener()
    store(tiny, listener)
    path = tiny.utterances[11].audio
    samples, rate = soundfile.read(path)
    soundfile.write(path, 0.5 * samples, rate)
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 21


def test_a_copy_of_a_recording_is_not_described_again(tiny):
    listener = Listener()
    store(tiny, listener)
    for utterance in tiny.utterances:
        utterance.audio.touch()
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 20


def test_an_interruption_keeps_the_shards_that_were_finished(tiny):
    listener, whole = Listener(), tiny.folder.parent / "whole"
    store_embeddings(tiny.utterances, whole, listener.encoder())
    listener.heard.clear()

    def stop(done: int, total: int, seconds: float) -> None:
        assert total == 20
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store(tiny, listener, progress=stop)
    assert len(listener.heard) == 16
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 20
    assert contents(tiny.folder) == contents(whole)


def test_what_a_kill_leaves_of_a_shard_is_made_again(tiny):
    listener = Listener()
    store(tiny, listener)
    sound = contents(tiny.folder)
    index = sorted(tiny.folder.rglob("*.index"))[1]
    index.unlink()  # it is written last
    (index.parent / f"{index.stem}.embedding.77.tmp").write_bytes(b"half")
    assert_sound(store(tiny, listener), tiny, listener)
    assert contents(tiny.folder) == sound


@pytest.mark.parametrize("kind", ["embedding", "index"])
def test_a_flipped_bit_is_found_named_and_made_again(tiny, kind, caplog):
    listener = Listener()
    store(tiny, listener)
    path = tiny.file(kind)
    flip_bit(path, 40)
    with caplog.at_level(logging.WARNING, "myxtts"):
        assert_sound(store(tiny, listener), tiny, listener)
    assert path.name in caplog.text
    # One utterance, or a whole shard where it is the index.
    assert len(listener.heard) - 20 in ((1,) if kind == "embedding" else (4, 8))
    assert verify_cache_of_voices(tiny) == []


def verify_cache_of_voices(tiny: TinyCache) -> list:
    return [one for one in verify_cache(tiny.location) if "lacks" not in one.what]


def test_another_encoder_has_another_store(tiny):
    first, second = Listener(0), Listener(1)
    assert_sound(store(tiny, first), tiny, first)
    assert_sound(store(tiny, second), tiny, second)
    folders = [EmbeddingWork(tiny.folder, one.encoder()).store.folder for one in (first, second)]
    assert folders[0] != folders[1] and all(folder.is_dir() for folder in folders)
    assert_sound(store(tiny, first), tiny, first)
    assert (len(first.heard), len(second.heard)) == (20, 20)


def test_a_recording_at_another_speed_is_described_at_that_speed(tiny):
    listener = Listener()
    both = with_speed_perturbation(tiny.utterances[:3], 1)
    found, _ = store_embeddings(both, tiny.folder, listener.encoder())
    np.testing.assert_array_equal(everyone(found), listener.truth(both))
    assert listener.heard[3] == round(listener.heard[0] * 16000 / 17920)  # 1.12 x 16000


def test_in_memory_the_same_is_said_and_nothing_written(tiny):
    listener, told = Listener(), []
    found, rejections = compute_embeddings(
        tiny.utterances, listener.encoder(), lambda done, total, seconds: told.append((done, total))
    )
    assert rejections == []
    assert_sound(found, tiny, listener)
    assert told == [(number, 20) for number in range(1, 21)]
    assert not tiny.folder.exists()


# Recordings without a voice.


def damaged(tiny: TinyCache) -> Listener:
    """Three that cannot be described, each for a reason of its own."""
    for number, samples in ((2, np.zeros(8000)), (5, np.zeros(10))):
        soundfile.write(tiny.utterances[number].audio, samples, 22050)
    length = len(read_audio(tiny.utterances[9].audio, 16000))
    return Listener(deaf_to=length)


@pytest.mark.parametrize("how", ["stored", "in memory"])
def test_recordings_without_a_voice_are_named_and_have_no_row(tiny, how):
    listener = damaged(tiny)

    def describe() -> tuple:
        if how == "stored":
            return store_embeddings(tiny.utterances, tiny.folder, listener.encoder())
        return compute_embeddings(tiny.utterances, listener.encoder())

    for _ in range(2):
        found, rejections = describe()
        assert {(one.id, one.reason) for one in rejections} == {
            ("utt-0002", "silent recording"),
            ("utt-0005", "too short"),
            ("utt-0009", "silent recording"),
        }
        assert np.flatnonzero(found.rows < 0).tolist() == [2, 5, 9]
        good = np.flatnonzero(found.rows >= 0)
        truth = listener.truth([tiny.utterances[i] for i in good.tolist()])
        np.testing.assert_array_equal(found[good], truth)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_an_embedding_of_nothing_is_no_voice(tiny, value):
    encoder = VoiceEncoder("fake", "0", DIM, 16000, lambda all, rate: [np.full(DIM, value)])
    _, (rejection,) = store_embeddings(tiny.utterances[:1], tiny.folder, encoder)
    assert rejection.reason == "no voice" and "fake" in rejection.detail


# In training.


def open_data(path: Path, listener: Listener, **settings) -> TrainingData:
    return TrainingData(configured(path, **settings), encoder=listener.encoder())


def by_id(data: TrainingData, batches) -> dict[str, np.ndarray]:
    """The embedding that batches have for each utterance."""
    ids = data.train.cache.ids
    return {
        str(ids[int(position)]): row
        for batch in arrays_of(batches)
        for position, row in zip(batch["index"], batch["embedding"], strict=True)
    }


READERS = {
    "native": {},
    "host": {"use_tf_native_loading": False},
    "read": {"enable_memory_mapping": False},
    "runtime": {"preprocessing_mode": "runtime"},
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_delivers_the_same_rows(prepared, reader):
    listener = Listener()
    data = open_data(prepared, listener, **READERS[reader])
    batches = data.train_batches(3)
    assert batches.reader == {"read": "host"}.get(reader, reader)
    found = by_id(data, batches)
    truth = listener.truth(data.train.utterances)
    assert len(found) == TRAINED
    for utterance, row in zip(data.train.utterances, truth, strict=True):
        np.testing.assert_array_equal(found[utterance.id], row)
    held_out = arrays_of(data.val_batches())[0]
    expected = listener.truth([data.val.utterances[i] for i in held_out["index"].tolist()])
    np.testing.assert_array_equal(held_out["embedding"], expected)


def test_while_the_cache_fills_and_afterwards_the_rows_are_the_same(corpus):
    data = open_data(corpus, Listener(), preprocessing_mode="auto")
    batches = data.train_batches(0)
    assert batches.reader == "filling"
    filling = by_id(data, batches)
    again = data.train_batches(0)
    assert again.reader == "native"
    stored = by_id(data, again)
    assert filling.keys() == stored.keys() and len(stored) == TRAINED
    for name, row in stored.items():
        np.testing.assert_array_equal(filling[name], row)


def test_training_goes_on_with_what_was_described_before(prepared):
    listener = Listener()
    open_data(prepared, listener)
    assert len(listener.heard) == 30
    open_data(prepared, listener)
    assert len(listener.heard) == 30


def test_runtime_writes_nothing(corpus):
    before = contents(corpus)
    listener = Listener()
    open_data(corpus, listener, preprocessing_mode="runtime")
    assert len(listener.heard) == 30 and contents(corpus) == before


def test_where_nothing_can_be_written_voices_are_described_in_memory(corpus, tmp_path, caplog):
    (tmp_path / "file").touch()
    listener, settings = Listener(), {"cache_dir": str(tmp_path / "file" / "cache")}
    with caplog.at_level(logging.WARNING, "myxtts"):
        data = open_data(corpus, listener, preprocessing_mode="auto", **settings)
    assert "speaker embeddings are computed in memory" in caplog.text
    truth = listener.truth(data.train.utterances)
    np.testing.assert_array_equal(everyone(data.train.cache.embeddings), truth)
    with pytest.raises((CacheError, OSError)):
        with_embeddings(
            replace(data.train, mode="precompute"), listener.encoder(), data.config.data
        )


@pytest.mark.parametrize("mode", ["auto", "runtime"])
def test_a_recording_without_a_voice_is_left_out_by_name(prepared, mode, caplog):
    trained = TrainingData(configured(prepared)).train.utterances
    listener = Listener(deaf_to=len(read_audio(trained[7].audio, 16000)))
    with caplog.at_level(logging.WARNING, "myxtts"):
        data = open_data(prepared, listener, preprocessing_mode=mode)
    assert f"1 of {TRAINED} utterances dropped: 1 x silent recording" in caplog.text
    assert trained[7].id in caplog.text
    assert trained[7].id not in [u.id for u in data.train.utterances]
    found = by_id(data, data.train_batches())
    assert len(found) == TRAINED - 1 == len(data.train)
    truth = listener.truth(data.train.utterances)
    for utterance, row in zip(data.train.utterances, truth, strict=True):
        np.testing.assert_array_equal(found[utterance.id], row)


def test_precompute_takes_no_excuse_for_a_recording_without_a_voice(prepared):
    (first, *_) = TrainingData(configured(prepared)).train.utterances
    listener = Listener(deaf_to=len(read_audio(first.audio, 16000)))
    with pytest.raises(PreparationError, match=f"1 x silent recording: {first.id}"):
        open_data(prepared, listener, preprocessing_mode="precompute")


def test_many_recordings_without_a_voice_are_an_error(prepared):
    deaf = VoiceEncoder("deaf", "0", DIM, 16000, lambda all, rate: [np.zeros(DIM)] * len(all))
    with pytest.raises(CorpusError, match="26 of 26 utterances.*no voice.*max_rejected"):
        TrainingData(configured(prepared), encoder=deaf)


def test_embeddings_follow_the_utterances_that_are_chosen(prepared):
    listener = Listener()
    data = open_data(prepared, listener)
    cache, chosen = data.train.cache, np.array([7, 2, 11])
    truth = listener.truth(data.train.utterances)
    np.testing.assert_array_equal(everyone(cache.select(chosen).embeddings), truth[chosen])
    mask = np.isin(np.arange(len(cache)), chosen)
    kept = data.train.keep(mask, ())
    np.testing.assert_array_equal(everyone(kept.cache.embeddings), truth[[2, 7, 11]])
    np.testing.assert_array_equal(kept.cache.embeddings[np.array([2, 0])], truth[[11, 2]])
    few = arrays_of(data.speaker_batches(each=1))
    found = np.concatenate([batch["embedding"] for batch in few])
    order = np.concatenate([batch["index"] for batch in few])
    first = [list(cache.speaker).index(speaker) for speaker in (0, 1)]
    np.testing.assert_array_equal(found[np.argsort(order)], truth[first])


# In the care of `myxtts cache`.


def test_an_inventory_counts_what_each_encoder_described(tiny):
    listener = Listener()
    assert take_inventory(tiny.location, tiny.utterances).derived == ()
    store_embeddings(tiny.utterances[:15], tiny.folder, listener.encoder())
    found = take_inventory(tiny.location, tiny.utterances)
    ((_, encoder, voices),) = found.derived
    assert (encoder, voices.stored, voices.missing, voices.rejected) == ("fake", 15, 5, 0)
    assert voices.disk_bytes >= 15 * 4 * DIM and found.others == ()
    assert "voices    15 stored, 5 missing, 0 could not be made; 2 shards" in str(found)
    assert str(found).count("(by fake)") == 1


@pytest.mark.parametrize("kind", ["embedding", "index", "store.json"])
def test_damage_among_the_voices_is_found_and_dropped(tiny, kind):
    listener = Listener()
    store(tiny, listener)
    path = tiny.file(kind)
    flip_bit(path, 40)
    (problem,) = verify_cache_of_voices(tiny)
    assert path.name in problem.file
    report = fix_cache(tiny.location, tiny.utterances, workers=1)
    assert [one.file for one in report.problems] == [problem.file]
    assert verify_cache(tiny.location, tiny.utterances) == []
    kept = sum(part.stored for _, _, part in take_inventory(tiny.location, tiny.utterances).derived)
    assert kept in {"embedding": (19,), "index": (12, 16), "store.json": (0,)}[kind]
    assert_sound(store(tiny, listener), tiny, listener)
    assert len(listener.heard) == 20 + 20 - kept


def test_a_store_without_its_manifest_hides_nothing_else(tiny):
    store(tiny, Listener())
    folder = EmbeddingWork(tiny.folder, Listener().encoder()).store.folder
    (folder / "store.json").unlink()
    found = take_inventory(tiny.location, tiny.utterances)
    assert found.damaged == (folder.name,) and found.derived == ()
    assert f"damaged: {folder.name} (`myxtts cache fix` repairs them)" in str(found)


def test_a_manifest_without_its_last_byte_is_written_again_and_the_voices_are_kept(tiny):
    store(tiny, Listener())
    sound = contents(tiny.folder)
    path = EmbeddingWork(tiny.folder, Listener().encoder()).store.folder / "store.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert [problem.file for problem in verify_cache_of_voices(tiny)] == ["store.json"]
    fix_cache(tiny.location, tiny.utterances, workers=1)
    assert verify_cache_of_voices(tiny) == []
    kept = {name: data for name, data in contents(tiny.folder).items() if "voices-" in name}
    assert kept == sound


def test_leftovers_among_the_voices_are_removed(tiny):
    listener = Listener()
    store(tiny, listener)
    sound = contents(tiny.folder)
    folder = EmbeddingWork(tiny.folder, listener.encoder()).store.folder
    (folder / "0123.embedding.5.tmp").write_bytes(b"half")
    (problem,) = verify_cache_of_voices(tiny)
    assert problem.what == "a foreign or temporary file"
    fix_cache(tiny.location, tiny.utterances, workers=1)
    kept = {name: data for name, data in contents(tiny.folder).items() if "voices-" in name}
    assert kept == sound


def test_garbage_among_the_voices_is_of_utterances_that_are_gone(tiny):
    first, second = Listener(0), Listener(1)
    store(tiny, first)
    store(tiny, second)
    left = tiny.utterances[:9]  # the last of three shards is of none of them
    _, names = collect_garbage(tiny.location, left)
    assert len(names) == 2
    for listener in (first, second):
        found, _ = store_embeddings(left, tiny.folder, listener.encoder())
        np.testing.assert_array_equal(everyone(found), listener.truth(left))
        assert len(listener.heard) == 20
    # Other settings of the audio leave them alone.
    other = locate(tiny.root, sample_rate=16000)
    assert collect_garbage(other.location, left)[1] == []
