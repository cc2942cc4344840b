"""Adding a voice: the old speakers stay, the new one is learnt, and going on is exact."""

import shutil
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import load_state, load_voice, save_voice, saved_states, weights_of
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.errors import UserError
from myxtts.models.xtts import build_xtts
from myxtts.text.tokenizer import Tokenizer
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import stand_in_encoder
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import assert_equal_states, final_state, run_config, train

PLAN = {"max_steps": 2, "save_interval": 1, "enable_eager_debug": True, "val_fraction": 0.0}


@pytest.fixture(autouse=True)
def graphs_afterwards():
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def multi(tmp_path_factory) -> Path:
    """The run of a voice of two speakers, never written to again."""
    folder = tmp_path_factory.mktemp("multi")
    corpus = make_corpus(folder / "corpus", 6, speakers=2, seconds=(0.3, 0.5))
    XTTSTrainer(run_config(corpus, folder / "run", **PLAN)).train()
    return folder / "run"


@pytest.fixture(scope="module")
def me(tmp_path_factory) -> Path:
    """Recordings of somebody who is called by their folder's name, fewer than a batch."""
    path = tmp_path_factory.mktemp("new") / "me"
    return make_corpus(path, 3, seed=3, seconds=(0.3, 0.5))


@pytest.fixture
def make_trainer(multi, me, tmp_path):
    def make(voice=multi, data=me, resume=None, **settings) -> XTTSTrainer:
        config = run_config(data, tmp_path / "me", **{**PLAN, **settings})
        return XTTSTrainer(config, resume=resume, start=load_voice(voice))

    return make


def arrays(voice) -> dict[str, np.ndarray]:
    return {name: weight.numpy() for name, weight in weights_of(voice.model).items()}


def test_the_voice_knows_the_new_speaker_and_the_old_ones_as_they_were(make_trainer, multi):
    trainer = make_trainer()
    assert trainer.train() == "finished"
    before, after = load_voice(multi), load_voice(trainer.folder)
    assert before.speakers == ("speaker0", "speaker1")
    assert after.speakers == ("speaker0", "speaker1", "me")
    assert after.tokenizer.symbols == before.tokenizer.symbols
    np.testing.assert_array_equal(after.voices[:2], before.voices)
    old, new = arrays(before), arrays(after)
    for name in old:
        if name.startswith("audio_encoder/"):
            np.testing.assert_array_equal(new[name], old[name], err_msg=name)
    assert np.abs(new["mu/kernel"] - old["mu/kernel"]).max() > 0
    # The new vector is what the same encoder says of the new recordings.
    (batch,) = trainer.data.speaker_batches()
    said = before.model.encode_voice(tf.cast(batch["mel"], tf.float32), batch["mel_lengths"])
    np.testing.assert_allclose(after.voices[2], said.numpy().mean(axis=0), rtol=1e-4, atol=1e-5)


def test_the_weights_begin_as_the_voices_own(make_trainer, multi):
    trainer = make_trainer(max_steps=1, learning_rate=1e-9, min_learning_rate=0.0)
    trainer.train()
    old, new = arrays(load_voice(multi)), arrays(load_voice(trainer.folder))
    for name, value in old.items():
        if not name.startswith("speaker/"):
            np.testing.assert_allclose(new[name], value, atol=1e-8, err_msg=name)


def test_a_speaker_of_a_known_name_is_that_speaker_and_described_anew(
    make_trainer, multi, tmp_path
):
    data = make_corpus(tmp_path / "speaker1", 3, seed=5, seconds=(0.3, 0.5))
    trainer = make_trainer(data=data)
    trainer.train()
    before, after = load_voice(multi), load_voice(trainer.folder)
    assert after.speakers == before.speakers
    np.testing.assert_array_equal(after.voices[0], before.voices[0])
    assert np.abs(after.voices[1] - before.voices[1]).max() > 1e-3


