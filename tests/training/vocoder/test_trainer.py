"""The second stage, alone and after the first: what it leaves, and that going on is exact."""

import json
import logging
import os
import shutil
import signal
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.postfilter import sharpen
from myxtts.checkpoints import CheckpointError, load_state, load_voice, saved_states
from myxtts.checkpoints.vocoders import load_vocoder, save_vocoder
from myxtts.cli.main import main
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config, save_config
from myxtts.config.presets import create_default_config
from myxtts.data.batches.training_data import TrainingData
from myxtts.errors import UserError
from myxtts.monitoring.history import read_lines
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.log import LogHook
from myxtts.training.hooks.performance import PerformanceHook
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.hooks.tensorboard import TensorBoardHook
from myxtts.training.hooks.wandb import WandbHook
from myxtts.training.loop import StepRecord, TrainingLoop
from myxtts.training.predictions import TeacherForced, predict_mels
from myxtts.training.two_stage_trainer import TwoStageTrainer, stage1_config
from myxtts.training.vocoder.trainer import (
    CopyHook,
    VocoderTrainer,
    as_begun,
    vocoder_differences,
    voice_hash,
)
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import assert_equal_states, final_state, run_config, train
from tests.helpers.tiny_vocoder import SMALL as OTHER_MELS
from tests.helpers.tiny_vocoder import tiny_vocoder

# Ten utterances, two of them held out: two batches an epoch. So few steps run eagerly, since
# tracing them takes longer.
CORPUS = {"count": 10, "speakers": 2, "seconds": (0.3, 0.6)}
SHORT = {
    "vocoder_type": "istft",
    "istft_dim": 8,
    "istft_blocks": 1,
    "istft_projections": 1,
    "stage2_max_steps": 4,
    "stage2_batch_size": 4,
    "stage2_max_audio_seconds": 0.15,
    "save_interval": 2,
    "val_fraction": 0.2,
    "validation_interval": 2,
    "enable_eager_debug": True,
}
BOTH = {**SHORT, "two_stage_training": True, "max_steps": 3}


@pytest.fixture(autouse=True)
def graphs_afterwards():
    yield
    tf.config.run_functions_eagerly(False)


def make_trainer(corpus: Path, folder: Path, resume=None, voice=None, **settings):
    config = run_config(corpus, folder, **{**SHORT, **settings})
    return VocoderTrainer(config, folder, resume, voice)


@pytest.fixture(scope="module")
def short(shared_corpus, tmp_path_factory) -> Path:
    """A vocoder trained in one go. Not to be written to."""
    folder = tmp_path_factory.mktemp("short") / "run"
    assert make_trainer(shared_corpus, folder).train() == "finished"
    tf.config.run_functions_eagerly(False)
    return folder


@pytest.fixture
def finished(short, tmp_path) -> Path:
    """A copy of it to go on in."""
    return Path(shutil.copytree(short, tmp_path / "run"))


@pytest.fixture(scope="module")
def two_stages(shared_corpus, tmp_path_factory) -> Path:
    """A voice and its vocoder, trained in one go. Not to be written to."""
    folder = tmp_path_factory.mktemp("both") / "run"
    assert TwoStageTrainer(run_config(shared_corpus, folder, **BOTH)).train() == "finished"
    tf.config.run_functions_eagerly(False)
    return folder


@pytest.fixture
def messages(caplog):
    caplog.set_level(logging.INFO, logger="myxtts")
    return lambda: "\n".join(record.getMessage() for record in caplog.records)


def step_of(folder: Path) -> int:
    states = saved_states(folder / "checkpoints")
    return int(states[-1].name.removeprefix("step-")) if states else 0


def lines(folder: Path) -> list[dict]:
    return [line.values for line in read_lines(folder / "history.jsonl")]


def history(folder: Path) -> list[dict]:
    """The steps of a run, without their times."""
    return [
        {name: value for name, value in line.items() if not name.endswith("_ms")}
        for line in lines(folder)
        if "loss" in line
    ]


def assert_same_run(found: Path, expected: Path, what: str) -> None:
    """The same steps, the same last state, and the same exported weights, to the bit."""
    assert_equal_states(final_state(found), final_state(expected))
    assert history(found) == history(expected)
    exported = [run / what / "model.safetensors" for run in (found, expected)]
    assert exported[0].read_bytes() == exported[1].read_bytes()


# The second stage alone.


