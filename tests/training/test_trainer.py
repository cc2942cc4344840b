"""The trainer: what it refuses, what it keeps, and what it says. Its steps run eagerly here."""

import json
import logging
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import load_state, load_voice, save_state, saved_states
from myxtts.checkpoints.states import SavedState
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.errors import UserError
from myxtts.training import trainer as trainer_module
from myxtts.training.loop import OutOfMemory, TrainingDiverged
from myxtts.training.run_folder import alone_in
from myxtts.training.trainer import XTTSTrainer, build_model
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import final_state, run_config

CORPUS = {"count": 6, "speakers": 2, "seconds": (0.3, 0.5)}
PLAN = {"max_steps": 2, "save_interval": 1, "enable_eager_debug": True}


@pytest.fixture(autouse=True)
def graphs_afterwards():
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def make_trainer(shared_corpus, tmp_path):
    def make(resume=None, folder="run", data=shared_corpus, **settings) -> XTTSTrainer:
        config = run_config(data, tmp_path / folder, **{**PLAN, "val_fraction": 0.0, **settings})
        return XTTSTrainer(config, resume=resume)

    return make


@pytest.fixture
def messages(caplog):
    caplog.set_level(logging.INFO, logger="myxtts")
    return lambda: "\n".join(record.getMessage() for record in caplog.records)


def steps_of(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in saved_states(folder / "checkpoints")]


def poisoned(batches, number: int) -> list[dict]:
    """Batches of which one has a frame that is not a number."""
    batches = list(batches)
    mel = batches[number]["mel"].numpy()
    mel[0, 0] = np.nan
    batches[number] = {**batches[number], "mel": tf.constant(mel)}
    return batches


def test_a_run_in_eager_debug_leaves_a_voice_and_says_how_it_ran(make_trainer, messages):
    trainer = make_trainer(adaptive_loss_weights=True)
    assert trainer.train() == "finished"
    assert "the step ran eagerly" in messages()
    assert "Loss weights: mel_loss=1, stop_loss=0.2" in messages()
    # Adaptive weights are logged, and saved with the run.
    lines = [json.loads(x) for x in (trainer.folder / "history.jsonl").read_text().splitlines()]
    factors = [value for name, value in lines[-1].items() if name.startswith("factor/")]
    assert len(factors) == 9 and all(0.25 <= value <= 4 for value in factors)
    assert np.all(final_state(trainer.folder)["balance/means"] >= 0)
    assert final_state(trainer.folder)["balance/means"].max() > 0
    voice = load_voice(trainer.folder)
    assert voice.speakers == ("speaker0", "speaker1")
    assert np.abs(voice.voices).max() > 0
    # A voice goes anywhere: it names no folder of this machine.
    assert str(trainer.folder.parent) not in (trainer.folder / "voice/config.yaml").read_text()


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good(make_trainer):
    trainer = make_trainer(max_steps=0, epochs=1, batch_size=2)
    data, _ = trainer.prepare_datasets()
    batches = poisoned(data.train_batches(), 1)
    data.stream = lambda epoch, start: iter(
        [(epoch, at, b) for at, b in enumerate(batches)][start:]
    )
    with pytest.raises(TrainingDiverged) as caught:
        trainer.train()
    message = str(caught.value)
    assert "step 2" in message and "mel_loss=nan" in message
    for name in trainer.ids_of(batches[1]["index"]):
        assert name in message
    assert str(trainer.folder / "checkpoints" / "step-00000001") in message
    assert steps_of(trainer.folder) == [1]
    for name, value in final_state(trainer.folder).items():
        assert np.isfinite(value).all(), name
    # Diverging once more, it still knows that checkpoint, which another process wrote.
    again = make_trainer(max_steps=0, epochs=1, batch_size=2)
    again.prepare_datasets()
    with pytest.raises(TrainingDiverged, match="utterances: number [0-9]+, number .*step-00000001"):
        again.train(batches)  # somebody's own dataset: it is named by its positions


