"""A voice and a vocoder of 24 kHz: trained, saved, resumed and heard, and what does not fit."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from myxtts.checkpoints import CheckpointError, load_voice
from myxtts.checkpoints.vocoders import load_vocoder
from myxtts.config.config import XTTSConfig
from myxtts.config.io import Setting, load_config
from myxtts.config.presets import create_default_config
from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.training.trainer import XTTSTrainer
from myxtts.training.vocoder.trainer import VocoderTrainer
from myxtts.training.warm_start import check_lasting
from myxtts.workflows.finetune import settle
from myxtts.workflows.train import _load_predicting_voice
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import SMALL, assert_equal_states, final_state

PLAN = {"max_steps": 2, "save_interval": 1, "enable_eager_debug": True, "val_fraction": 0.0}
LIGHT = {
    "vocoder_type": "istft",
    "istft_dim": 8,
    "istft_blocks": 1,
    "istft_projections": 1,
    "stage2_max_steps": 2,
    "stage2_batch_size": 2,
    "stage2_max_audio_seconds": 0.15,
}
WIDE = create_default_config(audio="24k").data.audio_spec
BY_FLAG = Setting("24k", "flag --audio")


@pytest.fixture(autouse=True)
def graphs_afterwards():
    yield
    tf.config.run_functions_eagerly(False)


def config(folder: Path, name: str, **settings) -> XTTSConfig:
    """The settings of a run in `folder`, at 24 kHz unless told otherwise."""
    chosen = {"audio": "24k", **SMALL, **PLAN, **settings}
    return create_default_config(
        str(folder / "corpus"), checkpoint_dir=str(folder / name), **chosen
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A corpus of 22,050 Hz, and a run of 24 kHz on it; neither is written to again."""
    folder = tmp_path_factory.mktemp("wide")
    make_corpus(folder / "corpus", 6, seconds=(0.3, 0.5))
    XTTSTrainer(config(folder, "run")).train()
    tf.config.run_functions_eagerly(False)
    return folder


def test_the_run_and_its_voice_have_the_mels_of_the_preset(folder):
    assert load_config(folder / "run" / "config.yaml").data.audio == "24k"
    voice = load_voice(folder / "run")
    assert voice.config.data.audio_spec == WIDE
    assert voice.model.n_mels == 100 and voice.model.mu_head.units == 100


def test_an_interrupted_run_ends_with_the_same_bits(folder):
    XTTSTrainer(config(folder, "resumed", max_steps=1)).train()
    XTTSTrainer(config(folder, "resumed"), resume=True).train()
    assert_equal_states(final_state(folder / "resumed"), final_state(folder / "run"))


def test_a_run_of_one_preset_is_not_resumed_with_another(folder):
    with pytest.raises(UserError) as error:
        XTTSTrainer(config(folder, "run", audio="22k")).prepare_datasets()
    assert str(error.value).splitlines()[1:-1] == [
        "  data.fmax: 12000.0 in the run, 8000.0 now",
        "  data.n_mels: 100 in the run, 80 now",
        "  data.sample_rate: 24000 in the run, 22050 now",
    ]


def test_the_voice_speaks_24_kHz_and_the_same_after_loading(folder, tmp_path):
    speech = [Synthesizer(load_voice(folder / "run")).speak("Hello there.") for _ in range(2)]
    assert speech[0].sample_rate == 24000
    assert len(speech[0].samples) > 0 and np.isfinite(speech[0].samples).all()
    np.testing.assert_array_equal(speech[0].samples, speech[1].samples)


def test_the_command_writes_a_wav_of_24_kHz(folder, tmp_path, capsys):
    from myxtts.cli.main import main

    out = tmp_path / "hello.wav"
    voice = ("--voice", str(folder / "run"))
    assert main(["synthesize", *voice, "--text", "Hello there.", "--output", str(out)]) == 0
    assert soundfile.info(out).samplerate == 24000


