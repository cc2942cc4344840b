"""Graphs of vocoders that are not in `test_istft`."""

from pathlib import Path

import numpy as np
import pytest

from myxtts.export.graphs import vocoder_graph
from myxtts.models.onnx.graph import Graph
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
