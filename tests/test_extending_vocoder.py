"""A new vocoder is one file and one row: this file is the file, and its fixture adds the row."""

from dataclasses import asdict
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints.vocoders import load_vocoder
from myxtts.cli.main import main
from myxtts.config.config import AudioSpec, ConfigError, XTTSConfig
from myxtts.config.vocoders import VOCODERS, VocoderRow
from myxtts.inference.synthesizer import Synthesizer
from myxtts.models.layers import serialisable
from myxtts.models.vocoders.base import Size
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.models.vocoders.registry import vocoder_class
from myxtts.training.vocoder.trainer import VocoderTrainer
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config
from tests.helpers.tiny_vocoder import voiced_mel


@serialisable
class ToyVocoder(NeuralVocoder):
    """A matrix from the bands of a frame to its samples."""

    kind = "toy"
    context_frames = 0

    def __init__(self, spec: dict, **kwargs):
        super().__init__(**kwargs)
        self.settings, self.spec = {"spec": spec}, AudioSpec(**spec)
        self.hop, self.n_mels = self.spec.hop_length, self.spec.n_mels
        self.project = keras.layers.Dense(self.hop, name="project")

    @classmethod
    def settings_from(cls, config, spec):
        return {"spec": asdict(spec)}

    @classmethod
    def check_settings(cls, settings, spec):
        return Size(spec.n_mels * spec.hop_length, 1)

    @classmethod
    def from_settings(cls, settings):
        return cls(**settings, name=cls.kind)

    def build(self, mel_shape):
        self.project.build((None, None, self.n_mels))

    def call(self, mel):
        frames = 0.01 * self.project(mel)
        return tf.reshape(frames, [tf.shape(mel)[0], -1])


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setitem(VOCODERS, "toy", VocoderRow("Toy", f"{__name__}:ToyVocoder"))
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("verb", ["train-vocoder", "synthesize"])
def test_settings_and_help_offer_the_row(verb, capsys):
    assert XTTSConfig(vocoder_type="toy").model.vocoder_type == "toy"
    with pytest.raises(ConfigError, match="one of griffin_lim, istft, hifigan, toy"):
        XTTSConfig(vocoder_type="toi")
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "toy" in capsys.readouterr().out


def test_the_row_is_trained_saved_loaded_and_speaks(tmp_path):
    corpus = make_corpus(tmp_path / "corpus", 6, speakers=2, seconds=(0.3, 0.4))
    settings = {"stage2_max_steps": 2, "stage2_batch_size": 4, "stage2_max_audio_seconds": 0.15}
    config = run_config(
        corpus, tmp_path / "run", vocoder_type="toy", enable_eager_debug=True, **settings
    )
    trainer = VocoderTrainer(config, tmp_path / "run")
    before = trainer.model.project.kernel.numpy()
    assert trainer.train() == "finished" and not trainer.is_adversarial
    assert VocoderTrainer(config, tmp_path / "run", resume=True).train() == "finished"

    found = load_vocoder(tmp_path / "run")
    np.testing.assert_array_equal(found.model.project.kernel, trainer.model.project.kernel)
    assert found.kind == "toy" and np.abs(found.model.project.kernel - before).max() > 0

    voice = SimpleNamespace(config=config, folder=tmp_path / "run" / "voice", engine="keras")
    vocoder = Synthesizer(voice, "toy").vocoder
    mel = voiced_mel(12)[0]
    expected = found.model(mel[None])[0]
    assert vocoder.name == "toy"
    np.testing.assert_allclose(vocoder(mel, found.spec, 0), expected, atol=1e-6)
    streamed = np.concatenate(list(vocoder.stream([mel[:5], mel[5:]])))
    np.testing.assert_allclose(streamed, expected, atol=1e-6)


@pytest.mark.parametrize("kind", list(VOCODERS))
def test_every_row_names_its_class(kind):
    assert vocoder_class(kind).kind == kind
