"""What a user of `train` reads in the log: what was stored, which reader is in force, and why."""

import logging
import re
import shutil

import pytest

from myxtts.bench.tuning import _without_storing
from myxtts.data.batches.filling import CacheFiller
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.features import prepare
from myxtts.data.store import workers
from myxtts.data.store.errors import CacheError
from tests.data.conftest import TRAINED, configured


@pytest.fixture(autouse=True)
def heard(caplog):
    caplog.set_level(logging.INFO, logger="myxtts")


def said(caplog, pattern: str) -> list[str]:
    messages = [record.getMessage() for record in caplog.records]
    return [message for message in messages if re.search(pattern, message)]


def test_precompute_says_what_it_stored_and_reused(corpus, caplog):
    for made in (2 * TRAINED, 0):
        caplog.clear()
        TrainingData(configured(corpus, preprocessing_mode="precompute"))
        (line,) = said(caplog, "^training: precompute: ")
        assert f"all {TRAINED} utterances are stored in {corpus / 'cached_features'}: " in line
        assert line.endswith(f"{made} rows made, {2 * TRAINED - made} reused")


def test_the_reader_is_logged_when_it_changes(corpus, caplog):
    data = TrainingData(configured(corpus, preprocessing_mode="auto"))
    for epoch in range(3):
        for _ in data.train_batches(epoch):
            pass
    filling, native = said(caplog, "^training: reader: ")
    assert filling.startswith("training: reader: filling: features that are not stored are")
    assert native == "training: reader: native: batches are gathered in the graph from the cache"
    # What the filling epoch stored is told out of all that was missing.
    assert said(caplog, f"stored the features of {TRAINED} of {TRAINED} utterances")


def test_tuning_stores_nothing_and_logs_no_reader(corpus, caplog):
    data = _without_storing(TrainingData(configured(corpus, preprocessing_mode="auto")))
    for batches in (data.train_batches(0), data.speaker_batches(), data.val_batches()):
        for _ in batches:
            pass
    assert not data.train.cache.is_cached.any() and not data.val.cache.is_cached.any()
    assert not list((corpus / "cached_features").rglob("*.mel"))
    assert said(caplog, "reader: |being written") == []


def test_a_validation_pass_during_a_storing_epoch_is_nothing_to_report(corpus, caplog):
    step_by_step = {"optimize_cpu_gpu_overlap": False}  # there is a middle of the epoch
    data = TrainingData(configured(corpus, preprocessing_mode="auto", **step_by_step))
    batches = iter(data.train_batches(0))
    next(batches)
    assert data.train.location.features.is_held_here
    for _ in data.val_batches():
        pass
    assert said(caplog, "being written") == []
    for _ in batches:
        pass
    data.refresh()
    assert data.train.is_complete


def test_a_store_that_another_process_writes_is_reported(corpus, caplog, monkeypatch):
    data = TrainingData(configured(corpus, preprocessing_mode="auto"))
    monkeypatch.setattr("myxtts.data.store.store._locked", lambda *asked: False)
    split = data.train
    store, settings = split.location.features, split.location.settings
    CacheFiller(split.utterances, settings, store, 10**9, 64).close()
    assert len(said(caplog, "is being written already: this pass stores nothing")) == 1


def test_fewer_workers_than_asked_for_are_reported(corpus, caplog, monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 2)
    TrainingData(configured(corpus, preprocessing_mode="runtime", num_workers=64))
    expected = "num_workers is 64, but 2 cores are available: 2 workers are used"
    assert said(caplog, "num_workers") == [expected]
    caplog.clear()
    TrainingData(configured(corpus, preprocessing_mode="runtime", num_workers=2))
    assert said(caplog, "num_workers") == []


def test_a_disk_that_is_too_small_is_told_in_figures_that_add_up(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100_000))
    with pytest.raises(CacheError) as caught:
        prepare.check_space(tmp_path, 5_000_000)
    expected = "take about 5.0 MB in .*, where 67.1 MB shall stay free, but only 0.1 MB are free: "
    assert re.search(expected, str(caught.value))
