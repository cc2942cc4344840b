"""Voices: self-contained, replaced in one move, and refused with a reason."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from myxtts.audio.postfilter import BINS
from myxtts.checkpoints import CheckpointError, files, load_voice, save_voice, weights_of
from myxtts.config.config import XTTSConfig
from myxtts.errors import UserError
from myxtts.text.tokenizer import Tokenizer

SPEAKERS, LANGUAGES = ("ann", "bob", "Şirin"), ("en", "fa")
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)
CONFIG = XTTSConfig(speaker_embedding_dim=4, n_mels=6, dropout=0.25)
TOKENIZER = Tokenizer.build(LANGUAGES)


def build_small(config, spec, vocab_size, num_languages, num_speakers):
    """A stand-in that uses each of the numbers that a model is built from."""
    import keras

    layers = [
        keras.Input((), dtype="int32"),
        keras.layers.Embedding(vocab_size, config.speaker_embedding_dim, name="text"),
        keras.layers.Dropout(config.dropout, name="drop"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.Dense(spec.n_mels, name="mel"),
        keras.layers.Dense(num_languages + num_speakers, name="speaker"),
    ]
    return keras.Sequential(layers, name="small")


def make_model(seed: int = 0):
    import keras

    keras.utils.set_random_seed(seed)
    model = build_small(CONFIG.model, CONFIG.data.audio_spec, TOKENIZER.vocab_size, 2, 3)
    model(np.arange(8), training=True)  # moves the statistics of the normalisation
    return model


def save(folder, model=None, **given):
    model = model or make_model()
    return save_voice(folder, model, CONFIG, TOKENIZER, SPEAKERS, LANGUAGES, VECTORS, **given)


def seal(folder, **changed):
    """Write the card anew, with the checksums of what the files hold now."""
    card = {**json.loads((folder / "voice.json").read_text()), **changed}
    del card["check"]
    card["files"] = {name: files.describe(folder / name) for name in card["files"]}
    (folder / "voice.json").write_text(json.dumps(files.sealed(card)))


def load(path):
    return load_voice(path, build=build_small)


def test_a_voice_comes_back_as_it_was(tmp_path):
    model = make_model()
    folder = save(tmp_path / "voice", model)
    voice = load(folder)
    assert sorted(os.listdir(folder)) == [
        "config.yaml", "model.safetensors", "speakers.safetensors", "tokenizer.json", "voice.json",
    ]  # fmt: skip
    assert (voice.folder, voice.speakers, voice.languages) == (folder, SPEAKERS, LANGUAGES)
    assert voice.config == CONFIG
    assert voice.tokenizer.to_json() == TOKENIZER.to_json()
    np.testing.assert_array_equal(voice.voices, VECTORS)
    for name, variable in weights_of(model).items():
        assert np.array_equal(weights_of(voice.model)[name], variable), name
    np.testing.assert_array_equal(voice.model(np.arange(9)), model(np.arange(9)))


def test_the_real_model_says_the_same_after_loading(tmp_path):
    from myxtts.models.xtts import build_xtts

    widths = ("text_encoder_dim", "decoder_dim", "audio_encoder_dim")
    depths = ("text_encoder_conv_layers", "text_encoder_layers", "decoder_layers")
    sizes = dict.fromkeys(widths, 16) | dict.fromkeys((*depths, "audio_encoder_layers"), 1)
    config = XTTSConfig(**sizes, speaker_embedding_dim=4)
    model = build_xtts(config.model, config.data.audio_spec, TOKENIZER.vocab_size, 2, 3)
    save_voice(tmp_path, model, config, TOKENIZER, SPEAKERS, LANGUAGES, VECTORS)
    voice = load_voice(tmp_path)
    tokens = voice.tokenizer.encode("Hello there.", "en")[None]
    said = [
        speaker.synthesize(
            tokens, np.int32([tokens.size]), np.int32([0]), voice.voices[:1], np.float32([1])
        )
        for speaker in (model, voice.model)
    ]
    for name in ("mel", "mel_lengths", "durations"):
        np.testing.assert_array_equal(said[0][name], said[1][name])
    assert said[0]["mel"].shape[1] >= tokens.size


def test_others_may_read_a_voice(tmp_path):
    before = os.umask(0o022)
    try:
        folder = save(tmp_path / "voice")
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o644"}


def test_a_run_that_holds_a_voice_will_do(tmp_path, monkeypatch):
    save(tmp_path / "run" / "voice")
    assert load(tmp_path / "run").folder == tmp_path / "run" / "voice"
    monkeypatch.chdir(tmp_path / "run" / "voice")
    assert load(".").speakers == SPEAKERS


def test_given_weights_take_the_place_of_the_models_own(tmp_path):
    model = make_model()
    bias = np.full(6, 3.0, np.float32)
    voice = load(save(tmp_path / "voice", model, weights={"mel/bias": bias}))
    np.testing.assert_array_equal(weights_of(voice.model)["mel/bias"], bias)
    kernels = weights_of(voice.model)["mel/kernel"], weights_of(model)["mel/kernel"]
    np.testing.assert_array_equal(*kernels)
    np.testing.assert_array_equal(weights_of(model)["mel/bias"], np.zeros(6))


@pytest.mark.parametrize(
    "weights", [{"mel/bais": np.zeros(6, np.float32)}, {"mel/bias": np.zeros(5, np.float32)}]
)
def test_given_weights_must_fit(tmp_path, weights):
    with pytest.raises(ValueError, match=next(iter(weights))):
        save(tmp_path / "voice", weights=weights)
    assert os.listdir(tmp_path) == []


def test_vectors_must_fit_the_speakers(tmp_path):
    with pytest.raises(ValueError, match=r"\[2, 4\] instead of \[3, 4\]"):
        save_voice(tmp_path / "v", make_model(), CONFIG, TOKENIZER, SPEAKERS, ("en",), VECTORS[:2])


def test_the_gains_of_a_post_filter_are_kept(tmp_path):
    gains = np.random.default_rng(0).uniform(1, 1.9, (BINS, CONFIG.data.n_mels)).astype(np.float32)
    assert load(save(tmp_path / "without")).gains is None
    np.testing.assert_array_equal(load(save(tmp_path / "with", gains=gains)).gains, gains)


@pytest.mark.parametrize(
    ("gains", "problem"),
    [
        (np.ones((BINS, 1), np.float32), "the post-filter's gains are"),
        (np.full((BINS, CONFIG.data.n_mels), 1e9, np.float32), "gains are too large"),
    ],
)
def test_gains_that_cannot_be_are_rejected(tmp_path, gains, problem):
    folder = save(tmp_path / "voice", gains=gains)
    with pytest.raises(CheckpointError, match=problem):
        load(folder)


def test_a_voice_speaks_in_float32_whatever_the_policy(tmp_path):
    import keras

    folder = save(tmp_path / "voice")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = load(folder).model
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy(before)
    assert {layer.compute_dtype for layer in model.layers} == {"float32"}


def test_a_voice_replaces_the_one_before(tmp_path):
    save(tmp_path / "voice", make_model(0))
    model = make_model(1)
    voice = load(save(tmp_path / "voice", model))
    np.testing.assert_array_equal(voice.model(np.arange(9)), model(np.arange(9)))
    assert os.listdir(tmp_path) == ["voice"]


def test_a_kill_between_the_two_renames_leaves_the_earlier_voice(tmp_path, monkeypatch):
    model = make_model(0)
    save(tmp_path / "voice", model)
    rename = os.rename

    def die_when_putting_in_place(source, target):
        if str(source).endswith(".tmp"):
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", die_when_putting_in_place)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "voice", make_model(1))
    monkeypatch.undo()
    assert not (tmp_path / "voice").exists()
    for path in (tmp_path / "voice", tmp_path):
        np.testing.assert_array_equal(load(path).model(np.arange(9)), model(np.arange(9)))
    save(tmp_path / "voice", make_model(2))
    assert os.listdir(tmp_path) == ["voice"]


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    for folder in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(CheckpointError, match="is not a voice"):
            save(folder)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_where_there_is_no_voice_it_says_what_it_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match="there is no folder .*nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path)
    for name in ("voice.json", "voice/voice.json"):
        assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "speakers.safetensors", "tokenizer.json", "config.yaml"]
)
def test_a_flipped_byte_is_noticed(tmp_path, name):
    file = save(tmp_path / "voice") / name
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} is damaged.*copy the voice anew"):
        load(tmp_path)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "speakers.safetensors", "tokenizer.json", "config.yaml"]
)
def test_a_missing_file_is_named(tmp_path, name):
    (save(tmp_path / "voice") / name).unlink()
    with pytest.raises(CheckpointError, match=f"lacks {name}: copy the voice anew"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content, reason",
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"name": "of another program"}', "does not describe a voice"),
        ('{"format": 3, "myxtts": "9.0"}', "format 3, made by myxtts 9.0, .*install a later one"),
    ],
)
def test_a_foreign_or_future_card_is_rejectd(tmp_path, content, reason):
    (save(tmp_path / "voice") / "voice.json").write_text(content)
    with pytest.raises(CheckpointError, match=reason):
        load(tmp_path)


def test_weights_of_another_model_are_rejectd(tmp_path):
    folder = save(tmp_path / "voice")
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace("n_mels: 6", "n_mels: 7"))
    seal(folder)
    with pytest.raises(CheckpointError, match="mel/kernel .saved as .*4, 6., here .*4, 7."):
        load(folder)
    seal(folder, speakers=["ann"])
    with pytest.raises(CheckpointError, match=r"\[3, 4\] instead of \[1, 4\]"):
        load(folder)


def test_a_broken_config_is_an_error_that_names_it(tmp_path):
    folder = save(tmp_path / "voice")
    (folder / "config.yaml").write_text("model: {")
    seal(folder)
    with pytest.raises(UserError, match="config.yaml.*not valid YAML"):
        load(tmp_path)


def test_checkpoints_import_without_tensorflow():
    command = "import sys, myxtts.checkpoints; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command]).returncode == 0
