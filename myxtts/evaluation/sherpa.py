"""Recognisers of sherpa-onnx in a local folder: a CTC model, a transducer, or Whisper."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import soxr

from myxtts.errors import UserError
from myxtts.evaluation.asr import Asr, Recording, files_hash
from myxtts.evaluation.extras import import_extra
from myxtts.evaluation.metrics.levels import is_silent
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress

BATCH = 16  # recordings that are decoded together
_LONG_KINDS = ("encoder", "decoder", "joiner")


def is_sherpa_folder(folder: str | os.PathLike) -> bool:
    """Whether a folder holds a model as sherpa-onnx publishes them."""
    path = Path(folder).expanduser()
    return any(path.glob("*tokens.txt")) and any(path.glob("*.onnx"))


class Sherpa(Asr):
    """A model of sherpa-onnx, which decodes recordings in batches on all cores."""

    at_once = BATCH

    def __init__(self, folder: str | os.PathLike, language: str):
        self._folder = Path(folder).expanduser()
        self.name = f"sherpa-onnx {self._folder.resolve().name}"
        self._recognizer = _open(self._folder, language.split("-")[0])

    @property
    def identity(self) -> str:
        """Its weights and the version of what runs them."""
        files = [*self._folder.glob("*.onnx"), *self._folder.glob("*tokens.txt")]
        return f"sherpa-onnx {version('sherpa-onnx')}|{files_hash(files)}"

    def _segments(self, samples: np.ndarray) -> list[str]:
        return self._decode([samples])

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings in batches; silence has no text and is not decoded."""
        texts = [""] * len(recordings)
        heard = [place for place, one in enumerate(recordings) if not is_silent(one[0])]
        for start in range(0, len(heard), BATCH):
            batch = heard[start : start + BATCH]
            found = self._decode([self._resample(*recordings[place]) for place in batch])
            for place, text in zip(batch, found, strict=True):
                texts[place] = text.strip()
            if progress:
                progress(min(start + BATCH, len(heard)), len(heard))
        return texts

    def _resample(self, samples: np.ndarray, sample_rate: int) -> np.ndarray:
        return soxr.resample(np.asarray(samples, np.float32), sample_rate, self.sample_rate)

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