def test_a_voice_of_one_speaker_is_extended_to_two(make_trainer, me, tmp_path):
    alone = make_corpus(tmp_path / "alone", 4, seconds=(0.3, 0.5))
    XTTSTrainer(run_config(alone, tmp_path / "single", **PLAN)).train()
    trainer = make_trainer(voice=tmp_path / "single")
    trainer.train()
    before, after = load_voice(tmp_path / "single"), load_voice(trainer.folder)
    assert after.speakers == ("alone", "me")
    assert before.model.speaker_head is None and after.model.speaker_head is not None
    np.testing.assert_array_equal(after.voices[0], before.voices[0])


def test_a_fine_tuned_voice_takes_a_further_speaker(make_trainer, tmp_path):
    first = make_trainer()
    first.train()
    other = make_corpus(tmp_path / "you", 1, seed=7, seconds=(0.3, 0.5))
    kept = Path(shutil.copytree(first.folder / "voice", tmp_path / "kept"))
    second = make_trainer(voice=kept, data=other, resume=False)
    second.train()
    before, after = load_voice(kept), load_voice(second.folder)
    assert after.speakers == ("speaker0", "speaker1", "me", "you")
    np.testing.assert_array_equal(after.voices[:3], before.voices)


def test_a_language_whose_letters_the_voice_lacks_is_refused(make_trainer, tmp_path):
    with pytest.raises(UserError, match="lacks .* of German .*ß.*phonemes"):
        make_trainer(language="de").prepare_datasets()
    assert not (tmp_path / "me").exists()


def untrained_voice(folder: Path, language: str, **settings) -> Path:
    """A voice whose weights are as they were drawn."""
    config = run_config("anywhere", folder, **settings)
    tokenizer = Tokenizer.build([language], config.data.text_units)
    model = build_xtts(config.model, config.data.audio_spec, tokenizer.vocab_size, 1, 1)
    vectors = np.ones((1, config.model.speaker_embedding_dim), np.float32)
    return save_voice(folder, model, config, tokenizer, ["old"], [language], vectors)


def test_a_language_whose_letters_the_voice_has_is_added(make_trainer, tmp_path):
    trainer = make_trainer(voice=untrained_voice(tmp_path / "german", "de"), language="en")
    trainer.train()
    after = load_voice(trainer.folder)
    assert after.languages == after.tokenizer.languages == ("de", "en")
    before = load_voice(tmp_path / "german")
    name = "text_encoder/language/embeddings"
    assert (arrays(before)[name].shape[0], arrays(after)[name].shape[0]) == (1, 2)


def test_phonemes_take_any_language(make_trainer, tmp_path):
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    units = {"text_units": "phonemes"}
    voice = untrained_voice(tmp_path / "persian", "fa", **units)
    trainer = make_trainer(voice=voice, language="en", max_steps=1, **units)
    trainer.train()
    after = load_voice(trainer.folder)
    assert after.languages == after.tokenizer.languages == ("fa", "en")
    assert after.tokenizer.fingerprint() == load_voice(voice).tokenizer.fingerprint()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "trained on"])
def test_a_published_encoder_and_its_projection_stay_as_they_are(make_trainer, tmp_path, frozen):
    settings = {
        "use_pretrained_speaker_encoder": True,
        "speaker_encoder_type": "resemblyzer",
        "freeze_speaker_encoder": frozen,
    }
    voice = untrained_voice(tmp_path / "published", "en", **settings)
    trainer = make_trainer(voice=voice, max_steps=1, **settings)
    trainer.train()
    before, after = load_voice(voice), load_voice(trainer.folder)
    describing = before.model.published_voice.weights
    for old, new in zip(describing, after.model.published_voice.weights, strict=True):
        np.testing.assert_array_equal(new, old, err_msg=old.path)
    np.testing.assert_array_equal(after.voices[0], before.voices[0])
    assert np.abs(after.voices[1]).max() > 0


