"""`LJSpeechDataset`: every method under its documented name and arguments."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.ljspeech import LJSpeechDataset
from myxtts.data.store.errors import PreparationError
from myxtts.errors import UserError
from tests.data.conftest import TRAINED, UTTERANCES
from tests.helpers.compare_batches import arrays_of, assert_same_batches, rows_by_index

KEYS = {
    "tokens", "text_lengths", "mel", "mel_lengths", "energy", "pitch", "speaker", "language",
    "index",
}  # fmt: skip


def dataset_of(path: Path, subset: str = "all", **settings) -> LJSpeechDataset:
    settings = {"batch_size": 4, "num_workers": 2, "val_fraction": 0.1, **settings}
    return LJSpeechDataset(path, DataConfig(**settings), subset=subset)


def arguments(method) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name != "self"]


def test_the_signatures_are_the_documented_ones():
    assert arguments(LJSpeechDataset)[:3] == ["data_path", "config", "subset"]
    assert arguments(LJSpeechDataset.precompute_mels) == ["num_workers", "overwrite"]
    assert arguments(LJSpeechDataset.precompute_tokens) == ["num_workers", "overwrite"]
    wanted = ["batch_size", "use_cache_files", "num_parallel_calls"]
    assert arguments(LJSpeechDataset.create_tf_dataset)[:3] == wanted
    fix = inspect.signature(LJSpeechDataset.verify_and_fix_cache).parameters["fix"]
    assert fix.default is True
    assert arguments(LJSpeechDataset.get_performance_report) == []


# What it is of


def test_the_subset_is_everything_unless_one_is_named(prepared_path):
    everything = LJSpeechDataset(prepared_path, DataConfig(val_fraction=0.1))
    train, val = (dataset_of(prepared_path, subset) for subset in ("train", "val"))
    assert (len(everything), len(train), len(val)) == (UTTERANCES, TRAINED, UTTERANCES - TRAINED)
    assert {*train.utterances, *val.utterances} == set(everything.utterances)
    assert not {*train.utterances} & {*val.utterances}


def test_an_unknown_subset_names_the_known_ones(prepared_path):
    with pytest.raises(UserError, match="all, train, val, not 'test'"):
        dataset_of(prepared_path, "test")


def test_an_empty_subset_says_what_to_do(prepared):
    empty = dataset_of(prepared, "val", val_fraction=0.0)
    with pytest.raises(CorpusError, match="nothing is there for val; raise val_fraction"):
        empty.create_tf_dataset()


@pytest.mark.parametrize("kind", [DataConfig, XTTSConfig])
def test_either_kind_of_configuration_is_taken_and_left_as_it_was(prepared_path, kind):
    config = kind(batch_size=4)
    dataset = LJSpeechDataset(str(prepared_path), config)
    assert len(next(iter(dataset.create_tf_dataset(batch_size=7)))["index"]) == 7
    data = config if kind is DataConfig else config.data
    assert (data.batch_size, data.dataset_path) == (4, "./data/ljspeech")
    assert dataset.config.data.batch_size == 4


def test_no_configuration_means_the_defaults(prepared_path):
    (batch,) = LJSpeechDataset(prepared_path).create_tf_dataset()
    assert batch["mel"].shape[0] == UTTERANCES < DataConfig().batch_size


# Preparing


def test_mels_and_tokens_are_prepared_apart_and_once(corpus):
    dataset = dataset_of(corpus)
    report = dataset.precompute_mels(num_workers=1, overwrite=False)
    assert (report.made, report.reused, report.rejections) == (UTTERANCES, 0, [])
    assert list(corpus.rglob("*.mel")) and not list(corpus.rglob("*.tokens"))
    report = dataset.precompute_tokens(num_workers=1, overwrite=False)
    assert (report.made, report.reused) == (UTTERANCES, 0)
    assert list(corpus.rglob("*.tokens"))
    again = dataset.precompute_mels()
    assert (again.made, again.reused) == (0, UTTERANCES)
    assert (dataset.precompute_tokens().made, dataset.precompute_mels().made) == (0, 0)
    content = sorted(path.read_bytes() for path in corpus.rglob("*.mel"))
    anew = dataset.precompute_mels(num_workers=1, overwrite=True)
    assert (anew.made, anew.reused) == (UTTERANCES, 0)
    assert content[0] in [path.read_bytes() for path in corpus.rglob("*.mel")]
    assert dataset.precompute_tokens(overwrite=True).made == UTTERANCES


def test_the_cache_lies_beside_the_recordings_unless_it_is_moved(corpus, tmp_path):
    dataset_of(corpus, cache_dir=str(tmp_path / "elsewhere")).precompute_tokens()
    assert not (corpus / "cached_features").exists()
    assert list((tmp_path / "elsewhere").rglob("*.tokens"))
    dataset_of(corpus).precompute_tokens()
    assert list((corpus / "cached_features").rglob("*.tokens"))


def test_the_report_names_what_could_not_be_prepared(corpus):
    (corpus / "wavs" / "utt-0004.wav").write_bytes(b"not a recording")
    report = dataset_of(corpus).precompute_mels(num_workers=1)
    assert [rejection.id for rejection in report.rejections] == ["utt-0004"]
    with pytest.raises(PreparationError, match="utt-0004"):
        dataset_of(corpus, preprocessing_mode="precompute").create_tf_dataset()


# One finite epoch


@pytest.mark.parametrize("batch_size", [1, 4, 7, 30, 64])
def test_an_epoch_is_finite_and_its_batches_have_the_exact_size(prepared_path, batch_size):
    dataset = dataset_of(prepared_path).create_tf_dataset(
        batch_size=batch_size, use_cache_files=True, num_parallel_calls=2
    )
    assert isinstance(dataset, tf.data.Dataset)
    found = arrays_of(dataset)
    sizes = [len(batch["index"]) for batch in found]
    full, rest = divmod(UTTERANCES, batch_size)
    assert sizes == [batch_size] * full + [rest] * (rest > 0)
    assert all(batch.keys() == KEYS for batch in found)
    assert sorted(rows_by_index(found)) == list(range(UTTERANCES))
    if batch_size == 4:
        assert_same_batches(arrays_of(dataset), found)


def test_a_batch_holds_what_its_recordings_and_texts_become(prepared_path):
    dataset = dataset_of(prepared_path)
    rows = rows_by_index(arrays_of(dataset.create_tf_dataset()))
    for position, utterance in enumerate(dataset.utterances):
        expected = dataset.tokenizer.encode(utterance.text, utterance.language)
        np.testing.assert_array_equal(rows[position]["tokens"], expected)
        frames = rows[position]["mel_lengths"]
        assert rows[position]["mel"].shape == (frames, 80)
        assert rows[position]["mel"].dtype == np.float16
        assert rows[position]["speaker"] == int(utterance.speaker[-1])


def test_epochs_differ_and_the_order_can_be_fixed(prepared_path):
    dataset = dataset_of(prepared_path)
    first = arrays_of(dataset.create_tf_dataset(epoch=0))
    assert_same_batches(arrays_of(dataset.create_tf_dataset()), first)
    other = arrays_of(dataset.create_tf_dataset(epoch=1))
    order = [batch["index"].tolist() for batch in first]
    assert order != [batch["index"].tolist() for batch in other]
    in_order = arrays_of(dataset.create_tf_dataset(shuffle=False))
    lengths = np.concatenate([batch["mel_lengths"] for batch in in_order])
    assert (np.diff(lengths) >= 0).all()


def test_a_frame_budget_makes_batches_smaller(prepared_path):
    dataset = dataset_of(prepared_path, batch_size=16, max_frames_per_batch=400)
    found = arrays_of(dataset.create_tf_dataset())
    assert all(np.prod(batch["mel"].shape[:2]) <= 400 for batch in found)
    assert sorted(rows_by_index(found)) == list(range(UTTERANCES))


def test_the_native_dataset_equals_the_one_of_the_host(prepared_path):
    native = dataset_of(prepared_path).create_tf_dataset()
    host = dataset_of(prepared_path, use_tf_native_loading=False).create_tf_dataset()
    assert native.element_spec == host.element_spec
    assert_same_batches(arrays_of(native), arrays_of(host))


def test_without_cache_files_nothing_is_written(corpus, prepared_path):
    before = sorted(corpus.rglob("*"))
    dataset = dataset_of(corpus).create_tf_dataset(use_cache_files=False)
    found = arrays_of(dataset)
    assert sorted(corpus.rglob("*")) == before
    expected = arrays_of(dataset_of(prepared_path).create_tf_dataset())
    assert [b["index"].tolist() for b in found] == [b["index"].tolist() for b in expected]
    assert found[0].keys() == KEYS


def test_in_auto_the_first_epoch_fills_the_cache(corpus, prepared_path):
    expected = arrays_of(dataset_of(prepared_path).create_tf_dataset())
    dataset = dataset_of(corpus)
    filling = dataset.create_tf_dataset()
    assert_same_batches(arrays_of(filling), expected)
    assert_same_batches(arrays_of(filling), expected)
    assert dataset.precompute_mels().made == 0
    assert_same_batches(arrays_of(dataset.create_tf_dataset()), expected)


# The cache's health


def test_damage_is_found_told_and_mended(prepared):
    dataset = dataset_of(prepared)
    assert dataset.verify_and_fix_cache(fix=False).problems == []
    expected = arrays_of(dataset.create_tf_dataset())
    file = next(prepared.rglob("*.mel"))
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    (problem,) = dataset.verify_and_fix_cache(fix=False).problems
    assert problem.file == file.name and len(problem.ids) == 1
    assert file.read_bytes() == bytes(data), "only told"
    report = dataset.verify_and_fix_cache()
    assert [found.file for found in report.problems] == [file.name]
    assert (report.remade.made, report.remade.rejections) == (1, [])
    assert dataset.verify_and_fix_cache(fix=False).problems == []
    assert_same_batches(arrays_of(dataset.create_tf_dataset()), expected)


def test_fixing_a_cache_that_is_not_there_makes_it(corpus):
    report = dataset_of(corpus).verify_and_fix_cache(fix=True)
    assert report.problems == []
    assert dataset_of(corpus).precompute_mels().made == 0


def test_the_performance_report_counts_what_is_stored(corpus, prepared_path):
    empty = dataset_of(corpus).get_performance_report()
    assert "features  0 stored, 30 missing" in empty and "hours stored  0.00" in empty
    full = dataset_of(prepared_path).get_performance_report()
    assert "features  30 stored, 0 missing, 0 could not be made" in full
    assert str(prepared_path / "cached_features") in full and "(float16)" in full