def test_out_of_memory_names_the_utterances_and_keeps_checkpoints(make_trainer, monkeypatch):
    make = trainer_module.make_train_step

    def make_greedy(*args, **how):
        step = make(*args, **how)
        take = step.function

        def greedy(batch, number):
            if int(number) == 2:
                raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
            return take(batch, number)

        step.function = greedy
        return step

    monkeypatch.setattr(trainer_module, "make_train_step", make_greedy)
    trainer = make_trainer()
    with pytest.raises(OutOfMemory, match="step 2.*utt-000.*--batch-size"):
        trainer.train()
    assert steps_of(trainer.folder) == [1]


@pytest.fixture(scope="module")
def finished_run(shared_corpus, tmp_path_factory) -> Path:
    """The folder of a run of one step, never written to again."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    config = run_config(shared_corpus, folder, **{**PLAN, "val_fraction": 0.0, "max_steps": 1})
    XTTSTrainer(config).train()
    tf.config.run_functions_eagerly(False)
    return folder


@pytest.fixture
def finished(finished_run, tmp_path) -> Path:
    """A copy of it, where `make_trainer` goes on."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def test_starting_over_keeps_the_old_run_beside(make_trainer, finished):
    before = final_state(finished)
    (finished / "note.txt").write_text("mine")
    make_trainer(resume=False, max_steps=1).train()
    aside = finished.with_name("run.1")
    assert final_state(aside).keys() == before.keys() and steps_of(aside) == [1]
    assert (aside / "note.txt").exists() and (aside / "history.jsonl").exists()
    assert steps_of(finished) == [1] and not (finished / "note.txt").exists()


def test_another_corpus_is_refused_by_what_differs_and_with_the_ways_out(
    make_trainer, finished, tmp_path
):
    other = make_corpus(tmp_path / "other", 6, speakers=3, seconds=(0.3, 0.5))
    with pytest.raises(UserError) as caught:
        make_trainer(data=other).train()
    assert str(caught.value) == (
        f"{finished} holds a run that was trained with other settings:\n"
        "  speakers: 2 (speaker0, speaker1) in the run, 3 (speaker0, speaker1, speaker2) now\n"
        "Choose another folder with --checkpoint-dir, or start over there with "
        "--reset-training, which keeps the old run next to the new one"
    )
    with pytest.raises(UserError, match=r"languages: 1 \(en\) in the run, 1 \(de\) now\n"):
        make_trainer(language="de").train()
    assert steps_of(finished) == [1]


def test_another_plan_goes_on_with_the_epochs_first_batch(make_trainer, finished, messages):
    trainer = make_trainer(batch_size=2)
    assert trainer.train() == "finished"
    assert "plan changed): resuming with the first batch of epoch" in messages()
    state = load_state(saved_states(finished / "checkpoints")[-1])
    assert state.step == 2 and state.facts["number"] == 1


@pytest.mark.parametrize("has_facts", [True, False])
def test_other_settings_are_refused_by_name_before_the_corpus_is_opened(
    make_trainer, finished, monkeypatch, has_facts
):
    if not has_facts:  # as the version before wrote its checkpoints
        (path,) = saved_states(finished / "checkpoints")
        saved = load_state(path)
        del saved.facts["settings"]
        save_state(path.parent, saved.step, saved.arrays, saved.facts)
    monkeypatch.setattr(trainer_module, "TrainingData", None)
    trainer = make_trainer(decoder_dim=24, use_gst=True, dropout=0.3, ema_decay=0.0)
    with pytest.raises(UserError) as caught:
        trainer.prepare_datasets()
    told = str(caught.value).splitlines()[1:-1]
    if not has_facts:  # nor did that version know another pitch than YIN's
        assert told.pop(0) == "  data.pitch_method: spectrum in the run, yin now"
    assert told == [
        "  model.decoder_dim: 16 in the run, 24 now",
        "  model.use_gst: false in the run, true now",
        "  training.ema_decay: 0.9 in the run, 0.0 now",
    ]