def test_what_a_run_leaves(short):
    names = {path.name for path in short.iterdir()}
    assert {"checkpoints", "config.yaml", "history.jsonl", "vocoder", "vocoder-best"} <= names
    assert "voice" not in names
    assert [line["step"] for line in lines(short) if "loss" in line] == [1, 2, 3, 4]
    scores = {one["step"]: one["val/loss"] for one in lines(short) if "val/loss" in one}
    assert list(scores) == [2, 4]
    best = json.loads((short / "checkpoints" / "best.json").read_text())
    assert best["step"] == min(scores, key=scores.get)
    states = [path.name for path in saved_states(short / "checkpoints")]
    assert states == ["step-00000002", "step-00000004"]
    assert load_config(short / "config.yaml").model.vocoder_type == "istft"


def test_what_was_trained_is_what_is_exported(short):
    found = load_vocoder(short)
    assert (found.kind, found.path) == ("istft", short / "vocoder")
    assert found.model.settings["dim"] == 8 and found.model.settings["projections"] == 1
    state = final_state(short)
    np.testing.assert_array_equal(found.model.pre.kernel, state["model/pre/kernel"])
    for kind in ("model/", "optimizer/"):
        assert any(name.startswith(kind) for name in state)


@pytest.mark.timeout(900)  # processes that import TensorFlow
def test_a_run_that_is_stopped_and_killed_ends_with_the_same_bits(shared_corpus, short, tmp_path):
    folder, config = tmp_path / "run", tmp_path / "config.yaml"
    save_config(run_config(shared_corpus, folder, **SHORT), config)
    again = {"verb": "train-vocoder"}

    stopped = train("--config", config, signal_number=signal.SIGTERM, at_step=1, **again)
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped by SIGTERM" in stopped.stdout and "Traceback" not in stopped.stderr
    assert step_of(folder) == 1 and load_vocoder(folder).kind == "istft"

    killed = train("--config", config, signal_number=signal.SIGKILL, at_step=2, **again)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "step 1, epoch 1" in killed.stderr  # it went on from the last checkpoint
    assert step_of(folder) == 2  # the third was lost

    assert make_trainer(shared_corpus, folder, resume=True).train() == "finished"
    assert step_of(folder) == 4
    assert_same_run(folder, short, "vocoder")


def test_as_a_graph_it_is_traced_once_and_computes_the_same(
    shared_corpus, short, tmp_path, messages
):
    # The held-out batch is smaller than the others.
    settings = {"enable_eager_debug": False, "stage2_max_steps": 2}
    assert make_trainer(shared_corpus, tmp_path / "run", **settings).train() == "finished"
    assert "finished after 2 steps; the step ran as a graph, traced 1 x for 1 shapes" in messages()
    assert "vocoder istft" in messages()
    assert "on spectra alone; 2 steps of 2 batches an epoch" in messages()
    found, expected = (lines(run)[0] for run in (tmp_path / "run", short))
    for name in ("loss", "mel_loss", "stft_loss", "pitch_loss", "gradient_norm"):
        assert found[name] == pytest.approx(expected[name], rel=1e-3), name


def test_a_finished_run_takes_no_step_again(shared_corpus, finished, short, messages):
    assert make_trainer(shared_corpus, finished).train() == "finished"
    assert "finished after 4 steps; the step ran never" in messages()
    assert_same_run(finished, short, "vocoder")


def test_pieces_are_as_long_as_asked_for_or_as_the_kind_wants(shared_corpus, tmp_path):
    for seconds, frames in {0.0: 48, 0.15: 12, 0.001: 1}.items():
        trainer = make_trainer(shared_corpus, tmp_path, stage2_max_audio_seconds=seconds)
        assert trainer.frames == frames and not trainer.is_adversarial
    settings = {"stage2_max_audio_seconds": 0.0, "vocoder_adversarial": True}
    assert make_trainer(shared_corpus, tmp_path, **settings).frames == 32


def test_runtime_trains_the_same_and_stores_nothing(tmp_path, short):
    bare = make_corpus(tmp_path / "bare", 10, speakers=2, seconds=(0.3, 0.6))
    settings = {"preprocessing_mode": "runtime", "stage2_max_steps": 1}
    assert make_trainer(bare, tmp_path / "run", **settings).train() == "finished"
    assert not (bare / "cached_features").exists()
    found, expected = history(tmp_path / "run")[0], history(short)[0]
    for name in ("mel_loss", "stft_loss", "pitch_loss"):
        assert found[name] == pytest.approx(expected[name], rel=1e-3)


# Going on from something else.


def test_a_vocoder_goes_on_from_another(shared_corpus, short, tmp_path):
    trainer = make_trainer(shared_corpus, tmp_path, stage2_from=str(short))
    found = trainer.model.pre.kernel.numpy()
    np.testing.assert_array_equal(found, final_state(short)["model/pre/kernel"])


