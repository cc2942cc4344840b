"""Training on a cache on object storage: all of it on this disk, or some shards at a time."""

import contextlib
import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fsspec", reason="object storage needs the extra object-storage")

from myxtts.config.config import XTTSConfig
from myxtts.data.batches.parts import Share
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.features import prepare as preparing
from myxtts.data.ljspeech import LJSpeechDataset
from myxtts.data.segments.vocoder_data import VocoderData
from myxtts.data.store import remote as remotes
from myxtts.data.store.errors import CacheError
from myxtts.workflows.prepare import prepare
from tests.data.conftest import TRAINED, configured
from tests.helpers.faulty_storage import counted, flip_object, fresh_storage, objects
from tests.helpers.tiny_cache import contents

URL, BELOW = "faulty://bucket/lj", "/bucket/lj/corpus"
COLUMNS = (".mel", ".energy", ".pitch")


@pytest.fixture
def storage():
    with fresh_storage() as storage:
        yield storage


@pytest.fixture
def at(corpus, tmp_path, monkeypatch) -> Callable[..., XTTSConfig]:
    """The settings of a mirror, by its name; shards have four utterances."""
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: 4)

    def settings(name: str = "mirror", **others) -> XTTSConfig:
        where = {"cache_dir": URL, "local_cache_dir": str(tmp_path / name)}
        return configured(corpus, num_workers=1, **where | others)

    return settings


@pytest.fixture
def stored(at, storage) -> int:
    """The bytes of the features on object storage, eight shards."""
    assert prepare(at("maker")) == []
    counted(storage)
    return sum(len(data) for name, data in objects(storage, BELOW).items() if is_column(name))


def is_column(name: str) -> bool:
    return name.endswith(COLUMNS)


def epoch(data: TrainingData, number: int = 0, start: int = 0) -> list[dict[str, np.ndarray]]:
    return as_arrays(data.train_batches(number, start))


def as_arrays(batches) -> list[dict[str, np.ndarray]]:
    return [{name: tensor.numpy() for name, tensor in batch.items()} for batch in batches]


