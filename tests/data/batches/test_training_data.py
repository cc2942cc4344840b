"""An endless stream of batches over epochs, which goes on from anywhere."""

import contextlib
import gc
import os
import threading
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from myxtts.data.batches import graph_reader
from myxtts.data.batches.training_data import TrainingData
from tests.data.conftest import configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches
from tests.helpers.make_corpus import make_corpus


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("overlap", [True, False])
def test_stream_is_all_epochs_one_after_the_other(prepared, native, overlap):
    toggles = {"use_tf_native_loading": native, "optimize_cpu_gpu_overlap": overlap}
    data = TrainingData(configured(prepared, **toggles))
    per_epoch = len(data.train_batches(0))
    streamed = list(islice(data.stream(), 2 * per_epoch))
    positions = [(epoch, number) for epoch, number, _ in streamed]
    assert positions == [(e, n) for e in range(2) for n in range(per_epoch)]
    expected = arrays_of(data.train_batches(0)) + arrays_of(data.train_batches(1))
    assert_same_batches(arrays_of(batch for _, _, batch in streamed), expected)


def test_stream_goes_on_in_the_middle_of_an_epoch(prepared):
    data = TrainingData(configured(prepared))
    per_epoch = len(data.train_batches(0))
    whole = list(islice(data.stream(), 2 * per_epoch))
    rest = list(islice(TrainingData(configured(prepared)).stream(1, 2), per_epoch - 2))
    assert [(e, n) for e, n, _ in rest] == [(e, n) for e, n, _ in whole[per_epoch + 2 :]]
    tail = arrays_of(batch for _, _, batch in whole[per_epoch + 2 :])
    assert_same_batches(arrays_of(batch for _, _, batch in rest), tail)


def test_stream_fills_the_cache_in_its_first_epoch(corpus):
    data = TrainingData(configured(corpus, preprocessing_mode="auto"))
    per_epoch = len(data.train_batches(0))
    assert not data.train.is_complete
    streamed = list(islice(data.stream(), 2 * per_epoch))
    assert data.train.is_complete
    computed = arrays_of(batch for epoch, _, batch in streamed if epoch == 0)
    assert_same_batches(computed, arrays_of(data.train_batches(0)))


def test_speaker_batches_hold_the_first_few_utterances_of_each_speaker(prepared):
    data = TrainingData(configured(prepared))
    cache = data.train.cache
    found = np.concatenate([np.asarray(b["speaker"]) for b in data.speaker_batches(each=2)])
    counts = np.bincount(cache.speaker, minlength=len(cache.speakers))
    assert np.bincount(found).tolist() == np.minimum(counts, 2).tolist()


def test_who_is_heard_in_validation_alone_has_no_number(prepared, tmp_path):
    other = make_corpus(tmp_path / "stranger", count=3)  # its speaker is called after the folder
    data = TrainingData(configured(prepared, val_dataset_path=str(other), cache_dir=""))
    assert "stranger" not in data.train.cache.speakers
    heard = [np.asarray(batch["speaker"]).tolist() for batch in data.val_batches()]
    assert sum(heard, []) == [-1] * 3


def test_data_that_is_dropped_leaves_no_mappings_threads_or_descriptors(prepared):
    def mappings() -> list[str]:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return [line for line in lines if str(prepared) in line]

    def open_files() -> list[str]:
        links = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # that of the listing itself
                links.append(os.readlink(f"/proc/self/fd/{name}"))
        return links

    files = []
    held = []
    for native in (True, False) * 3:
        data = TrainingData(configured(prepared, use_tf_native_loading=native))
        next(iter(data.train_batches()))
        next(data.stream())
        next(iter(data.val_batches()))
        assert mappings()
        del data
        gc.collect()  # the graphs of TensorFlow refer to themselves
        assert mappings() == []
        files.append(open_files())
        held.append((len(graph_reader._gathers), threading.active_count()))
    assert held[-1] == held[1]
    assert not [link for link in files[-1] if str(prepared) in link]
    # Other libraries of this process open one when they like; a leak opens one for each data.
    assert len(files[-1]) - len(files[1]) < len(files) - 2, (files[1], files[-1])
