"""`myxtts tune` and `myxtts train --auto-tune`: what is measured, said and written."""

from pathlib import Path

import pytest

from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.training.ending import Ending
from tests.helpers.runs import SMALL


@pytest.fixture
def chosen(monkeypatch):
    """Stands for the measuring: it chooses batches of 2, and keeps its arguments."""
    from myxtts.bench import tuning
    from myxtts.bench.tuning_choices import SIZE, Choice

    calls = []

    def tune(config, given, simulate_ms=0.0) -> tuning.Tuning:
        calls.append((config, given, simulate_ms))
        choices = (Choice(SIZE, 2, "900 frames/s", "the fastest"),)
        values = {} if SIZE in given else {SIZE: 2}
        return tuning.Tuning(choices, config.replace(**values, auto_tune=False))

    monkeypatch.setattr(tuning, "tune", tune)
    return calls


@pytest.fixture
def trained(monkeypatch) -> list[XTTSConfig]:
    """Stands for the training: it keeps its configurations, and leaves a checkpoint."""
    configs = []

    def run(config, resume=None, worker=None, tune_loading=None):
        configs.append(config)
        Path(config.training.checkpoint_dir, "checkpoints/step-00000001").mkdir(
            parents=True, exist_ok=True
        )
        return Ending.FINISHED

    monkeypatch.setattr("myxtts.workflows.train.train", run)
    return configs


def test_a_corpus_is_measured_and_the_settings_are_printed(myxtts, corpus, tmp_path):
    settings = tmp_path / "small.yaml"
    model = {name: value for name, value in SMALL.items() if name.endswith(("_dim", "_layers"))}
    lines = [f"  {name}: {value}\n" for name, value in model.items()]
    settings.write_text(f"model:\n{''.join(lines)}")
    words = ("--config", settings, "--simulate-step-ms", 1, "--preprocessing-mode", "precompute")
    code, out, err = myxtts("tune", corpus, *words, "--batch-size", 4)
    assert code == 0, err
    table, yaml = out.split("\n\n", 1)
    assert "left as it is: given by flag --batch-size" in table
    assert "not used here: everything is stored" in table
    assert "the device waits" in table and "*: chosen" in table
    (tmp_path / "printed.yaml").write_text(yaml)
    config = load_config(tmp_path / "printed.yaml")
    assert config.data.batch_size == 4 and config.data.dataset_path == str(corpus)
    assert config.model.decoder_dim == 16
    assert not Path("runs").exists()


def test_the_settings_are_written_to_the_output(myxtts, chosen, corpus, tmp_path):
    target = tmp_path / "tuned.yaml"
    code, out, _ = myxtts(
        "tune", corpus, "--output", target, "--simulate-step-ms", 5, "--num-workers", 1
    )
    assert code == 0
    assert "900 frames/s" in out and f"myxtts train --config {target}" in out
    assert load_config(target).data.batch_size == 2
    ((config, given, simulate_ms),) = chosen
    assert config.data.dataset_path == str(corpus) and simulate_ms == 5
    assert given == {"data.dataset_path": "flag CORPUS", "data.num_workers": "flag --num-workers"}


def test_a_negative_step_and_a_missing_corpus_are_rejectd(myxtts, corpus):
    code, _, err = myxtts("tune", corpus, "--simulate-step-ms", -1)
    assert code == 2 and "--simulate-step-ms" in err
    code, _, err = myxtts("tune", "nowhere")
    assert code == 2 and "there is no corpus at nowhere" in err


def test_a_run_tunes_itself_once(myxtts, chosen, trained, corpus):
    words = ("train", "--data", corpus, "--auto-tune", "--checkpoint-dir", "run")
    code, _, err = myxtts(*words)
    assert code == 0 and "900 frames/s" in err
    assert load_config("run/auto_tuned.yaml").data.batch_size == 2
    code, _, err = myxtts(*words)
    assert code == 0 and "as chosen when the run in run began: data.batch_size 2" in err
    assert len(chosen) == 1
    assert [config.data.batch_size for config in trained] == [2, 2]


def test_a_file_can_ask_for_it_and_what_it_gives_is_left(myxtts, chosen, trained, corpus, tmp_path):
    settings = tmp_path / "own.yaml"
    settings.write_text("data:\n  batch_size: 7\ntraining:\n  auto_tune: true\n")
    code, _, _ = myxtts("train", "--data", corpus, "--config", settings, "--model-size", "tiny")
    assert code == 0
    ((_, given, _),) = chosen
    assert given["data.batch_size"] == f"file {settings}"
    assert "data.max_mel_frames" not in given  # which the preset has settled
    assert [config.data.batch_size for config in trained] == [7]


def test_without_the_flag_nothing_is_tuned(myxtts, chosen, trained, corpus):
    assert myxtts("train", "--data", corpus)[0] == 0
    assert not chosen and len(trained) == 1


def test_an_interrupted_tuning_leaves_no_choice_behind(myxtts, trained, corpus, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt("stopped by SIGINT: nothing was chosen")

    monkeypatch.setattr("myxtts.bench.tuning.tune", interrupted)
    words = ("--data", corpus, "--auto-tune", "--checkpoint-dir", "run")
    code, _, err = myxtts("train", *words)
    assert code == 130 and "nothing was chosen" in err
    assert not trained and not Path("run/auto_tuned.yaml").exists()
