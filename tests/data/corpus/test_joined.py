"""Several corpora as one: ids, speakers and held-out utterances of each stay its own."""

import argparse
import os

import pytest

from myxtts.config.config import DataConfig
from myxtts.config.flags import add_flags, flag_values
from myxtts.data.corpus.joined import join_corpora
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features.corpora import read_corpora, read_parts
from tests.helpers.make_corpus import make_corpus


@pytest.fixture
def two(tmp_path):
    for name, speakers in (("one", 2), ("two", 3)):
        make_corpus(tmp_path / name, count=6, speakers=speakers, seconds=(0.3, 0.4))
    return [tmp_path / "one", tmp_path / "two"]


def data_of(folders, **settings) -> DataConfig:
    path = os.pathsep.join(str(folder) for folder in folders)
    return DataConfig(dataset_path=path, val_fraction=0.2, **settings)


def test_utterances_are_those_of_all_and_know_their_corpus(two):
    (first, _), (second, _) = (read_corpora(data_of([one])) for one in two)
    joined, _ = read_corpora(data_of(two))
    assert joined.root == two[0]
    expected = [f"one/{one.id}" for one in first.utterances]
    expected += [f"two/{one.id}" for one in second.utterances]
    assert [one.id for one in joined.utterances] == expected
    held_out = [f"one/{one.id}" for one in first.val] + [f"two/{one.id}" for one in second.val]
    assert [one.id for one in joined.val] == held_out
    assert [one.audio for one in joined.utterances[:6]] == [one.audio for one in first.utterances]


def test_speakers_of_one_name_are_different_people(two):
    joined, _ = read_corpora(data_of(two))
    first, _ = read_corpora(data_of(two[:1]))
    (only,) = {one.speaker for one in joined.utterances} - {
        f"{name}/{speaker}" for name in ("one", "two") for speaker in first.speakers
    }
    assert only not in first.speakers and "/" not in only
    assert len(joined.speakers) == 5


def test_folders_of_one_name_are_numbered(tmp_path):
    for parent in ("a", "b"):
        make_corpus(tmp_path / parent / "wavs1", count=2, seconds=(0.3, 0.4))
    folders = [tmp_path / parent / "wavs1" for parent in ("a", "b")]
    joined, _ = read_corpora(data_of(folders))
    assert {one.id.partition("/")[0] for one in joined.utterances} == {"wavs1", "wavs1-2"}


def test_a_flag_for_each_corpus_adds_up():
    parser = argparse.ArgumentParser()
    add_flags(parser, ["data.dataset_path"])
    given = flag_values(parser.parse_args(["--data", "a", "--data", "b", "--data", "a"]))
    assert DataConfig(dataset_path=given["data.dataset_path"].value).corpora == ["a", "b"]


def test_a_folder_with_a_colon_in_its_name_is_one(tmp_path):
    (tmp_path / "a:b").mkdir()
    assert DataConfig(dataset_path=str(tmp_path / "a:b")).corpora == [str(tmp_path / "a:b")]


def test_one_corpus_is_left_as_it_is(two):
    corpus, _ = read_corpora(data_of(two[:1]))
    assert join_corpora([corpus]) is corpus


def test_files_of_one_corpus_cannot_be_named_for_several(two):
    with pytest.raises(CorpusError, match="one corpus, and there are 2"):
        read_corpora(data_of(two, metadata_train_file="metadata.csv"))


def test_all_are_stored_in_one_cache(two):
    (part,) = read_parts(data_of(two))
    assert part.location.folder == two[0] / "cached_features"
    assert len(part.utterances) == 12
