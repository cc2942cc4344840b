import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from myxtts.audio.io import read_audio
from myxtts.checkpoints import as_voice_encoder, load_speaker_encoder
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.corpus.corpus import read_corpus
from myxtts.models.speaker_encoders.registry import SpeakerEncoder
from tests.helpers import stand_in_encoder
from tests.helpers.make_corpus import make_corpus


def store(corpus: Path, kind: str = "features") -> Path:
    """The only store of a kind."""
    (folder,) = (corpus / "cached_features").glob(f"{kind}-*")
    return folder


def files(corpus: Path) -> dict[str, bytes]:
    cache = corpus / "cached_features"
    return {str(p.relative_to(cache)): p.read_bytes() for p in cache.rglob("*") if p.is_file()}


def damage_recordings(corpus: Path) -> None:
    """Cut one recording short, empty another, and lose a third."""
    whole = (corpus / "wavs" / "utt-0001.wav").read_bytes()
    (corpus / "wavs" / "utt-0001.wav").write_bytes(whole[: len(whole) // 2])
    (corpus / "wavs" / "utt-0002.wav").write_bytes(b"")
    (corpus / "wavs" / "utt-0003.wav").unlink()


def test_prepare_fills_the_cache_and_a_second_run_reuses_it(myxtts, corpus):
    code, out, err = myxtts("prepare", corpus)
    assert (code, err) == (0, "")
    assert out.startswith(f"{corpus}: 12 utterances, 12 to prepare; about ")
    assert "features  12 made, 0 reused, 0 dropped\ntokens    12 made, 0 reused, 0 dropped" in out
    assert " x real time" in out
    made = files(corpus)
    code, out, _ = myxtts("prepare", corpus)
    assert code == 0
    assert "features  0 made, 12 reused, 0 dropped\ntokens    0 made, 12 reused, 0 dropped" in out
    assert files(corpus) == made


@pytest.mark.parametrize("kind", ["mel", "tokens", "index"])
def test_damage_is_named_and_counted_as_rebuilt(myxtts, corpus, kind):
    assert myxtts("prepare", corpus)[0] == 0
    made = files(corpus)
    path = sorted((corpus / "cached_features").glob(f"*/*.{kind}"))[0]
    path.write_bytes(path.read_bytes()[:-1])
    code, out, err = myxtts("prepare", corpus)
    assert (code, files(corpus)) == (0, made)
    assert " 12 made (12 rebuilt: damaged), 0 reused" in out and " 0 made, 12 reused" in out
    assert path.stem in err


@pytest.mark.parametrize("flag", ["--data", "--data-path", "--train-data"])
def test_the_corpus_has_three_flags(myxtts, corpus, flag):
    assert myxtts("prepare", flag, corpus)[0] == 0
    assert store(corpus).is_dir()


def test_what_cannot_be_prepared_is_named_after_all_else_is_stored(myxtts, corpus):
    damage_recordings(corpus)
    code, out, err = myxtts("prepare", corpus)
    assert code == 2
    assert "features  9 made, 0 reused, 2 dropped" in out
    assert "metadata  1 dropped" in out
    assert err.startswith("error: 3 utterances could not be prepared:\n")
    for line in ("1 x truncated recording", "1 x empty recording", "1 x missing recording"):
        assert line in err
    for name in ("utt-0001", "utt-0002", "utt-0003"):
        assert name in err
    assert "--skip-bad" in err


def test_skip_bad_leaves_them_out_and_succeeds(myxtts, corpus):
    damage_recordings(corpus)
    code, out, err = myxtts("prepare", corpus, "--skip-bad")
    assert (code, err) == (0, "")
    assert "3 utterances dropped:" in out
    assert "utt-0002" in out


def test_a_mended_recording_is_all_that_is_made_again(myxtts, corpus, shared_corpus):
    damage_recordings(corpus)
    assert myxtts("prepare", corpus)[0] == 2
    for number in (1, 2, 3):
        shutil.copy(shared_corpus / "wavs" / f"utt-000{number}.wav", corpus / "wavs")
    code, out, _ = myxtts("prepare", corpus)
    assert code == 0
    assert "features  3 made, 9 reused, 0 dropped" in out


def test_the_environment_wins_over_the_flag_and_the_flag_over_the_file(
    myxtts, corpus, monkeypatch, tmp_path
):
    (tmp_path / "a.yaml").write_text("data:\n  cache_dir: from_file\n  cache_dtype: float32\n")
    flags = ("--config", "a.yaml", "--cache-dir", "from_flag")
    assert myxtts("prepare", corpus, *flags)[0] == 0
    assert not (tmp_path / "from_file").exists()
    (manifest,) = (tmp_path / "from_flag").rglob("features-*/store.json")
    assert '"dtype": "float32"' in manifest.read_text()
    monkeypatch.setenv("MYXTTS_DATA_CACHE_DIR", "from_environment")
    code, _, err = myxtts("prepare", corpus, *flags)
    assert code == 0
    assert (tmp_path / "from_environment").is_dir()
    assert "--cache-dir has no effect" in err


def test_a_budget_that_is_too_small_is_refused_before_anything_is_written(myxtts, corpus):
    code, _, err = myxtts("prepare", corpus, "--cache-budget-gb", 1e-6)
    assert code == 2
    assert "--cache-budget-gb" in err
    assert not (corpus / "cached_features").exists()


def test_runtime_mode_is_warned_of(myxtts, corpus):
    code, _, err = myxtts("prepare", corpus, "--preprocessing-mode", "runtime")
    assert code == 0
    assert err.startswith("warning: preprocessing_mode is runtime")


def test_a_cache_that_cannot_be_written_is_a_message(myxtts, corpus):
    (corpus / "cached_features").write_text("a file where a folder should be")
    code, _, err = myxtts("prepare", corpus)
    assert code == 2
    assert "cached_features" in err


def test_a_corpus_for_validation_is_prepared_too(myxtts, corpus, tmp_path):
    other = make_corpus(tmp_path / "other", 3, seed=1, seconds=(0.6, 0.8))
    assert myxtts("prepare", corpus, "--val-data", other)[0] == 0
    assert store(corpus).name == store(other).name


def test_elsewhere_than_on_a_terminal_progress_is_a_line_per_interval(myxtts, corpus, monkeypatch):
    monkeypatch.setattr("myxtts.monitoring.progress.INTERVAL_SECONDS", 0.0)
    _, _, err = myxtts("prepare", corpus)
    (line,) = err.splitlines()
    assert line.startswith("preparing: 12 of 12 utterances, 0 s left, ")
    assert line.endswith(" h/s")


def test_on_a_terminal_progress_is_a_bar(myxtts, corpus, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code, out, err = myxtts("prepare", corpus)
    assert code == 0
    assert "features  12 made" in out
    assert "12 of 12 utterances" in err


def test_ctrl_c_loses_no_finished_shard(program, myxtts, tmp_path):
    corpus = make_corpus(tmp_path / "corpus", 1, seconds=(3.0, 3.1))
    names = [f"copy-{number:04d}" for number in range(256)]
    for name in names:
        os.link(corpus / "wavs" / "utt-0000.wav", corpus / "wavs" / f"{name}.wav")
    table = "".join(f"{name}|a few words|a few words\n" for name in names)
    (corpus / "metadata.csv").write_text(table)

    process = program("-m", "myxtts.cli.main", "prepare", corpus, "--num-workers", 1)
    deadline = time.monotonic() + 60
    while not list(corpus.glob("cached_features/features-*/*.index")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    stored = 64 * len(list(store(corpus).glob("*.index")))
    assert process.returncode == 130
    assert 0 < stored < 256
    message = f"interrupted: {stored} of 256 are stored; run the same command to resume\n"
    assert err == message

    code, out, _ = myxtts("prepare", corpus)
    assert code == 0
    assert f"features  {256 - stored} made, {stored} reused, 0 dropped" in out


# Voices: at other paces, and as a frozen encoder describes them.


def test_voices_at_other_paces_are_prepared_for_what_is_trained_on(myxtts, corpus):
    flags = ("--val-fraction", 0.25, "--voice-augmentation", 2)
    code, out, _ = myxtts("prepare", corpus, *flags)
    held_out = len(read_corpus(corpus, val_fraction=0.25).val)
    count = 12 + 2 * (12 - held_out)
    assert (code, held_out > 0) == (0, True)
    assert f"{count} utterances, {count} to prepare" in out
    assert f"features  {count} made, 0 reused, 0 dropped" in out
    sound = files(corpus)
    # Training finds all of it, and adds nothing.
    settings = {"val_fraction": 0.25, "voice_augmentation": 2}
    config = XTTSConfig(data_path=str(corpus), preprocessing_mode="precompute", **settings)
    data = TrainingData(config)
    assert len(data.train) == count - held_out and len(data.val) == held_out
    assert files(corpus) == sound


@pytest.fixture
def encoder(monkeypatch, tmp_path) -> Path:
    """The weights of a small stand-in for ECAPA-TDNN."""
    stand_in_encoder.install(monkeypatch)
    return stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())


def test_a_frozen_encoder_describes_every_voice_once_and_for_training(myxtts, corpus, encoder):
    code, out, err = myxtts("prepare", corpus, "--speaker-encoder-path", encoder)
    assert (code, err) == (0, "")
    assert "tokens    12 made, 0 reused, 0 dropped" in out
    assert out.endswith("voices    12 made, 0 reused, 0 dropped\n")
    sound = files(corpus)
    code, out, _ = myxtts("prepare", corpus, "--speaker-encoder-path", encoder)
    assert (code, files(corpus) == sound) == (0, True)
    assert out.endswith("voices    0 made, 12 reused, 0 dropped\n")
    loaded = load_speaker_encoder("ecapa_tdnn", encoder)
    silent = replace(as_voice_encoder(loaded), embed=lambda *asked: pytest.fail("asked again"))
    data = TrainingData(XTTSConfig(data_path=str(corpus), val_fraction=0.25), encoder=silent)
    for position, utterance in enumerate(data.train.utterances[:3]):
        expected = loaded.embed(read_audio(utterance.audio, 16000), 16000)
        (found,) = data.train.cache.embeddings[np.array([position])]
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--speaker-encoder-path", "own.pt", "--unfreeze-speaker-encoder"),
    ],
)
def test_no_other_encoder_is_asked(myxtts, corpus, encoder, flags):
    code, out, _ = myxtts("prepare", corpus, *flags)
    assert code == 0 and "voices" not in out
    assert list((corpus / "cached_features").glob("voices-*")) == []


def test_missing_weights_are_told_of_before_anything_is_prepared(myxtts, corpus):
    code, out, err = myxtts("prepare", corpus, "--use-pretrained-speaker-encoder")
    assert (code, out) == (2, "")
    assert "`myxtts weights get ecapa_tdnn`" in err
    assert not (corpus / "cached_features").exists()


def test_a_recording_without_a_voice_is_named_once(myxtts, corpus, encoder, monkeypatch):
    damage_recordings(corpus)
    monkeypatch.setattr(SpeakerEncoder, "embed_many", deaf_to_the_first)
    code, out, err = myxtts("prepare", corpus, "--speaker-encoder-path", encoder)
    assert code == 2
    assert "voices    8 made, 0 reused, 1 dropped" in out
    assert err.startswith("error: 4 utterances could not be prepared:\n")
    for name in ("utt-0000", "utt-0001", "utt-0002", "utt-0003"):
        assert err.count(name + ":") == 1
    assert "1 x no voice" in err


def deaf_to_the_first(self, recordings, sample_rate):
    return [np.full(self.dim, float(number > 0)) for number in range(len(recordings))]


def test_an_interruption_while_voices_are_described_says_how_to_go_on(
    myxtts, corpus, encoder, monkeypatch
):
    def interrupt(*args):
        raise KeyboardInterrupt

    embed_many = SpeakerEncoder.embed_many
    monkeypatch.setattr(SpeakerEncoder, "embed_many", interrupt)
    code, _, err = myxtts("prepare", corpus, "--speaker-encoder-path", encoder)
    assert code == 130
    assert "interrupted: 0 of 12 voices are stored; run the same command to resume" in err
    monkeypatch.setattr(SpeakerEncoder, "embed_many", embed_many)
    code, out, _ = myxtts("prepare", corpus, "--speaker-encoder-path", encoder)
    assert code == 0 and "voices    12 made, 0 reused, 0 dropped" in out