def assert_same_batches(found: list[dict], expected: list[dict]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, array in other.items():
            np.testing.assert_array_equal(one[name], array, name)


def by_utterance(batches: list[dict]) -> dict[int, dict[str, np.ndarray]]:
    """The features of each utterance without padding, which is zero."""
    found = {}
    for batch in batches:
        for row, index in enumerate(batch["index"].tolist()):
            length = int(batch["mel_lengths"][row])
            assert not batch["mel"][row, length:].any()
            found[index] = {name: batch[name][row, :length] for name in ("mel", "energy", "pitch")}
    return found


def assert_same_utterances(found: list[dict], expected: list[dict]) -> None:
    ones, others = by_utterance(found), by_utterance(expected)
    assert ones.keys() == others.keys() and len(ones) == TRAINED
    for index, columns in others.items():
        for name, array in columns.items():
            np.testing.assert_array_equal(ones[index][name], array, name)


def test_prepare_stores_the_bytes_of_a_local_cache(at, stored, storage, tmp_path):
    local = at(cache_dir=str(tmp_path / "local"))
    prepare(local)
    folder = next((tmp_path / "local").iterdir())
    there = objects(storage, BELOW)
    here = {name: data for name, data in contents(folder).items() if not name.endswith(".lock")}
    assert there == here


def test_a_second_prepare_fetches_indexes_and_makes_nothing(at, stored, storage):
    said: list[str] = []
    assert prepare(at("other"), said.append) == []
    assert any("features  0 made, 30 reused" in line for line in said)
    asked = counted(storage)
    assert asked["put"] == 0 and not any(is_column(path) for _, path in storage.asked)


def test_an_interrupted_prepare_resumes_to_the_same_bytes(at, storage, stored):
    whole = objects(storage, BELOW)
    storage.store.clear()
    uploads = iter(range(20))

    def fault(operation, path):
        if operation == "put" and next(uploads, None) is None:
            raise KeyboardInterrupt

    storage.fault = fault
    with pytest.raises(KeyboardInterrupt):
        prepare(at("resumed"))
    storage.fault = None
    assert 0 < len(objects(storage, BELOW)) < len(whole)
    prepare(at("resumed"))
    assert objects(storage, BELOW) == whole


def test_batches_are_those_of_a_local_cache_and_later_epochs_fetch_nothing(
    at, stored, storage, tmp_path
):
    local = at(cache_dir=str(tmp_path / "local"), preprocessing_mode="precompute")
    expected = TrainingData(local)
    data = TrainingData(at("trainer"))
    assert counted(storage)["get"] == 2 * 8 + 3 + 4 * 8  # indexes, manifests, columns
    for number in range(2):
        assert_same_batches(epoch(data, number), epoch(expected, number))
    list(data.val_batches())
    assert counted(storage) == {}
    again = TrainingData(at("trainer"))
    assert_same_batches(epoch(again), epoch(expected))
    assert counted(storage).keys() == {"list"}


def test_a_small_disk_gives_the_same_utterances_group_by_group(at, stored, tmp_path, caplog):
    expected = epoch(TrainingData(at("all")))
    with caplog.at_level(logging.INFO):
        data = TrainingData(at("some", local_cache_gb=stored / 2 / 1e9))
    assert "shuffles within groups of about 2 of 8 shards" in caplog.text
    for number in range(2):
        found = []
        for batch in data.train_batches(number):
            found += as_arrays([batch])
            assert size_of_columns(tmp_path / "some") <= stored / 2
        assert_same_utterances(found, expected)


def size_of_columns(folder: Path) -> int:
    found = 0
    for path in folder.rglob("*"):
        if is_column(path.name) and ".incoming" not in path.parts:
            with contextlib.suppress(FileNotFoundError):  # just dropped, by the thread that fetches
                found += path.stat().st_size
    return found


def test_groups_resume_anywhere(at, stored):
    settings = {"local_cache_gb": stored / 2 / 1e9}
    whole = epoch(TrainingData(at("one", **settings)), 1)
    for start in (1, 3, len(whole) - 1):
        rest = epoch(TrainingData(at(f"other{start}", **settings)), 1, start)
        assert_same_batches(rest, whole[start:])


def test_groups_need_no_mapping(at, stored):
    settings = {"local_cache_gb": stored / 2 / 1e9}
    whole = epoch(TrainingData(at("one", **settings)))
    for name, value in (("enable_memory_mapping", False), ("memory_cache", True)):
        other = TrainingData(at("one", **settings, **{name: value}))
        assert_same_batches(epoch(other), whole)


def test_validation_on_a_small_disk_is_read_once_and_is_the_same(at, stored, storage):
    expected = TrainingData(at("all"))
    data = TrainingData(at("some", local_cache_gb=stored / 2 / 1e9))
    counted(storage)
    first, second = (
        [{n: t.numpy() for n, t in b.items()} for b in data.val_batches()] for _ in "ab"
    )
    assert_same_batches(first, second)
    assert_same_batches(
        first, [{n: t.numpy() for n, t in b.items()} for b in expected.val_batches()]
    )
    asked = counted(storage)
    assert asked["range"] == 3 * 4 and asked["get"] == 0  # four utterances, three columns
    assert len(list(data.speaker_batches(2))) == len(list(expected.speaker_batches(2)))


def test_a_disk_for_less_than_two_shards_is_an_error(at, stored):
    with pytest.raises(CacheError, match="two shards of .* take .* GB: give it at least that"):
        TrainingData(at("some", local_cache_gb=stored / 8 / 1e9))


def test_an_outage_in_the_middle_of_an_epoch_delays(at, stored, storage, monkeypatch, caplog):
    settings = {"local_cache_gb": stored / 2 / 1e9}
    whole = epoch(TrainingData(at("one", **settings)))
    monkeypatch.setattr(remotes.time, "sleep", lambda seconds: None)
    data = TrainingData(at("other", **settings))
    silent = iter(range(6))

    def fault(operation, path):
        if operation == "get" and next(silent, None) is not None:
            raise TimeoutError("no answer")

    batches = iter(data.train_batches())
    found = [next(batches)]
    storage.fault = fault
    found += batches
    assert_same_batches(as_arrays(found), whole)
    assert "(no answer): trying again" in caplog.text


def test_damage_in_the_middle_of_an_epoch_names_the_object(at, stored, storage):
    data = TrainingData(at("some", local_cache_gb=stored / 2 / 1e9))
    for name in objects(storage, BELOW):
        if name.endswith(".pitch"):
            flip_object(storage, f"{BELOW}/{name}")
    with pytest.raises(CacheError, match=r"faulty://bucket/lj/corpus/features-.*\.pitch: damaged"):
        epoch(data)


def test_workers_read_their_parts_of_every_group(at, stored):
    settings = {"local_cache_gb": stored / 2 / 1e9}
    whole = epoch(TrainingData(at("one", **settings)))
    found: list[list[int]] = [[] for _ in whole]
    for rank in range(2):
        data = TrainingData(at("one", **settings))
        data.share = Share(parts=2, rank=rank, replicas=2)
        for _, number, batch in itertools.islice(data.stream(), len(whole)):
            found[number] += batch["index"].numpy().tolist()
    assert [sorted(one) for one in found] == [sorted(one["index"].tolist()) for one in whole]


def test_a_dataset_of_tensorflow_reads_groups_too(at, stored):
    config = at("some", local_cache_gb=stored / 2 / 1e9)
    dataset = LJSpeechDataset(config.data.dataset_path, config, subset="train")
    found = as_arrays(dataset.create_tf_dataset(epoch=1))
    assert_same_batches(found, epoch(TrainingData(config), 1))


def test_a_vocoder_reads_recordings_where_the_disk_is_too_small(at, stored, storage, caplog):
    some = VocoderData(TrainingData(at("some", local_cache_gb=stored / 2 / 1e9)), 8, 4)
    assert "--local-cache-gb is less than the features" in caplog.text
    assert not some.train.is_stored
    whole = VocoderData(TrainingData(at("all")), 8, 4)
    assert whole.train.is_stored
    assert any(name.endswith(".wave") for name in objects(storage, BELOW))


def test_what_is_missing_there_is_an_error_that_names_prepare(at, storage, tmp_path):
    with pytest.raises(CacheError, match=f"{URL}/corpus lacks 26 of 26 utterances.*prepare"):
        TrainingData(at("trainer"))
    assert not (tmp_path / "trainer").exists()


def test_precompute_fills_object_storage(at, storage):
    data = TrainingData(at("trainer", preprocessing_mode="precompute"))
    assert len(epoch(data)) == 7
    assert sum(name.endswith(".mel") for name in objects(storage, BELOW)) == 8
    assert_same_batches(epoch(TrainingData(at("other"))), epoch(data))


def test_runtime_asks_for_nothing(at, storage):
    assert TrainingData(at("trainer", preprocessing_mode="runtime")).train.mode == "runtime"
    assert counted(storage) == {}


def test_the_plan_of_a_small_disk_is_a_fact_of_the_run(at, stored):
    whole, some = (
        TrainingData(at("one", **settings)).train
        for settings in ({}, {"local_cache_gb": stored / 2 / 1e9})
    )
    assert whole.layout is None
    other = TrainingData(at("two", local_cache_gb=stored / 1.5 / 1e9)).train
    assert some.layout.fingerprint() != other.layout.fingerprint()
