"""Recognisers of sherpa-onnx, with a stand-in for the package."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.evaluation.asr import BATCH, asr_for
from myxtts.evaluation.sherpa import Sherpa
from myxtts.monitoring.cores import available_cores


class Recognizer:
    """Has the methods of sherpa-onnx 2.0.1 that are called, and notes how."""

    def __init__(self, kind, options):
        self.kind, self.options, self.batches = kind, options, []

    @classmethod
    def from_nemo_ctc(cls, model, tokens, num_threads=1):
        if "broken" in model:
            raise RuntimeError("no protobuf")
        return cls("ctc", {"model": model, "num_threads": num_threads})

    @classmethod
    def from_transducer(cls, encoder, decoder, joiner, tokens, num_threads=1):
        return cls("transducer", {"encoder": encoder, "joiner": joiner})

    @classmethod
    def from_whisper(cls, encoder, decoder, tokens, language="en", num_threads=1):
        return cls("whisper", {"language": language})

    def create_stream(self):
        stream = SimpleNamespace(result=SimpleNamespace(text=""))

        def accept(rate, wave):
            stream.result.text = f" {rate} {len(wave)} "

        stream.accept_waveform = accept
        return stream

    def decode_streams(self, streams):
        self.batches.append(len(streams))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    module = ModuleType("sherpa_onnx")
    module.OfflineRecognizer = Recognizer
    monkeypatch.setitem(sys.modules, "sherpa_onnx", module)
    (tmp_path / "tokens.txt").write_text("a 0\n")
    return tmp_path


def test_a_folder_with_tokens_is_opened_as_what_its_files_are(folder):
    (folder / "model.onnx").touch()
    (folder / "model.int8.onnx").touch()
    asr = asr_for("fa", folder)
    assert isinstance(asr, Sherpa) and asr._recognizer.kind == "ctc"
    assert asr._recognizer.options["model"].endswith("model.int8.onnx")
    assert asr._recognizer.options["num_threads"] == available_cores()
    for name in ("encoder.onnx", "decoder.onnx"):
        (folder / name).touch()
    assert asr_for("zh-cn", folder)._recognizer.options == {"language": "zh"}
    (folder / "joiner.onnx").touch()
    assert asr_for("fa", folder)._recognizer.kind == "transducer"


def test_recordings_are_decoded_in_batches_and_silence_is_not(folder):
    (folder / "model.onnx").touch()
    asr = asr_for("fa", folder)
    noise = np.random.default_rng(1).normal(0, 0.1, 8000)
    done = []
    speech = [(noise, 8000)] * (BATCH + 1)
    heard = asr.transcribe_many([*speech, (np.zeros(8000), 8000)], lambda *n: done.append(n))
    assert heard == ["16000 16000"] * (BATCH + 1) + [""]
    assert asr._recognizer.batches == [BATCH, 1] and done[-1] == (BATCH + 1, BATCH + 1)
    assert asr.transcribe(noise, 8000) == "16000 16000"


def test_a_broken_model_is_named(folder):
    (folder / "broken.onnx").touch()
    with pytest.raises(UserError, match="cannot be opened: no protobuf"):
        asr_for("fa", folder)
