"""Automatic speech recognition (ASR): the text of a recording, by Moonshine or by Whisper."""

import hashlib
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import soxr

from myxtts.errors import UserError
from myxtts.evaluation.extras import import_extra
from myxtts.evaluation.metrics.levels import is_silent
from myxtts.monitoring.cores import available_cores, map_on_cores
from myxtts.monitoring.progress import Progress

Recording = tuple[np.ndarray, int]  # samples and their rate
WHISPER_FOLDER = "MYXTTS_WHISPER_DIR"  # the environment variable that names it
BATCH = 16  # recordings that are decoded together
_WINDOW = 30  # seconds that Whisper hears at once
_SEEKS = 100  # its frames per second
BEAM_SIZE = 5  # as in the published error rates of Whisper
# Without them, faster-whisper would look on the network, or fail.
_WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json", "vocabulary.*")


class Asr(ABC):
    """Transcribes speech."""

    name: str
    at_once: int  # recordings that are transcribed together
    sample_rate = 16000

    @property
    def in_parallel(self) -> int:
        """How many recordings take the time of one."""
        return self.at_once

    @property
    @abstractmethod
    def identity(self) -> str:
        """What its texts depend on: weights, version and settings."""

    @abstractmethod
    def _segments(self, samples: np.ndarray) -> Iterable[str]:
        """The texts of the parts of a recording at its own sample rate."""

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        """Return the text of samples [-1, 1] of one sentence or a few."""
        samples = np.asarray(samples, np.float32)
        if is_silent(samples):  # an ASR would transcribe silence as "you"
            return ""
        resampled = soxr.resample(samples, sample_rate, self.sample_rate)
        return " ".join(text.strip() for text in self._segments(resampled))

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings independently of each other."""
        return map_on_cores(lambda one: self.transcribe(*one), recordings, progress, self.at_once)


class BatchAsr(Asr):
    """Transcribes several recordings together, on all cores."""

    at_once = BATCH
    in_parallel = 1  # a batch takes at most the time of its recordings one by one

    @abstractmethod
    def _decode(self, waves: list[np.ndarray]) -> list[str]:
        """The texts of recordings at its own sample rate."""

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


def asr_for(language: str, model: str | os.PathLike | None = None) -> "Asr | None":
    """Return an ASR for a language, or None where there is none.

    The folder of a Whisper model or one of sherpa-onnx, given or named by MYXTTS_WHISPER_DIR, takes
    precedence.
    """
    folder = model or os.environ.get(WHISPER_FOLDER)
    if folder:
        from myxtts.evaluation.sherpa import Sherpa, is_sherpa_folder  # it builds on this module

        return (Sherpa if is_sherpa_folder(folder) else Whisper)(folder, language)
    build = ASRS.get(language)
    return build() if build else None


def time_first(
    asr: Asr,
    recordings: Sequence[Recording],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[str], str]:
    """Transcribe the first of some recordings; also estimate how long the others will take."""
    began = clock()
    heard = asr.transcribe_many(recordings[:1])
    took = clock() - began
    left = took * (len(recordings) - 1) / asr.in_parallel
    return heard, (
        f"listening to {len(recordings)} recordings with {asr.name}: about "
        f"{_duration(left)} (the first took {took:.1f} s)"
    )


class Moonshine(Asr):
    """The tiny English ASR inside the wheel of moonshine-voice, which needs no network."""

    name = "moonshine tiny-en"

    def __init__(self):
        self.at_once = available_cores()
        self._idle = SimpleQueue()
        self._idle.put(_open_moonshine())

    @property
    def identity(self) -> str:
        """Its weights and the version of what runs them."""
        from moonshine_voice import get_model_path

        files = [path for path in Path(get_model_path("tiny-en")).iterdir() if path.is_file()]
        return f"{self.name}|{version('moonshine-voice')}|{files_hash(files)}"

    def _segments(self, samples: np.ndarray) -> list[str]:
        transcriber = self._idle.get()  # two calls would overwrite each other's state
        try:
            heard = transcriber.transcribe_without_streaming(samples.tolist(), self.sample_rate)
        finally:
            self._idle.put(transcriber)
        return [line.text for line in heard.lines]

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings on all cores; the texts do not depend on their number."""
        while self._idle.qsize() < min(self.at_once, len(recordings)):
            self._idle.put(_open_moonshine())
        return super().transcribe_many(recordings, progress)


