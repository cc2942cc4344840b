"""`myxtts train` and `train_main.py`: flags, exit codes and words."""

import argparse
import fcntl
import logging
import shlex

import pytest

import train_main
from myxtts.cli.commands import train
from myxtts.config.config import XTTSConfig
from myxtts.training.ending import Ending


def parse(*argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    return parser.parse_args([str(word) for word in argv])


@pytest.fixture
def trained(monkeypatch):
    """Stands for the training: it keeps what it was asked for, and ends as it is told to."""
    asked = []

    def make(reason: str) -> list:
        def run(config, resume=None, worker=None, tune_loading=None):
            asked.append((config, resume))
            return Ending(reason)

        monkeypatch.setattr("myxtts.workflows.train.train", run)
        return asked

    return make


def test_the_documented_command_becomes_its_configuration(tmp_path):
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
    words = "--model-size tiny --batch-size 2 --epochs 1 --disable-gst --prefetch-buffer-size 4"
    data = ["--train-data", tmp_path / "train", "--val-data", tmp_path / "val"]
    config = train_main.build_config(parse(*words.split(), "--no-prefetch-to-gpu", *data))
    assert isinstance(config, XTTSConfig)
    assert (config.data.batch_size, config.training.epochs) == (2, 1)
    assert config.model.model_size == "tiny" and config.model.text_encoder_dim == 192
    assert not config.model.use_gst and not config.data.prefetch_to_gpu
    assert config.data.dataset_path == str(tmp_path / "train")
    assert config.data.val_dataset_path == str(tmp_path / "val")


def test_the_other_documented_flags_reach_their_settings(corpus):
    words = (
        "--grad-accum 4 --lr 2e-4 --decoder-strategy non_autoregressive --enable-gst "
        "--gst-num-style-tokens 7 --enable-eager-debug --seed 3 --max-text-length 200"
    )
    config = train_main.build_config(parse(*words.split(), "--data", corpus))
    assert config.training.gradient_accumulation_steps == 4
    assert config.training.learning_rate == 2e-4 and config.training.seed == 3
    assert config.training.enable_eager_debug and config.data.max_text_length == 200
    assert config.model.decoder_strategy == "parallel"
    assert config.model.use_gst and config.model.gst_num_style_tokens == 7


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], None), (["--resume"], True), (["--reset-training"], False)],
)
def test_going_on_is_the_default_and_the_flags_say_otherwise(corpus, words, expected):
    assert train.resume_choice(parse("--data", corpus, *words)) is expected


def test_a_checkpoint_can_be_named(tmp_path):
    assert train.resume_choice(parse("--resume-from", tmp_path)) == tmp_path


def test_a_finished_run_says_how_to_speak_and_exits_with_0(myxtts, trained, corpus):
    asked = trained("finished")
    code, out, _ = myxtts("train", "--data", corpus, "--checkpoint-dir", "runs/mine")
    assert code == 0
    assert "myxtts synthesize --voice runs/mine" in out
    ((config, resume),) = asked
    assert config.training.checkpoint_dir == "runs/mine" and resume is None
    assert logging.getLogger("myxtts").level == logging.INFO


def test_the_hint_greets_in_the_language_of_the_voice(myxtts, trained, corpus, monkeypatch):
    trained("finished")
    known = {"my runs/fa": ("fa",), "my runs/both": ("en", "fa")}
    monkeypatch.setattr("myxtts.checkpoints.read_languages", lambda folder: known[folder])
    _, out, _ = myxtts("train", "--data", corpus, "--checkpoint-dir", "my runs/fa")
    said = shlex.split(out.splitlines()[-1])
    assert said[said.index("--text") + 1] == "سلام، حال شما چطور است؟"
    assert said[said.index("--voice") + 1] == "my runs/fa" and "--language" not in said
    words = ("--checkpoint-dir", "my runs/both", "--language", "fa")
    _, out, _ = myxtts("train", "--data", corpus, *words)
    said = shlex.split(out.splitlines()[-1])
    assert said[said.index("--language") + 1] == "fa"


@pytest.mark.parametrize("reason", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_says_so_and_exits_with_130(myxtts, trained, corpus, reason):
    trained(reason)
    code, out, _ = myxtts("train", "--data", corpus)
    assert code == 130
    assert f"stopped by {reason}" in out and "run the same command to resume" in out


def test_train_main_is_the_same_command(trained, corpus, capsys):
    asked = trained("finished")
    assert train_main.main(["--data", str(corpus), "--reset-training"]) == 0
    assert asked[0][1] is False
    assert "myxtts synthesize" in capsys.readouterr().out


def test_without_a_corpus_it_says_where_to_get_one(myxtts):
    code, _, err = myxtts("train")
    assert code == 2
    assert "myxtts download ljspeech" in err and "myxtts data demo" in err


def test_nothing_to_resume_is_an_error(myxtts, corpus, tmp_path):
    folder = tmp_path / "nowhere"
    words = ("--model-size", "tiny", "--checkpoint-dir", folder, "--resume")
    code, _, err = myxtts("train", "--data", corpus, *words)
    assert code == 2
    assert "nothing to resume" in err and str(folder) in err
    assert not (folder / "checkpoints").exists()


def test_a_second_process_in_the_same_folder_is_refused(myxtts, corpus, tmp_path):
    folder = tmp_path / "busy"
    folder.mkdir()
    with open(folder / ".lock", "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = myxtts("train", "--data", corpus, "--checkpoint-dir", folder)
    assert code == 2 and "another process trains in" in err


def test_resuming_and_starting_over_exclude_each_other(myxtts, corpus):
    code, _, err = myxtts("train", "--data", corpus, "--resume", "--reset-training")
    assert code == 2 and "not allowed with" in err