@pytest.mark.timeout(300)
def test_a_voice_is_given_a_published_encoder_and_a_shared_text_voice(
    make_trainer, multi, tmp_path, monkeypatch
):
    stand_in_encoder.install(monkeypatch)
    weights = stand_in_encoder.write_weights(tmp_path / "e.pt", stand_in_encoder.make_arrays())
    added = {"speaker_encoder_path": str(weights), "text_voice": "shared", "learning_rate": 0.01}

    def make(**settings) -> XTTSTrainer:
        return make_trainer(**added, **settings)

    assert make(max_steps=1).train() == "finished"
    assert make().train() == "finished"
    resumed = shutil.move(tmp_path / "me", tmp_path / "resumed")
    straight = make()
    straight.train()
    assert_equal_states(final_state(resumed), final_state(straight.folder))
    before, after = load_voice(multi), load_voice(straight.folder)
    assert after.config.model.speaker_encoder == stand_in_encoder.KIND
    np.testing.assert_array_equal(after.voices[:2], before.voices)
    new = arrays(after)
    assert not any(name.startswith("audio_encoder/") for name in new)
    # Learnt from its beginning on: it is not frozen, as an encoder of the voice's own would be.
    mean = before.voices.mean(axis=0)
    begun = mean / np.sqrt(np.mean(mean**2))
    moved = np.abs(new["published_voice/project/bias"] - begun)
    assert 0 < moved.max() < 0.5
    # No layer of this text encoder reads it.
    np.testing.assert_allclose(new["text_voice"], mean, rtol=1e-6)


def test_settings_that_a_voice_cannot_do_without_are_refused(make_trainer):
    for settings in ({"loudness_lufs": -20.0}, {"decoder_dim": 24}):
        with pytest.raises(UserError, match=f"{next(iter(settings))} is .*leave that out"):
            make_trainer(**settings).prepare_datasets()


def test_going_on_needs_the_same_voice_and_the_same_command(make_trainer, multi, me, tmp_path):
    folder = make_trainer(max_steps=1)
    folder.train()
    config = run_config(me, tmp_path / "me", **PLAN)
    with pytest.raises(UserError, match="began from a voice.*`myxtts finetune`"):
        XTTSTrainer(config).train()
    other = make_trainer(voice=untrained_voice(tmp_path / "other", "en"))
    with pytest.raises(UserError, match="another voice than .*other is now"):
        other.train()
    assert make_trainer().train() == "finished"
    shutil.copytree(multi, tmp_path / "plain")
    plain = XTTSTrainer(run_config(me, tmp_path / "plain", **PLAN), start=load_voice(multi))
    with pytest.raises(UserError, match="began from nothing.*--checkpoint-dir"):
        plain.train()


finetune = partial(train, verb="finetune")


@pytest.mark.timeout(900)  # three processes that import TensorFlow
def test_a_run_that_is_stopped_ends_with_the_same_bits(multi, tmp_path):
    data = make_corpus(tmp_path / "me", 7, seed=3, seconds=(0.3, 0.6))
    words = ["--voice", multi, "--data", data, "--max-steps", 6, "--batch-size", 2]
    words += ["--save-interval", 2, "--validation-interval", 2]
    whole, parts = tmp_path / "whole", tmp_path / "parts"

    done = finetune(*words, "--checkpoint-dir", whole)
    assert done.returncode == 0, done.stderr
    assert "adding: me" in done.stdout and "--speaker me" in done.stdout

    stopped = finetune(*words, "--checkpoint-dir", parts, signal_number=signal.SIGINT, after=3)
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped by SIGINT" in stopped.stdout and "Traceback" not in stopped.stderr
    assert load_state(saved_states(parts / "checkpoints")[-1]).step == 3
    assert load_voice(parts).speakers == ("speaker0", "speaker1", "me")
    done = finetune(*words, "--checkpoint-dir", parts)
    assert done.returncode == 0, done.stderr
    assert "step 3, epoch" in done.stderr

    assert_equal_states(final_state(parts), final_state(whole))
    for name in ("model.safetensors", "speakers.safetensors"):
        files = [run / "voice" / name for run in (parts, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()
    state = final_state(whole)
    assert not any(name.startswith("optimizer/audio_encoder") for name in state)
    assert any(name.startswith("model/audio_encoder") for name in state)
    config: XTTSConfig = load_config(whole / "config.yaml")
    assert config.model == load_voice(multi).config.model