def test_a_vocoder_of_other_mels_is_not_gone_on_from(shared_corpus, tmp_path):
    folder = save_vocoder(tmp_path / "other", tiny_vocoder(OTHER_MELS), OTHER_MELS)
    with pytest.raises(CheckpointError, match="made for other mels.*sample_rate 8000 here 22050"):
        make_trainer(shared_corpus, tmp_path / "run", stage2_from=str(folder))


def test_what_has_nothing_to_train_is_refused(shared_corpus, tmp_path):
    with pytest.raises(UserError, match="griffin_lim has nothing to train.*istft or hifigan"):
        make_trainer(shared_corpus, tmp_path, vocoder_type="griffin_lim")


def test_another_width_is_refused(shared_corpus, finished):
    with pytest.raises(UserError) as caught:
        make_trainer(shared_corpus, finished, istft_dim=16, vocoder_adversarial=True).train()
    assert str(caught.value).splitlines()[1:-1] == [
        "  model.istft_dim: 8 in the run, 16 now",
        "  training.vocoder_adversarial: false in the run, true now",
    ]
    assert step_of(finished) == 4


def test_other_pieces_go_on_with_the_epochs_first_batch(shared_corpus, finished, messages):
    # The last step was the second of its epoch, and another batch size cuts that otherwise.
    settings = {"stage2_batch_size": 2, "stage2_max_steps": 5}
    assert make_trainer(shared_corpus, finished, **settings).train() == "finished"
    assert "resuming with the first batch of epoch 2" in messages()
    state = load_state(saved_states(finished / "checkpoints")[-1])
    assert (state.step, state.facts["epoch"], state.facts["number"]) == (5, 1, 1)


def test_starting_over_keeps_the_old_run_beside(shared_corpus, finished, short):
    make_trainer(shared_corpus, finished, resume=False, stage2_max_steps=1).train()
    assert step_of(finished) == 1
    assert_same_run(finished.with_name("run.1"), short, "vocoder")


# What a listener hears of it.


class Board:
    """Stands for TensorBoard, and keeps what it is given."""

    is_active = True

    def __init__(self):
        self.given = []

    def audio(self, step, name, samples, rate):
        self.given.append((step, name, samples.shape, rate, float(np.abs(samples).max())))

    def images(self, step, name, array):
        self.given.append((step, name, array.shape))


def test_the_first_validation_utterance_is_copied_every_so_often(shared_corpus, tmp_path):
    trainer = make_trainer(shared_corpus, tmp_path / "run")
    source, board = trainer.prepare_datasets().val, Board()
    hook = CopyHook(trainer.model, source, 2, board)
    for step in (1, 2, 3, 4):
        hook.after_step(StepRecord(step, 0, step, {}, np.arange(1), StepTimes()))
    frames = int(source.lengths[0])
    names = [(step, name) for step, name, *_ in board.given]
    assert names == [
        *((2, "sample/recorded"), (2, "sample/copied"), (2, "sample/mel")),
        *((4, "sample/copied"), (4, "sample/mel")),
    ]
    for _, name, shape, rate, peak in (one for one in board.given if one[1] != "sample/mel"):
        assert shape == (frames * 256,) and rate == 22050 and 0.0 < peak <= 1.0, name
    assert board.given[2][2] == (80, frames)


# On the mels that a voice predicts.


def test_a_vocoder_trains_on_the_mels_of_a_voice(two_stages, shared_corpus, tmp_path, capsys):
    folder, config = tmp_path / "run", tmp_path / "config.yaml"
    save_config(run_config(shared_corpus, folder, **{**SHORT, "stage2_max_steps": 1}), config)
    words = ["train-vocoder", "--config", config, "--on-predicted-mels", two_stages]
    assert main([str(word) for word in words]) == 0
    assert f"the vocoder is in {folder}" in capsys.readouterr().out
    voice = load_voice(two_stages)
    (state, *_) = saved_states(folder / "checkpoints")
    assert load_state(state).facts["mels"] == voice_hash(voice)
    (store,) = shared_corpus.glob("cached_features/predicted-*")
    assert voice_hash(voice) in (store / "store.json").read_text()
    # On those of the recordings it is another training.
    with pytest.raises(
        UserError,
        match="it is trained on: those of the voice .*, those of the recordings now",
    ):
        make_trainer(shared_corpus, folder).train()


