"""`myxtts finetune`: which settings it settles on, what it refuses, exit codes and words."""

import argparse
from operator import attrgetter
from pathlib import Path

import pytest

from myxtts.cli.commands import finetune
from myxtts.config.io import load_config, save_config
from myxtts.config.presets import create_default_config
from myxtts.training.ending import Ending
from myxtts.workflows import finetune as workflow

VOICE = create_default_config(
    model_size="tiny",
    decoder_layers=4,
    text_units="phonemes",
    language="fa",
    loudness_lufs=-23.0,
    pitch_fmax=500.0,
    contrastive_loss_weight=0.3,
    learning_rate=2e-3,
    min_learning_rate=4e-5,
    batch_size=64,
    speaker_pattern="(.)-",
)


class FakeVoice:
    """As much of a voice as the command itself looks at."""

    def __init__(self, folder: Path):
        self.folder, self.config = folder, VOICE


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Stand-ins for the voice and the training, which ends for a given reason."""
    calls = []
    monkeypatch.setattr(workflow, "load_start", lambda path: FakeVoice(path / "voice"))

    def make(reason: str = "finished") -> list:
        def run(config, resume, voice, announce, replicas):
            calls.append((config, resume))
            return Ending(reason), "me too"

        monkeypatch.setattr(workflow, "finetune", run)
        return calls

    return make


def settle(*argv):
    parser = argparse.ArgumentParser()
    finetune.add(parser.add_subparsers())
    args = parser.parse_args(["finetune", "--voice", "runs/multi", *map(str, argv)])
    given = finetune.settings_given(args)
    return workflow.settle(VOICE, given, "voice runs/multi", Path("runs/multi-finetuned"))


def test_model_features_text_and_losses_are_the_voices_own():
    resolved = settle("--data", "me")
    config = resolved.config
    assert config.model == VOICE.model
    for path in (
        *("data.text_units", "data.language", "data.loudness_lufs", "data.pitch_fmax"),
        *("data.sample_rate", "training.contrastive_loss_weight"),
    ):
        assert attrgetter(path)(config) == attrgetter(path)(VOICE)
        assert resolved.origins[path] == "voice runs/multi"
    # What belongs to the old corpus and to its machine does not.
    assert config.data.speaker_pattern == "" and config.data.batch_size == 8
    assert resolved.origins["data.batch_size"] == "preset tiny"


def test_what_is_not_given_is_chosen_for_a_short_run():
    resolved = settle("--data", "me")
    training = resolved.config.training
    assert training.learning_rate == 5e-4 and training.min_learning_rate == 1e-5
    assert (training.max_steps, training.warmup_steps) == (1000, 50)
    assert training.alignment_prior_steps == 0
    assert training.checkpoint_dir == "runs/multi-finetuned"
    said = workflow.describe_choices(resolved)
    assert "learning_rate 0.0005" in said and "max_steps 1000" in said


def test_flags_file_and_environment_win(tmp_path, monkeypatch):
    file = tmp_path / "mine.yaml"
    file.write_text("training:\n  warmup_steps: 7\n  learning_rate: 1e-4\n  seed: 5\n")
    monkeypatch.setenv("MYXTTS_TRAINING_SEED", "9")
    words = ("--config", file, "--data", "me", "--lr", "1e-6", "--language", "en")
    resolved = settle(*words, "--sample-rate", VOICE.data.sample_rate)
    training = resolved.config.training
    assert (training.warmup_steps, training.seed) == (7, 9)
    # A rate below the voice's last one is no contradiction.
    assert training.learning_rate == training.min_learning_rate == 1e-6
    assert resolved.config.data.language == "en"
    assert resolved.origins["training.learning_rate"] == "flag --lr"
    assert "warmup_steps" not in workflow.describe_choices(resolved)


def test_who_counts_epochs_gets_all_of_them():
    config = settle("--data", "me", "--epochs", 30).config
    assert (config.training.epochs, config.training.max_steps) == (30, 0)
    config = settle("--data", "me", "--epochs", 30, "--max-steps", 5).config
    assert config.training.max_steps == 5


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("--model-size small", "model.model_size"),
        ("--disable-gst", "model.use_gst"),
        ("--sample-rate 16000", "data.sample_rate"),
        ("--trim-silence", "data.trim_silence"),
        ("--text-units characters", "data.text_units"),
        ("--pitch-contour token", "model.pitch_contour"),
    ],
)
def test_what_must_not_change_is_rejectd_with_the_reason(myxtts, trained, corpus, words, path):
    calls = trained()
    code, _, err = myxtts("finetune", "--voice", "v", "--data", corpus, *words.split())
    assert code == 2 and calls == []
    assert f"{path} is " in err and words.split()[0] in err and "the voice was trained with" in err


def test_a_voice_that_learnt_its_encoder_may_be_given_a_published_one(
    myxtts, trained, corpus, monkeypatch
):
    calls = trained()
    monkeypatch.setattr(VOICE.model, "use_pretrained_speaker_encoder", False)  # as exports have it
    words = ("--speaker-encoder-path", "some.pt", "--text-voice", "shared")
    code, _, err = myxtts("finetune", "--voice", "v", "--data", corpus, *words)
    assert code == 0, err
    ((config, _),) = calls
    assert config.model.speaker_encoder == "ecapa_tdnn" and config.model.text_voice == "shared"


def test_the_environment_cannot_change_it_either(myxtts, trained, corpus, monkeypatch):
    trained()
    monkeypatch.setenv("MYXTTS_DATA_N_MELS", "40")
    code, _, err = myxtts("finetune", "--voice", "v", "--data", corpus)
    assert code == 2 and "environment MYXTTS_DATA_N_MELS" in err


def test_a_finished_run_says_how_to_speak_as_the_new_speaker(myxtts, trained, corpus):
    calls = trained()
    words = ("--voice", "runs/multi", "--data", corpus, "--checkpoint-dir", "runs/me")
    code, out, _ = myxtts("finetune", *words, "--reset-training")
    assert code == 0
    assert "myxtts synthesize --voice runs/me --speaker 'me too'" in out
    ((config, resume),) = calls
    assert config.data.dataset_path == str(corpus) and resume is False


@pytest.mark.parametrize("reason", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_says_so_and_exits_with_130(myxtts, trained, corpus, reason):
    trained(reason)
    code, out, _ = myxtts("finetune", "--voice", "v", "--data", corpus)
    assert code == 130
    assert f"stopped by {reason}" in out and "run the same command to resume" in out


def test_the_run_is_next_to_the_voice_or_the_run_that_made_it(tmp_path, monkeypatch):
    (tmp_path / "multi" / "checkpoints").mkdir(parents=True)
    (tmp_path / "multi" / "voice").mkdir()
    expected = tmp_path / "multi-finetuned"
    for voice in ("multi", "multi/voice", "multi/voice/"):
        assert workflow.default_folder(tmp_path / voice) == expected
    monkeypatch.chdir(tmp_path / "multi")
    assert workflow.default_folder(Path("voice")) == expected


@pytest.mark.parametrize("folder", ["multi", "multi/voice", "./multi/../multi"])
def test_the_voice_itself_is_not_written_over(myxtts, trained, corpus, tmp_path, folder):
    calls = trained()
    words = ("--voice", tmp_path / "multi", "--checkpoint-dir", tmp_path / folder)
    code, _, err = myxtts("finetune", *words, "--data", corpus)
    assert code == 2 and "choose another --checkpoint-dir" in err and calls == []


def test_without_recordings_it_asks_for_them(myxtts):
    code, _, err = myxtts("finetune", "--voice", "v")
    assert code == 2 and "--data" in err
    code, _, err = myxtts("finetune", "--voice", "v", "--data", "nowhere")
    assert code == 2 and "there is no corpus at nowhere" in err


def test_a_folder_without_a_voice_is_an_error(myxtts, corpus, tmp_path):
    code, _, err = myxtts("finetune", "--voice", tmp_path / "absent", "--data", corpus)
    assert code == 2 and "there is no folder" in err and "absent" in err
    code, _, err = myxtts("finetune", "--voice", corpus, "--data", corpus)
    assert code == 2 and "there is no voice in" in err
    assert not (tmp_path / "absent-finetuned").exists()


def test_what_was_settled_can_be_read_again(tmp_path):
    config = settle("--data", "me").config
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
