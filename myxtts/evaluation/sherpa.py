"""Recognisers of sherpa-onnx in a local folder: a CTC model, a transducer, or Whisper."""

import os
from importlib.metadata import version
from pathlib import Path

import numpy as np

from myxtts.errors import UserError
from myxtts.evaluation.asr import BatchAsr, files_hash
from myxtts.evaluation.extras import import_extra
from myxtts.monitoring.cores import available_cores

_LONG_KINDS = ("encoder", "decoder", "joiner")


def is_sherpa_folder(folder: str | os.PathLike) -> bool:
    """Whether a folder holds a model as sherpa-onnx publishes them."""
    path = Path(folder).expanduser()
    return any(path.glob("*tokens.txt")) and any(path.glob("*.onnx"))


class Sherpa(BatchAsr):
    """A model of sherpa-onnx, which decodes recordings in batches on all cores."""

    def __init__(self, folder: str | os.PathLike, language: str):
        self._folder = Path(folder).expanduser()
        self.name = f"sherpa-onnx {self._folder.resolve().name}"
        self._recognizer = _open(self._folder, language.split("-")[0])

    @property
    def identity(self) -> str:
        """Its weights and the version of what runs them."""
        files = [*self._folder.glob("*.onnx"), *self._folder.glob("*tokens.txt")]
        return f"sherpa-onnx {version('sherpa-onnx')}|{files_hash(files)}"

    def _decode(self, waves: list[np.ndarray]) -> list[str]:
        streams = []
        for wave in waves:
            stream = self._recognizer.create_stream()
            stream.accept_waveform(self.sample_rate, wave)
            streams.append(stream)
        self._recognizer.decode_streams(streams)
        return [stream.result.text for stream in streams]


def _open(folder: Path, language: str):
    """Open whatever model the files of a folder are."""
    package = import_extra("sherpa_onnx", "sherpa-onnx, which runs this recogniser,", "sherpa")
    build = package.OfflineRecognizer
    tokens, threads = str(next(folder.glob("*tokens.txt"))), available_cores()
    parts = {kind: _find(folder, kind) for kind in _LONG_KINDS}
    try:
        if parts["joiner"]:
            return build.from_transducer(**parts, tokens=tokens, num_threads=threads)
        if parts["encoder"] and parts["decoder"]:
            del parts["joiner"]
            options = {"tokens": tokens, "language": language, "num_threads": threads}
            return build.from_whisper(**parts, **options)
        model = _find(folder, "")
        return build.from_nemo_ctc(model=model, tokens=tokens, num_threads=threads)
    except Exception as error:  # the package raises nothing narrower for a broken file
        raise UserError(f"the sherpa-onnx model in {folder} cannot be opened: {error}") from error


def _find(folder: Path, kind: str) -> str | None:
    """The file of a part of a model; quantised weights are taken where both are there."""
    found = sorted(path for path in folder.glob("*.onnx") if kind in path.name)
    quantised = [path for path in found if "int8" in path.name]
    return str((quantised or found)[0]) if found else None