def test_where_there_is_nothing_to_resume_it_fails(make_trainer):
    trainer = make_trainer(resume=True)
    with pytest.raises(UserError, match="nothing to resume in .*run"):
        trainer.train()


def test_a_checkpoint_can_be_named(make_trainer, finished):
    trainer = make_trainer(folder="elsewhere", resume=finished / "checkpoints" / "step-00000001")
    assert trainer.train() == "finished"
    assert steps_of(trainer.folder) == [2]


def test_a_second_training_in_the_same_folder_is_refused(make_trainer):
    trainer = make_trainer()
    trainer.folder.mkdir(parents=True)
    with alone_in(trainer.folder):
        with pytest.raises(UserError, match="another process trains in .*--checkpoint-dir"):
            trainer.train()
    assert not (trainer.folder / "checkpoints").exists()


def test_a_trainer_takes_the_data_section_alone(shared_corpus):
    data = DataConfig(dataset_path=str(shared_corpus), batch_size=3)
    assert XTTSTrainer(data).config == XTTSConfig(data=data)


def test_a_model_is_built_for_the_corpus_of_a_configuration(make_trainer):
    config = make_trainer().config
    model = build_model(config)
    trainer = XTTSTrainer(config, model)
    own = trainer.prepare_datasets()[0]
    assert trainer.model is model
    assert model.vocab_size == own.tokenizer.vocab_size
    assert model.num_speakers == 2


def test_wandb_without_its_package_is_refused_before_anything_is_prepared(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    config = XTTSConfig(data_path=tmp_path / "nothing", use_wandb=True)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[wandb\]'"):
        XTTSTrainer(config)


@pytest.mark.parametrize(
    ("settings", "workers", "known", "expected"),
    [
        ({"decoder_dim": 192}, 1, None, None),  # as the machine is
        ({"decoder_dim": 256}, 1, None, 0),
        ({"decoder_dim": 256}, 1, 1, 1),
        ({"decoder_dim": 192}, 1, 0, 0),
        ({"decoder_dim": 192}, 2, None, 0),
        ({"decoder_dim": 256, "operation_threads": 3}, 2, 1, 3),
    ],
)
def test_narrow_models_of_one_worker_have_the_threads_that_suit_the_machine(
    monkeypatch, settings, workers, known, expected
):
    config = XTTSConfig(**settings)
    monkeypatch.setattr(trainer_module, "threads_of_its_time", lambda folder, resume: known)
    replicas = SimpleNamespace(count=workers)
    assert trainer_module._threads(config, Path("run"), None, replicas) == expected


@pytest.mark.parametrize(
    ("began", "able", "asked", "goes_on", "is_told"),
    [
        ({}, "bfloat16", None, "float32", False),  # by a version that had no choice
        ({"convolutions": "float32"}, "bfloat16", None, "float32", False),
        ({"convolutions": "float32"}, "bfloat16", True, "bfloat16", True),
        ({"convolutions": "bfloat16"}, "bfloat16", None, "bfloat16", False),
        ({"convolutions": "bfloat16"}, "float32", None, "float32", True),
    ],
)
def test_a_run_goes_on_in_the_precision_that_it_began_with(
    make_trainer, caplog, began, able, asked, goes_on, is_told
):
    trainer = make_trainer(mixed_precision=False)
    trainer.config = trainer.config.replace(mixed_precision=asked)
    trainer.runtime = replace(trainer.runtime, convolutions=able)
    saved = SavedState(7, {}, began, Path("step-7"))
    assert trainer._convolutions_of(None) == able
    assert trainer._convolutions_of(saved) == goes_on
    assert ("step-7 was trained with convolutions in" in caplog.text) == is_told