def test_every_utterance_has_the_mel_that_the_voice_says_of_it(two_stages, shared_corpus, tmp_path):
    voice = load_voice(two_stages)
    # In shards of its own order, and batches of three.
    trainer = make_trainer(shared_corpus, tmp_path, voice=voice, batch_size=3)
    source = trainer.prepare_datasets().train
    data = TrainingData(run_config(shared_corpus, tmp_path, **{**SHORT, "batch_size": 1}))
    own = {}
    for batch in islice(data.train_batches(), 5):  # one utterance each
        (at,) = np.asarray(batch["index"]).tolist()
        (mel,) = predict_mels(TeacherForced(voice.model), batch)
        own[str(data.train.cache.ids[at])] = sharpen(mel, voice.gains)
        recorded = np.asarray(batch["mel"][0, : int(batch["mel_lengths"][0])], np.float32)
        assert np.abs(own[str(data.train.cache.ids[at])] - recorded).mean() > 0.1
    stored = {str(name): source.utterance(at)["mel"] for at, name in enumerate(source.ids)}
    assert len(own) == 5 and len(stored) == 8
    for name, expected in own.items():
        np.testing.assert_allclose(stored[name], expected, atol=0.02)
        frames = min(map(len, own.values()))
        others = [mel for other, mel in own.items() if other != name]
        assert all(np.abs(mel[:frames] - expected[:frames]).max() > 0.05 for mel in others)


def test_a_hash_tells_voices_apart(two_stages):
    voice, again = load_voice(two_stages), load_voice(two_stages)
    assert voice_hash(voice) == voice_hash(again) and len(voice_hash(voice)) == 16
    weight = again.model.trainable_variables[0]
    weight.assign(weight + 1e-6)
    assert voice_hash(voice) != voice_hash(again)


# Both stages.


def test_two_stages_leave_a_voice_and_its_vocoder(two_stages):
    assert load_voice(two_stages).speakers == ("speaker0", "speaker1")
    assert load_vocoder(two_stages).path == two_stages / "stage2" / "vocoder"
    assert (step_of(two_stages), step_of(two_stages / "stage2")) == (3, 4)
    assert history(two_stages / "stage2")[0].keys() >= {"mel_loss", "stft_loss", "pitch_loss"}


def test_listeners_that_fail_hear_of_everything_and_end_neither_stage(
    shared_corpus, tmp_path, monkeypatch, messages
):
    heard = []

    def failing(what):
        def fail(self, *arguments):
            heard.append((what, type(self).__name__))
            raise ConnectionError("no route to host")

        return fail

    wandb = ModuleType("wandb")
    wandb.init = lambda **settings: SimpleNamespace(id="run-1")
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    listeners = (LogHook, PerformanceHook, ProgressHook, TensorBoardHook, WandbHook)
    for one in listeners:
        for what in ("after_step", "record_validation", "finish", "close"):
            monkeypatch.setattr(one, what, failing(what))
    settings = BOTH | {"max_steps": 1, "stage2_max_steps": 1, "use_wandb": True}
    trainer = TwoStageTrainer(run_config(shared_corpus, tmp_path / "run", **settings))
    assert trainer.train() == "finished"
    assert (step_of(tmp_path / "run"), step_of(tmp_path / "run" / "stage2")) == (1, 1)

    names = {one.__name__ for one in listeners}
    first = heard[: heard.index(("close", "PerformanceHook")) + 1]
    for stage, expected in ((first, names), (heard[len(first) :], names - {"WandbHook"})):
        closing = next(at for at, (what, _) in enumerate(stage) if what == "close")
        # The score of the last validation, which the end of the run brings, is among the reports.
        assert ("record_validation", "TensorBoardHook") in stage[:closing]
        assert {name for what, name in stage[:closing] if what == "finish"} == expected
        assert {what for what, _ in stage[closing:]} == {"close"}
        assert {name for _, name in stage[closing:]} == expected
    assert "WandbHook failed, training continues: ConnectionError: no route to host" in messages()


