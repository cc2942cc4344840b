"""Corpora with traps in them: each is named with its reason, and nothing waits for ever."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio import io
from myxtts.config.config import DataConfig
from myxtts.data.batches.limits import examine
from myxtts.data.corpus.corpus import read_corpus
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features import features
from myxtts.data.features.features import FeatureSettings, compute_features
from myxtts.data.features.keys import content_of
from myxtts.data.features.prepare import prepare
from myxtts.data.rejections import UNREADABLE_TEXT
from tests.helpers.tiny_cache import arrays, locate

pytestmark = pytest.mark.timeout(60)  # a trap that works would wait for ever


CORPUS = {"count": 8, "seconds": (0.4, 0.6)}


def make_fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def make_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def make_slow(path: Path) -> None:
    soundfile.write(path, np.ones(5000) / 2, 1)


def make_huge(path: Path) -> None:
    soundfile.write(path, np.full(9000, 1e38), 22050, "FLOAT")


def make_not_a_number(path: Path) -> None:
    soundfile.write(path, np.full(9000, np.nan), 22050, "FLOAT")


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


TRAPS = {
    make_fifo: io.NOT_REGULAR,
    make_endless: io.NOT_REGULAR,
    make_folder: io.NOT_REGULAR,
    make_slow: io.IMPLAUSIBLE,
    make_huge: io.TOO_LOUD,
    make_not_a_number: io.NOT_A_NUMBER,
    make_empty: io.EMPTY,
}


def test_traps_among_recordings_are_named_by_check_and_prepare_alike(corpus):
    names = [f"utt-{number:04d}" for number in range(len(TRAPS))]
    for name, trap in zip(names, TRAPS, strict=True):
        trap(corpus / "wavs" / f"{name}.wav")
    tiny = locate(corpus)
    expected = dict(zip(names, TRAPS.values(), strict=True))
    found = examine(
        read_corpus(corpus, val_fraction=0.0),
        DataConfig(dataset_path=str(corpus)),
        tiny.location.tokenizer,
    )
    assert {one.id: one.reason for one in found.corpus.rejections} == expected
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert {one.id: one.reason for one in report.rejections} == expected
    stored = arrays(tiny.location)
    assert list(stored) == ["utt-0007"]
    assert all(np.isfinite(array).all() for array in stored["utt-0007"].values())
    # Once more: they are not tried again while they are as they were.
    assert prepare(tiny.utterances, tiny.location, workers=1).made <= len(TRAPS)


@pytest.mark.slow
def test_runtime_mode_names_a_trap_once_and_trains_on_the_rest(corpus, caplog):
    from myxtts.config.config import XTTSConfig
    from myxtts.data.batches.training_data import TrainingData

    make_fifo(corpus / "wavs" / "utt-0002.wav")
    make_huge(corpus / "wavs" / "utt-0005.wav")
    config = XTTSConfig(
        data_path=str(corpus),
        preprocessing_mode="runtime",
        batch_size=4,
        num_workers=1,
        val_fraction=0.0,
        max_rejected=0.5,
    )
    data = TrainingData(config)
    for epoch in range(3):
        used = [data.train.cache.ids[i] for b in data.train_batches(epoch) for i in b["index"]]
        assert sorted(used) == [f"utt-000{number}" for number in (0, 1, 3, 4, 6, 7)]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert sum("utt-0002" in said for said in warnings) == 1
    assert sum("utt-0005" in said and io.TOO_LOUD in said for said in warnings) == 1


@pytest.mark.parametrize(
    ("trap", "kind"), [(make_fifo, "a named pipe"), (make_endless, "a character device")]
)
@pytest.mark.parametrize("name", ["metadata.csv", "speakers.csv", "metadata_eval.csv"])
def test_metadata_that_are_no_file_are_refused_by_name(corpus, trap, kind, name):
    if name == "metadata_eval.csv":
        (corpus / "metadata.csv").rename(corpus / "metadata_train.csv")
    trap(corpus / name)
    with pytest.raises(CorpusError, match=f"{name}: cannot be read: it is {kind}"):
        read_corpus(corpus)


@pytest.mark.parametrize("trap", [make_fifo, make_endless, make_folder])
def test_metadata_that_the_user_names_and_are_no_file_are_refused(corpus, trap):
    trap(corpus / "mine.csv")
    with pytest.raises(CorpusError, match="mine.csv: cannot be read: .* not a regular file"):
        read_corpus(corpus, metadata_train="mine.csv")


@pytest.mark.parametrize("trap", [make_fifo, make_endless, make_folder])
def test_texts_beside_recordings_that_are_no_file_are_dropped_by_name(corpus, trap):
    (corpus / "metadata.csv").unlink()
    for path in (corpus / "wavs").glob("*.wav"):
        path.with_suffix(".txt").write_text("Some words.")
    trap(corpus / "wavs" / "utt-0003.txt")
    found = read_corpus(corpus)
    assert len(found.utterances) == 7
    (rejection,) = found.rejections
    assert (rejection.id, rejection.reason) == ("utt-0003", UNREADABLE_TEXT)
    assert "not a regular file" in rejection.detail


def test_the_content_of_what_is_no_file_is_not_read(tmp_path):
    for number, trap in enumerate((make_fifo, make_endless, make_folder)):
        trap(tmp_path / str(number))
        assert content_of(tmp_path / str(number)) is None


def test_features_that_are_no_numbers_are_not_stored(corpus, monkeypatch):
    compute = features.mel_energy_and_pitch

    def without_pitch(*args):
        mel, energy, pitch = compute(*args)
        return mel, energy, pitch * np.nan

    monkeypatch.setattr(features, "mel_energy_and_pitch", without_pitch)
    tiny = locate(corpus)
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert {one.reason for one in report.rejections} == {features.NOT_FINITE}
    assert len(report.rejections) == 8 and "pitch" in report.rejections[0].detail
    assert arrays(tiny.location) == {}


def test_the_loudest_samples_that_are_read_have_finite_features(tmp_path):
    path = tmp_path / "a.wav"
    noise = np.random.default_rng(0).uniform(-9_999, 9_999, 22050)
    soundfile.write(path, noise, 22050, "FLOAT")
    found = compute_features(path, FeatureSettings.from_config(DataConfig()))
    assert all(np.isfinite(array).all() for array in found.values())
