"""The model as a user meets it, and that what once went wrong with it does not."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.io import read_audio
from myxtts.audio.speaker_features import ecapa_features
from myxtts.checkpoints import best_state, load_state, load_voice, save_voice
from myxtts.config.config import ModelConfig, XTTSConfig
from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.training.losses import XTTSLoss
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import stand_in_encoder
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import assert_equal_states, final_state, run_config
from tests.helpers.tiny_model import (
    VOCAB,
    make_batch,
    padded,
    rows,
    tiny_config,
    tiny_model,
    with_reference,
)


@pytest.mark.parametrize("strategy", ["parallel", "autoregressive"])
def test_with_padded_text_every_token_changes_the_mel(strategy):
    """The attention mask's sign was inverted, and the text made no difference."""
    model = tiny_model(decoder_strategy=strategy)
    batch = rows(padded(make_batch([16], [5]), tokens=6), *[0] * 6)
    tokens = batch["tokens"].numpy()
    for position in range(5):
        tokens[position + 1, position] = tokens[0, position] % (VOCAB - 1) + 1
    mel = model(with_reference({**batch, "tokens": tf.constant(tokens)}))["mel"]
    assert (np.abs(mel[1:] - mel[:1]).max(axis=(1, 2)) > 1e-3).all()


def test_the_reference_reaches_the_mel_and_its_encoder_learns():
    """Cloning was never trained: no reference reached the model."""
    model = tiny_model()
    inputs = with_reference(make_batch([16, 12], [5, 4], [0, 1]))
    with tf.GradientTape() as tape:
        mel = model(inputs, training=True)["mel"]
        loss = tf.reduce_mean(tf.abs(mel[:, :16] - inputs["mel"]))
    gradients = tape.gradient(loss, model.audio_encoder.trainable_variables)
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)
    other = model({**inputs, "reference": inputs["reference"][::-1]})["mel"]
    assert np.abs(other - model(inputs)["mel"]).max() > 1e-3


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[str, Path, str]:
    """A short run, with what its log says."""
    import logging

    folder = tmp_path_factory.mktemp("enhanced")
    corpus = make_corpus(folder / "corpus", 8, speakers=2, seconds=(0.3, 0.6))
    lines: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("myxtts")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        settings = {"max_steps": 4, "save_interval": 2, "validation_interval": 2}
        trainer = XTTSTrainer(run_config(corpus, folder / "run", **settings))
        reason = trainer.train(*trainer.prepare_datasets())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return reason, folder / "run", "\n".join(lines)


def test_the_log_says_how_the_step_really_ran(run):
    """It logged "graph mode enabled with XLA", and ran eagerly."""
    reason, _, log = run
    assert reason == "finished"
    assert "the step ran as a graph, traced 1 x for" in log and "without XLA" in log


def test_the_best_checkpoint_is_written_and_the_optimizer_is_in_it(run):
    """The best was logged and not written, and the optimizer's state was empty."""
    _, folder, log = run
    best = best_state(folder / "checkpoints")
    assert best is not None and "the best so far" in log
    arrays = load_state(best.path).arrays
    for part in ("model/audio_encoder/", "optimizer/"):
        assert any(name.startswith(part) for name in arrays)
    moments = [value for name, value in arrays.items() if "momentum" in name]
    assert moments and any(np.abs(value).max() > 0 for value in moments)


def test_a_user_sees_weights_components_and_what_the_mean_mel_would_score(run):
    *_, log = run
    assert log.count("Loss weights: mel_loss=1, stop_loss=0.2, voice_similarity_loss=0.1") == 1
    assert "Train loss components: mel_loss=" in log
    assert "predicting the mean mel scores" in log


# With a published speaker encoder, of which a few hundred weights stand in for millions.


@dataclass
class Cloning:
    """A run with an encoder, what its weights' file held, and where all of it is."""

    trainer: XTTSTrainer
    published: dict[str, np.ndarray]
    corpus: Path

    @property
    def folder(self) -> Path:
        return self.trainer.folder

    def recordings(self) -> list[Path]:
        """One of each speaker."""
        return [self.corpus / "wavs" / f"utt-000{number}.wav" for number in (0, 1)]


CLONING = {
    "max_steps": 3,
    "lr_schedule": "constant",
    "contrastive_loss_weight": 0.1,
    "utterances_per_speaker": 2,
    "gst_num_style_tokens": 3,
    "gst_style_token_dim": 4,
    "gst_style_embedding_dim": 4,
    "gst_num_heads": 2,
}


def clone_run(folder: Path, corpus: Path, **settings) -> Cloning:
    arrays = stand_in_encoder.make_arrays()
    path = stand_in_encoder.write_weights(folder / "encoder.pt", arrays)
    settings = {**CLONING, "speaker_encoder_path": str(path), **settings}
    trainer = XTTSTrainer(run_config(corpus, folder / "run", **settings))
    assert trainer.train(*trainer.prepare_datasets()) == "finished"
    path.unlink()  # nothing needs it any more
    return Cloning(trainer, arrays, corpus)


def two_speakers(folder: Path) -> Path:
    return make_corpus(folder / "corpus", 10, speakers=2, seconds=(0.4, 0.7))


@pytest.fixture(scope="module", autouse=True)
def stand_in():
    with pytest.MonkeyPatch.context() as patch:
        stand_in_encoder.install(patch)
        yield


@pytest.fixture(scope="module")
def frozen(tmp_path_factory) -> Cloning:
    folder = tmp_path_factory.mktemp("frozen")
    return clone_run(folder, two_speakers(folder), use_gst=True)