@pytest.mark.timeout(900)  # processes that import TensorFlow
def test_a_kill_in_either_stage_changes_nothing(shared_corpus, two_stages, tmp_path, messages):
    folder, config = tmp_path / "run", tmp_path / "config.yaml"
    save_config(run_config(shared_corpus, folder, **BOTH), config)

    killed = train("--config", config, signal_number=signal.SIGKILL, at_step=3)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert step_of(folder) == 2 and not (folder / "stage2").exists()

    # One step is left of the first stage: the fourth is the third of the second.
    killed = train("--config", config, signal_number=signal.SIGKILL, at_step=4)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "the second stage: istft" in killed.stderr
    assert (step_of(folder), step_of(folder / "stage2")) == (3, 2)

    trainer = TwoStageTrainer(run_config(shared_corpus, folder, **BOTH), resume=True)
    assert trainer.train() == "finished"
    assert "finished after 3 steps; the step ran never" in messages()
    assert_same_run(folder, two_stages, "voice")
    assert_same_run(folder / "stage2", two_stages / "stage2", "vocoder")

    # And once more, when there is nothing left to do.
    assert TwoStageTrainer(run_config(shared_corpus, folder, **BOTH)).train() == "finished"
    assert "finished after 4 steps; the step ran never" in messages()
    assert_same_run(folder / "stage2", two_stages / "stage2", "vocoder")


def test_the_second_stage_hears_the_voice_of_the_first(
    shared_corpus, two_stages, tmp_path, messages
):
    folder = Path(shutil.copytree(two_stages, tmp_path / "run"))
    shutil.rmtree(folder / "stage2")
    settings = {**BOTH, "stage2_on_predicted_mels": True, "stage2_max_steps": 1}
    assert TwoStageTrainer(run_config(shared_corpus, folder, **settings)).train() == "finished"
    assert "finished after 3 steps; the step ran never" in messages()
    (state,) = saved_states(folder / "stage2" / "checkpoints")
    assert load_state(state).facts["mels"] == voice_hash(load_voice(folder))
    # The same pieces, of other mels.
    found, recorded = (history(run / "stage2")[0] for run in (folder, two_stages))
    assert found["mel_loss"] != pytest.approx(recorded["mel_loss"], rel=1e-2)


def test_who_stops_the_first_stage_stops_the_second(shared_corpus, tmp_path, monkeypatch):
    take_step = TrainingLoop._step

    def step(self, *args):
        take_step(self, *args)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(TrainingLoop, "_step", step)
    folder = tmp_path / "run"
    assert TwoStageTrainer(run_config(shared_corpus, folder, **BOTH)).train() == "SIGINT"
    assert step_of(folder) == 1 and not (folder / "stage2").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocoder_type": "griffin_lim"}, "nothing to train"),
        ({"stage2_from": "nowhere"}, "no vocoder in .*nowhere"),
        (
            {"stage2_on_predicted_mels": True, "preprocessing_mode": "runtime"},
            "the mode runtime stores nothing",
        ),
    ],
)
def test_what_the_second_stage_cannot_do_is_found_before_the_first(
    shared_corpus, tmp_path, settings, message
):
    folder = tmp_path / "run"
    with pytest.raises(UserError, match=message):
        TwoStageTrainer(run_config(shared_corpus, folder, **{**BOTH, **settings})).train()
    assert not (folder / "checkpoints").exists()


def test_the_first_stage_has_epochs_and_a_rate_of_its_own():
    config = XTTSConfig(epochs=7, learning_rate=1e-3, min_learning_rate=1e-5)
    same = stage1_config(config).training
    assert (same.epochs, same.learning_rate, same.min_learning_rate) == (7, 1e-3, 1e-5)
    config = XTTSConfig(epochs=7, stage1_epochs=3, stage1_learning_rate=1e-6)
    own = stage1_config(config).training
    assert (own.epochs, own.learning_rate) == (3, 1e-6)
    assert own.last_learning_rate == pytest.approx(2e-8)


def test_a_run_goes_on_with_the_sizes_it_was_begun_with_unless_others_are_chosen(tmp_path):
    def sizes(config):
        return config.model.hifigan_version, config.training.discriminator_width

    tiny = create_default_config(model_size="tiny")
    begun = create_default_config(model_size="tiny", hifigan_version="v1", discriminator_width=1)
    save_config(begun, tmp_path / "config.yaml")
    assert as_begun(tiny, tmp_path) is tiny  # without a checkpoint nothing goes on
    (tmp_path / "checkpoints" / "step-00000002").mkdir(parents=True)
    assert sizes(as_begun(tiny, tmp_path)) == ("v1", 1)
    chosen = create_default_config(model_size="tiny", hifigan_version="v2")
    assert as_begun(chosen, tmp_path) is chosen
    small = create_default_config()
    assert as_begun(small, tmp_path) is small


def test_the_folder_of_a_voice_holds_no_vocoder_to_resume():
    voice = {"settings": {"model.decoder_dim": 16}, "speakers": ["anna"]}
    (line,) = vocoder_differences(voice, {"kind": "istft", "settings": {}, "mels": ""})
    assert line == "what is trained: a voice in the run, a vocoder now"
