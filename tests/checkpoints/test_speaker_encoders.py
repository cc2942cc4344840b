"""A published speaker encoder from its file, and the error where it is missing."""

import numpy as np
import pytest

from myxtts.audio.speaker_features import ecapa_features
from myxtts.checkpoints import (
    CheckpointError,
    as_voice_encoder,
    encoder_path,
    load_speaker_encoder,
)
from myxtts.cli.commands.train import build_config, parse_args
from myxtts.cli.main import main
from myxtts.config.config import ModelConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.errors import UserError
from myxtts.weights import WeightsError
from tests.helpers import stand_in_encoder
from tests.helpers.make_corpus import make_corpus
from tests.helpers.make_voice import make_voice


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Weights of the stand-in for ECAPA-TDNN, as arrays and as a file."""
    stand_in_encoder.install(monkeypatch)
    arrays = stand_in_encoder.make_arrays()
    return arrays, stand_in_encoder.write_weights(tmp_path / "encoder.pt", arrays)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Public weights are looked for in the working directory: a checkout may have them."""
    monkeypatch.chdir(tmp_path)


# Which encoder is configured.


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ""),
        (["--use-pretrained-speaker-encoder"], "ecapa_tdnn"),
        (["--speaker-encoder-type", "resemblyzer"], ""),
        (["--speaker-encoder-path", "a.pt"], "ecapa_tdnn"),
        (["--speaker-encoder-path", "a.pt", "--speaker-encoder-type", "coqui"], "coqui"),
    ],
)
def test_a_path_alone_asks_for_its_encoder(flags, expected):
    assert build_config(parse_args(flags)).model.speaker_encoder == expected


def test_a_path_and_a_flag_that_disables_it_contradict_each_other(tmp_path):
    disable, path = "--disable-pretrained-speaker-encoder", "--speaker-encoder-path"
    for flags in ([path, "a.pt", disable], [disable, path, "a.pt"]):
        with pytest.raises(UserError, match=f"{path} would have no effect with {disable}"):
            build_config(parse_args(flags))


def test_a_flag_disables_the_encoder_of_a_file(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("model: {use_pretrained_speaker_encoder: true, speaker_encoder_path: a.pt}")
    flags = ["--config", str(file), "--disable-pretrained-speaker-encoder"]
    assert build_config(parse_args(flags)).model.speaker_encoder == ""


def test_without_an_encoder_nothing_is_frozen():
    assert not ModelConfig(freeze_speaker_encoder=True).is_encoder_frozen
    assert ModelConfig(use_pretrained_speaker_encoder=True).is_encoder_frozen
    unfrozen = ModelConfig(use_pretrained_speaker_encoder=True, freeze_speaker_encoder=False)
    assert not unfrozen.is_encoder_frozen


# Where its weights are.


def test_weights_are_where_they_are_fetched_to_or_where_the_path_says(tmp_path, monkeypatch):
    config = ModelConfig(use_pretrained_speaker_encoder=True)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "ecapa_tdnn.pth").touch()
    assert encoder_path(config).resolve() == tmp_path / "checkpoints" / "ecapa_tdnn.pth"
    (tmp_path / "ecapa_tdnn.pth").touch()
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(tmp_path))
    assert encoder_path(config) == tmp_path / "ecapa_tdnn.pth"
    config.speaker_encoder_path = "~/own.pt"
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.pt").touch()
    assert encoder_path(config) == tmp_path / "own.pt"


def test_missing_weights_say_how_to_get_them():
    config = ModelConfig(use_pretrained_speaker_encoder=True, speaker_encoder_type="resemblyzer")
    with pytest.raises(CheckpointError) as error:
        encoder_path(config)
    for words in (
        "checkpoints/resemblyzer.pt",
        "`myxtts weights get resemblyzer`",
        "--speaker-encoder-path",
        "--disable-pretrained-speaker-encoder",
    ):
        assert words in str(error.value)


def test_of_the_encoder_without_public_weights_a_file_must_be_named():
    config = ModelConfig(use_pretrained_speaker_encoder=True, speaker_encoder_type="coqui")
    with pytest.raises(CheckpointError, match="coqui: name a file of them with --speaker-encoder"):
        encoder_path(config)
    config.speaker_encoder_path = "absent.pt"
    with pytest.raises(CheckpointError, match="no weights of the speaker encoder coqui at absent"):
        encoder_path(config)


def test_training_ends_before_anything_is_read_where_the_weights_are_missing(
    tmp_path, capsys, monkeypatch
):
    corpus = make_corpus(tmp_path / "corpus", 4)
    monkeypatch.setattr(TrainingData, "__init__", lambda *args: pytest.fail("opened the corpus"))
    folder = tmp_path / "run"
    flags = ("--use-pretrained-speaker-encoder", "--checkpoint-dir", folder)
    code = main([str(word) for word in ("train", "--data", corpus, *flags)])
    assert code == 2
    assert "`myxtts weights get ecapa_tdnn`" in capsys.readouterr().err
    assert not folder.exists() and not (corpus / "cached_features").exists()


# What they become.


def test_an_encoder_has_exactly_the_weights_of_its_file(stand_in):
    arrays, path = stand_in
    encoder = load_speaker_encoder("ecapa_tdnn", path)
    voice = make_voice(0.7)
    expected = stand_in_encoder.embedding(arrays, ecapa_features(voice))
    np.testing.assert_allclose(encoder.embed(voice, 16000), expected, atol=1e-5)


def test_weights_of_another_kind_are_rejectd_by_name(stand_in):
    _, path = stand_in
    with pytest.raises(WeightsError, match="encoder.pt") as error:
        load_speaker_encoder("resemblyzer", path)
    assert "lstm.weight_ih_l0" in str(error.value)


def test_many_recordings_give_what_each_gives_alone_and_bad_ones_say_why(stand_in):
    encoder = load_speaker_encoder("ecapa_tdnn", stand_in[1])
    voices = [make_voice(seconds) for seconds in (0.5, 0.8, 0.5)]
    voices[2] += np.random.default_rng(0).normal(0.0, 0.01, 8000).astype(np.float32)
    silence = np.zeros(8000, np.float32)
    found = encoder.embed_many([voices[0], silence, voices[1], voices[2]], 16000)
    assert found[1].reason == "silent recording"
    for own, voice in zip([found[0], found[2], found[3]], voices, strict=True):
        np.testing.assert_allclose(own, encoder.embed(voice, 16000), atol=1e-6)
    assert np.abs(found[0] - found[3]).max() > 1e-3
    assert encoder.embed_many([], 16000) == []


def test_the_data_know_an_encoder_by_its_weights(stand_in, tmp_path):
    arrays, path = stand_in
    first = as_voice_encoder(load_speaker_encoder("ecapa_tdnn", path))
    again = as_voice_encoder(load_speaker_encoder("ecapa_tdnn", path))
    arrays["out.bias"][3] += 1e-3
    path = stand_in_encoder.write_weights(tmp_path / "other.pt", arrays)
    other = as_voice_encoder(load_speaker_encoder("ecapa_tdnn", path))
    assert first.weights == again.weights != other.weights
    assert (first.kind, first.dim, first.sample_rate) == ("ecapa_tdnn", 32, 16000)