@pytest.fixture(scope="module")
def unfrozen(tmp_path_factory) -> Cloning:
    folder = tmp_path_factory.mktemp("unfrozen")
    return clone_run(folder, two_speakers(folder), freeze_speaker_encoder=False)


def encoder_of(arrays) -> dict[str, np.ndarray]:
    """The encoder's weights in a checkpoint, under the names of its own file."""
    found = {}
    for layer in ("hidden", "out"):
        found[f"{layer}.weight"] = arrays[f"model/ecapa_tdnn/{layer}/kernel"].T
        found[f"{layer}.bias"] = arrays[f"model/ecapa_tdnn/{layer}/bias"]
    return found


def test_a_frozen_encoder_is_the_published_one_and_stays_so(frozen):
    """It was random, and was called pretrained."""
    saved = final_state(frozen.folder)
    for name, value in encoder_of(saved).items():
        np.testing.assert_array_equal(value, frozen.published[name], name)
    assert np.abs(saved["model/published_voice/centre"]).max() > 0


def test_an_unfrozen_encoder_begins_as_published_and_moves(unfrozen):
    for name, value in encoder_of(final_state(unfrozen.folder)).items():
        moved = np.abs(value - unfrozen.published[name]).max()
        assert 0 < moved < 0.05, name


def test_embeddings_are_stored_beside_the_features_and_say_what_the_encoder_says(frozen, unfrozen):
    assert len(list(frozen.corpus.glob("cached_features/voices-*"))) == 1
    assert list(unfrozen.corpus.glob("cached_features/voices-*")) == []
    split = frozen.trainer.data.train
    for position, utterance in enumerate(split.utterances[:3]):
        features = ecapa_features(read_audio(utterance.audio, 16000))
        expected = stand_in_encoder.embedding(frozen.published, features)
        found = split.cache.embeddings[np.array([position])][0]
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["frozen", "unfrozen"])
def test_losses_on_voices_were_learnt_from(name, request):
    run = request.getfixturevalue(name)
    lines = map(json.loads, (run.folder / "history.jsonl").read_text().splitlines())
    steps = [line for line in lines if "weighted/speaker_loss" in line]
    assert len(steps) == 3
    # A batch may happen to have nobody twice, or nobody else.
    for term in ("contrastive_loss", "voice_similarity_loss", "speaker_loss"):
        assert max(line[f"weighted/{term}"] for line in steps) > 0, term


@pytest.mark.parametrize("name", ["frozen", "unfrozen"])
def test_a_saved_voice_clones_the_same_after_loading(name, request, tmp_path):
    run = request.getfixturevalue(name)
    voice = load_voice(run.folder)
    copy = save_voice(
        tmp_path / "copy",
        voice.model,
        voice.config,
        voice.tokenizer,
        voice.speakers,
        voice.languages,
        voice.voices,
        gains=voice.gains,
    )
    first, second = run.recordings()
    before = Synthesizer(voice).speak("Hello.", reference=first)
    after = Synthesizer(load_voice(copy)).speak("Hello.", reference=first)
    np.testing.assert_array_equal(before.samples, after.samples)
    # Who is to be cloned decides what is said.
    other = Synthesizer(voice).speak("Hello.", reference=second)
    assert other.mel.shape != before.mel.shape or np.abs(other.mel - before.mel).max() > 1e-4


def test_a_reference_is_described_by_the_encoder_in_the_voice(frozen):
    voice = load_voice(frozen.folder)
    (path, _) = frozen.recordings()
    encoder = voice.model.published_voice.speaker_encoder
    samples = read_audio(path, 16000)
    expected = stand_in_encoder.embedding(frozen.published, ecapa_features(samples))
    np.testing.assert_allclose(encoder.embed(samples, 16000), expected, atol=1e-4)


def test_speakers_of_the_corpus_are_cloned_as_their_recordings(frozen):
    """The stored vectors are means of what references of that speaker give."""
    voice, data = load_voice(frozen.folder), frozen.trainer.data
    cache = data.train.cache
    for number in range(len(voice.speakers)):
        chosen = np.flatnonzero(cache.speaker == number)[:4]
        described = voice.model.encode_embedding(cache.embeddings[chosen])
        np.testing.assert_allclose(voice.voices[number], np.mean(described, axis=0), atol=1e-4)


def test_a_style_can_be_chosen_where_there_are_style_tokens(frozen, unfrozen):
    synthesizer = Synthesizer(load_voice(frozen.folder))
    one, other = (synthesizer.speak("Hello.", style_weights=w) for w in ((5, 0, 0), (0, 0, 5)))
    assert one.mel.shape != other.mel.shape or np.abs(one.mel - other.mel).max() > 1e-5
    with pytest.raises(UserError, match="no style tokens"):
        Synthesizer(load_voice(unfrozen.folder)).speak("Hello.", style_weights=(1, 0, 0))


def test_a_run_with_a_frozen_encoder_goes_on_to_the_same_end(frozen, tmp_path):
    corpus = Path(shutil.copytree(frozen.corpus, tmp_path / "corpus"))
    for steps in (2, 3):
        run = clone_run(tmp_path, corpus, use_gst=True, max_steps=steps)
    assert_equal_states(final_state(run.folder), final_state(frozen.folder))


def test_the_names_that_users_import_are_there():
    assert XTTSLoss.from_config(XTTSConfig()).weights["mel_loss"] == 1.0
    assert ModelConfig().decoder_strategy == "parallel"
    assert tiny_config().model.decoder_dim == 16