def test_a_reference_of_any_rate_is_heard_at_24_kHz(folder):
    voice = load_voice(folder / "run")
    heard = sorted((folder / "corpus" / "wavs").iterdir())[0]
    speech = Synthesizer(voice).speak("Hello there.", reference=heard)
    assert speech.sample_rate == 24000 and len(speech.samples) > 0


def test_an_istft_vocoder_learns_these_mels_and_speaks_for_the_voice(folder):
    VocoderTrainer(config(folder, "vocoder", **LIGHT), folder / "vocoder").train()
    assert load_vocoder(folder / "vocoder").spec == WIDE
    synthesizer = Synthesizer(load_voice(folder / "run"), str(folder / "vocoder"))
    speech = synthesizer.speak("Hello there.")
    assert synthesizer.vocoder.name == "istft"
    assert speech.sample_rate == 24000 and np.isfinite(speech.samples).all()


@pytest.mark.parametrize("name", ["hifigan", "hifigan_universal", "hifigan_ljspeech"])
def test_published_weights_are_refused_before_they_are_asked_for(folder, name, monkeypatch):
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(folder / "nowhere"))
    with pytest.raises(CheckpointError) as error:
        Synthesizer(load_voice(folder / "run"), name)
    assert str(error.value).endswith(
        " was made for other mels (sample_rate 22050 here 24000, n_mels 80 here 100, fmax 8000.0 "
        "here 12000.0): train one for these with `myxtts train-vocoder --audio 24k`, or choose "
        "griffin_lim"
    )


def test_published_weights_are_no_start_for_a_vocoder_of_other_mels(folder, tmp_path):
    settings = {**LIGHT, "vocoder_type": "hifigan", "stage2_from": "hifigan_universal"}
    with pytest.raises(CheckpointError, match="hifigan_universal was made for other mels"):
        VocoderTrainer(config(folder, "other", **settings), tmp_path)


# Going on from a voice.


def test_fine_tuning_refuses_another_preset(folder):
    narrow = XTTSConfig()
    with pytest.raises(UserError) as error:
        check_lasting(narrow, {"data.audio": BY_FLAG})
    assert str(error.value) == (
        "data.sample_rate is 24000 (flag --audio 24k), but the voice was trained with 22050, and "
        "its weights fit nothing else: leave that out, or train a voice from nothing with "
        "`myxtts train`"
    )
    wide = load_voice(folder / "run").config
    with pytest.raises(UserError, match="sample_rate is 22050 .flag --audio 22k.*with 24000"):
        check_lasting(wide, {"data.audio": Setting("22k", "flag --audio")})


def test_fine_tuning_takes_the_preset_of_the_voice(folder, tmp_path):
    voice = load_voice(folder / "run").config
    for asked in ({}, {"data.audio": BY_FLAG}):
        resolved = settle(voice, asked, "the voice", tmp_path)
        assert resolved.config.data.audio == "24k"
        assert resolved.config.data.audio_spec == WIDE
    # The same mels, one by one, from before there were presets.
    spelled = XTTSConfig(sample_rate=24000, n_mels=100, fmax=12000.0)
    assert settle(spelled, {"data.audio": BY_FLAG}, "it", tmp_path).config.data.audio_spec == WIDE


def test_a_run_does_not_start_from_a_voice_of_other_mels(folder, tmp_path):
    settings = config(folder, "narrow", audio="22k")
    with pytest.raises(UserError, match="data.sample_rate is 22050 .*trained with 24000"):
        XTTSTrainer(settings, start=load_voice(folder / "run")).prepare_datasets()


def test_a_vocoder_on_predicted_mels_has_those_of_the_voice(folder, tmp_path):
    _, found = _load_predicting_voice(folder / "run", XTTSConfig())
    assert found.data.audio == "24k" and found.data.audio_spec == WIDE
    narrow = config(folder, "narrow", audio="22k", max_steps=1)
    XTTSTrainer(narrow).train()
    with pytest.raises(UserError, match="audio is 24k, but .*narrow predicts mels of 22,050 Hz"):
        _load_predicting_voice(folder / "narrow", create_default_config(audio="24k"))
