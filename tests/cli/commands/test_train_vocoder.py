"""`myxtts train-vocoder`: flags, exit codes and words."""

import argparse
import logging

import pytest

from myxtts.cli.commands import train_vocoder
from myxtts.cli.commands.train import resume_choice
from myxtts.cli.settings import resolve_settings
from myxtts.config.config import XTTSConfig
from myxtts.training.ending import Ending


def parse(*argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train_vocoder.add(parser.add_subparsers())
    return parser.parse_args(["train-vocoder", *(str(word) for word in argv)])


@pytest.fixture
def trained(monkeypatch):
    """Stands for the training: it keeps its arguments, and ends for a given reason."""
    calls = []

    def make(reason: str) -> list:
        def run(config, resume=None, voice=None, worker=None):
            calls.append((config, resume, voice))
            return Ending(reason)

        monkeypatch.setattr("myxtts.workflows.train.train_vocoder", run)
        return calls

    return make


def test_help_names_the_kinds_and_what_to_start_from(myxtts):
    code, out, _ = myxtts("train-vocoder", "--help")
    assert code == 0
    for word in ("--vocoder istft|hifigan", "--from WEIGHTS", "--on-predicted-mels", "--resume"):
        assert word in out
    # The settings of the first stage have no effect here, nor has the one that names no voice.
    for word in ("--stage2-on-predicted-mels", "--two-stage-training", "--decoder-strategy"):
        assert word not in out
    code, out, _ = myxtts("--help")
    assert "train-vocoder" in out


def test_the_flags_reach_their_settings(corpus):
    words = (
        "--vocoder istft --stage2-epochs 3 --stage2-max-steps 40 --stage2-lr 1e-3 --seed 5 "
        "--stage2-batch-size 2 --stage2-max-audio-seconds 0.5 --from runs/mine --no-adversarial "
        "--hifigan-version v2 --save-interval 7 --preprocessing-mode runtime"
    )
    config = resolve_settings(parse("--data", corpus, *words.split())).config
    training = config.training
    assert (config.model.vocoder_type, config.model.hifigan_version) == ("istft", "v2")
    assert (training.stage2_epochs, training.stage2_max_steps) == (3, 40)
    assert (training.stage2_learning_rate, training.stage2_batch_size) == (1e-3, 2)
    assert (training.stage2_max_audio_seconds, training.stage2_from) == (0.5, "runs/mine")
    assert training.vocoder_adversarial is False
    assert (training.seed, training.save_interval) == (5, 7)
    assert config.data.preprocessing_mode == "runtime"
    assert resolve_settings(parse("--adversarial")).config.training.vocoder_adversarial is True
    assert resolve_settings(parse()).config.training.vocoder_adversarial is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], None), (["--resume"], True), (["--reset-training"], False)],
)
def test_going_on_is_the_default_and_the_flags_say_otherwise(
    trained, myxtts, corpus, words, expected
):
    calls = trained("finished")
    assert resume_choice(parse(*words)) is expected
    assert myxtts("train-vocoder", "--data", corpus, *words)[0] == 0
    assert calls[0][1] is expected


def test_a_finished_run_says_how_to_speak_and_exits_with_0(myxtts, trained, corpus):
    calls = trained("finished")
    code, out, _ = myxtts("train-vocoder", "--data", corpus, "--checkpoint-dir", "runs/mine")
    assert code == 0
    assert "myxtts synthesize --voice VOICE --vocoder runs/mine" in out
    ((config, _, voice),) = calls
    assert isinstance(config, XTTSConfig) and voice is None
    assert config.training.checkpoint_dir == "runs/mine"
    assert logging.getLogger("myxtts").level == logging.INFO


def test_a_vocoder_has_a_folder_of_its_own(myxtts, trained, corpus):
    calls = trained("finished")
    _, out, _ = myxtts("train-vocoder", "--data", corpus)
    assert calls[0][0].training.checkpoint_dir == "runs/vocoder"
    assert "the vocoder is in runs/vocoder" in out


@pytest.mark.parametrize("is_set", [True, False])
def test_who_asks_for_tuning_in_a_file_hears_that_there_is_none(
    myxtts, trained, corpus, tmp_path, caplog, is_set
):
    trained("finished")
    file = tmp_path / "mine.yaml"
    file.write_text(f"training:\n  auto_tune: {str(is_set).lower()}\n")
    assert myxtts("train-vocoder", "--data", corpus, "--config", file)[0] == 0
    assert ("auto_tune has no effect here" in caplog.text) is is_set


@pytest.mark.parametrize("reason", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_says_so_and_exits_with_130(myxtts, trained, corpus, reason):
    trained(reason)
    code, out, _ = myxtts("train-vocoder", "--data", corpus)
    assert code == 130
    assert f"stopped by {reason}" in out and "run the same command to resume" in out


# What is refused, in a sentence.


def test_without_a_corpus_it_says_where_to_get_one(myxtts):
    code, _, err = myxtts("train-vocoder", "--data", "nowhere")
    assert code == 2
    assert "no corpus at nowhere" in err and "myxtts download ljspeech" in err


def test_griffin_lim_has_nothing_to_train(myxtts, corpus, tmp_path):
    words = ("--vocoder", "griffin_lim", "--checkpoint-dir", tmp_path / "run")
    code, _, err = myxtts("train-vocoder", "--data", corpus, *words)
    assert code == 2
    assert "griffin_lim has nothing to train: choose --vocoder istft or hifigan" in err
    assert not (tmp_path / "run").exists() and not (corpus / "cached_features").exists()


def test_an_unknown_kind_is_rejectd_with_those_there_are(myxtts, corpus):
    code, _, err = myxtts("train-vocoder", "--data", corpus, "--vocoder", "wavenet")
    assert code == 2
    assert "wavenet" in err and "griffin_lim, istft, hifigan" in err


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("nowhere", "there is no vocoder in"),
        ("hifigan_ljspeech", "`myxtts weights get hifigan_ljspeech` fetches them"),
    ],
)
def test_what_is_not_there_is_not_gone_on_from(myxtts, corpus, tmp_path, start, message):
    words = ("--vocoder", "istft", "--from", start, "--checkpoint-dir", tmp_path / "run")
    code, _, err = myxtts("train-vocoder", "--data", corpus, *words)
    assert code == 2 and message in err and start in err
    assert not (tmp_path / "run").exists() and not (corpus / "cached_features").exists()


def test_a_voice_that_is_not_there_is_named(myxtts, corpus, tmp_path):
    words = ("--vocoder", "istft", "--on-predicted-mels", tmp_path / "voice")
    code, _, err = myxtts("train-vocoder", "--data", corpus, *words)
    assert code == 2 and f"there is no folder {tmp_path / 'voice'}" in err


def test_nothing_to_resume_is_an_error(myxtts, corpus, tmp_path):
    folder = tmp_path / "run"
    words = ("--vocoder", "istft", "--checkpoint-dir", folder, "--resume")
    code, _, err = myxtts("train-vocoder", "--data", corpus, *words)
    assert code == 2
    assert "nothing to resume" in err and str(folder) in err
    assert not (folder / "checkpoints").exists()


def test_two_stages_are_a_flag_of_training_the_voice(myxtts, corpus):
    code, _, err = myxtts("train-vocoder", "--data", corpus, "--two-stage-training")
    assert code == 2 and "--two-stage-training" in err
