"""Graphs of vocoders that are not in `test_istft`, and of published speaker encoders."""

from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from myxtts.export.graphs import speaker_encoder_graph, vocoder_graph
from myxtts.models.onnx.graph import Graph
from myxtts.models.onnx.model import OnnxSpeakerEncoder
from myxtts.models.speaker_encoders import coqui, ecapa
from myxtts.models.speaker_encoders.registry import build_speaker_encoder
from myxtts.models.vocoders.hifigan import HiFiGAN, HiFiGANSettings
from myxtts.models.vocoders.onnx import OnnxVocoder

pytest.importorskip("tf2onnx", reason="tf2onnx is not installed: the extra `export`")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: the extra `speak`")


def test_a_graph_of_hifigan_makes_its_samples():
    settings = HiFiGANSettings(16, (4, 2), (8, 4), 1, (3,), ((1, 3),), n_mels=8)
    model = HiFiGAN(settings)
    model.build((None, None, 8))
    model = model.prepared()
    graph = Graph(vocoder_graph(model).SerializeToString(), Path("vocoder.onnx"))
    exported = OnnxVocoder(graph, "hifigan", 8, 8, settings.context_frames)
    for frames in (1, 5, 40):
        mel = np.random.default_rng(frames).normal(-5, 2, (frames, 8)).astype(np.float32)
        expected, _ = model.generate(mel)
        found, _ = exported.generate(mel)
        np.testing.assert_allclose(found, expected, atol=1e-5)


# Widths, as those of the published sizes take tf2onnx up to 8 GB.
NARROW = {
    "resemblyzer": (),
    "ecapa_tdnn": ((ecapa, "_CHANNELS", 64), (ecapa, "_POOLED", 96)),
    "coqui": ((coqui, "_CHANNELS", (8, 8, 16, 16)), (coqui, "_POOLED", 16 * coqui.BANDS // 8)),
}


@pytest.mark.parametrize("kind", NARROW)
def test_a_graph_of_a_published_encoder_embeds_recordings_as_it_does(kind, monkeypatch):
    for changed in NARROW[kind]:
        monkeypatch.setattr(*changed)
    keras.utils.set_random_seed(3)
    published = SimpleNamespace(speaker_encoder=build_speaker_encoder(kind))
    published.encoder = published.speaker_encoder.network
    graph = Graph(speaker_encoder_graph(published).SerializeToString(), Path("encoder.onnx"))
    times = np.arange(4 * 16000) / 16000
    swept = 0.3 * np.sin(2 * np.pi * (120 + 300 * times) * times)
    recordings = [swept[: int(seconds * 16000)].astype(np.float32) for seconds in (1.7, 4)]
    for recording in recordings:
        found = OnnxSpeakerEncoder(kind, graph).embed(recording, 16000)
        expected = published.speaker_encoder.embed(recording, 16000)
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