class Whisper(BatchAsr):
    """A Whisper model in a local folder, as CTranslate2 stores it, run by faster-whisper.

    faster-whisper batches clips of one recording, so recordings are put one after another.
    """

    def __init__(self, folder: str | os.PathLike, language: str):
        folder = Path(folder).expanduser()
        self.name = f"whisper {folder.resolve().name}"
        self._folder = folder
        self._model, self._batched = _open_whisper(folder)
        self._language = language.split("-")[0]  # it knows Chinese as zh
        if self._language not in self._model.supported_languages:
            known = ", ".join(self._model.supported_languages)
            raise UserError(
                f"the Whisper model in {folder} does not know the language {language!r}, only "
                f"{known}: give the folder of one that does"
            )

    @property
    def identity(self) -> str:
        """Its weights, the version of what runs them, the language and the settings."""
        files = [path for name in _WHISPER_FILES for path in self._folder.glob(name)]
        ran_by = f"faster-whisper {version('faster-whisper')}, beam {BEAM_SIZE}, in batches"
        return f"{ran_by}|{self._language}|{files_hash(files)}"

    def _decode(self, waves: list[np.ndarray]) -> list[str]:
        most = _WINDOW * self.sample_rate
        texts = [self._read_long(wave) if len(wave) > most else "" for wave in waves]
        clips, parts, owners = [], [], {}
        second = 0  # each recording begins at a whole one
        for place, wave in enumerate(waves):
            if 0 < len(wave) <= most:
                seconds = math.ceil(len(wave) / self.sample_rate)
                clips.append({"start": second, "end": second + len(wave) / self.sample_rate})
                parts.append(np.pad(wave, (0, seconds * self.sample_rate - len(wave))))
                owners[second] = place
                second += seconds
        if clips:
            options = {"clip_timestamps": clips, "batch_size": BATCH, "vad_filter": False}
            segments, _ = self._batched.transcribe(
                np.concatenate(parts), **options, **self._options()
            )
            for segment in segments:
                texts[owners[segment.seek // _SEEKS]] += segment.text
        return texts

    def _read_long(self, samples: np.ndarray) -> str:
        segments, _ = self._model.transcribe(samples, **self._options())
        return " ".join(segment.text.strip() for segment in segments)

    def _options(self) -> dict[str, object]:
        return {
            "language": self._language,
            "beam_size": BEAM_SIZE,
            "temperature": 0.0,  # higher ones sample words at random
            "without_timestamps": True,  # unused, and each is a token to decode
            "condition_on_previous_text": False,
        }


ASRS = {"en": Moonshine}


def _duration(seconds: float) -> str:
    """A duration in words, rounded as an estimate."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def files_hash(paths: Sequence[Path]) -> str:
    """A hash of the contents of files, in any order."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with open(path, "rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _open_moonshine():
    # One thread per transcriber halves its CPU time, and several transcribers fill the cores.
    os.environ.setdefault("MOONSHINE_ORT_SINGLE_THREAD", "1")
    moonshine = import_extra("moonshine_voice", "the ASR moonshine-voice")
    model = Path(moonshine.get_model_path("tiny-en"))
    if not model.is_dir():
        raise UserError(
            f"this version of moonshine-voice came without its English model ({model} is not "
            'there); the one that holds it is named by the extra: pip install "myxtts[eval]"'
        )
    # Voice activity detection keeps state between recordings, so texts would depend on the order.
    # Recordings of sentences need no cutting, and have fewer errors without it.
    options = {"vad_threshold": "0.0"}
    return moonshine.Transcriber(str(model), moonshine.ModelArch.TINY, options=options)


def _open_whisper(folder: Path):
    absent = [name for name in _WHISPER_FILES if not any(folder.glob(name))]
    if absent:
        raise UserError(
            f"{folder} is no folder with a Whisper model as faster-whisper reads it: there is no "
            f"{absent[0]} in it; download one, or convert one with ct2-transformers-converter"
        )
    package = import_extra("faster_whisper", "faster-whisper, which runs Whisper,", "whisper")
    try:
        threads = available_cores()
        model = package.WhisperModel(str(folder), cpu_threads=threads, local_files_only=True)
        return model, package.BatchedInferencePipeline(model)
    except Exception as error:  # its tokenizers raise nothing narrower for a broken file
        raise UserError(f"the Whisper model in {folder} cannot be opened: {error}") from error
