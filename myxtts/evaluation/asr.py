"""Automatic speech recognition (ASR): the text of a recording, by Moonshine or by Whisper."""

import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

import numpy as np
import soxr

from myxtts.audio.io import SILENCE_PEAK
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress

Recording = tuple[np.ndarray, int]  # samples and their rate
WHISPER_FOLDER = "MYXTTS_WHISPER_DIR"  # the variable of the environment that names it
BEAM_SIZE = 5  # of Whisper, as its authors decode for the error rates that they published
# What faster-whisper would otherwise look for on the network, or fail without.
_WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json", "vocabulary.*")


class Asr(Protocol):
    """Transcribes speech."""

    name: str
    at_once: int  # recordings that it transcribes at the same time

    @property
    def identity(self) -> str:
        """What decides about its texts: weights, version and settings."""

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        """Return what is heard in samples [-1, 1] of one sentence or a few."""

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings, each as if it were the only one."""


def asr_for(language: str, model: str | os.PathLike | None = None) -> "Asr | None":
    """Return an ASR for a language, or None where there is none.

    A folder with a Whisper model, given or named by MYXTTS_WHISPER_DIR, goes before all others.
    """
    folder = model or os.environ.get(WHISPER_FOLDER)
    if folder:
        return Whisper(folder, language)
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
    left = took * (len(recordings) - 1) / asr.at_once
    return heard, (
        f"listening to {len(recordings)} recordings with {asr.name}: about "
        f"{_duration(left)} (the first took {took:.1f} s)"
    )


class Moonshine:
    """The tiny English ASR inside the wheel of moonshine-voice, which needs no network."""

    name = "moonshine tiny-en"
    sample_rate = 16000

    def __init__(self):
        self.at_once = available_cores()
        self._idle = SimpleQueue()
        self._idle.put(_open_moonshine())

    @property
    def identity(self) -> str:
        """Its weights and the version of what runs them."""
        from moonshine_voice import get_model_path

        files = [path for path in Path(get_model_path("tiny-en")).iterdir() if path.is_file()]
        return f"{self.name}|{version('moonshine-voice')}|{_files_hash(files)}"

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        """Return what is heard in samples [-1, 1] of one sentence or a few."""
        samples = _audible(samples, sample_rate, self.sample_rate)
        if not len(samples):
            return ""
        transcriber = self._idle.get()  # no two calls may share one: they overwrite each other
        try:
            heard = transcriber.transcribe_without_streaming(samples.tolist(), self.sample_rate)
        finally:
            self._idle.put(transcriber)
        return " ".join(line.text.strip() for line in heard.lines)

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings on all cores; the texts do not depend on how they are shared."""
        heard = []
        workers = max(1, min(self.at_once, len(recordings)))
        while self._idle.qsize() < workers:
            self._idle.put(_open_moonshine())
        with ThreadPoolExecutor(workers) as pool:
            for text in pool.map(lambda recording: self.transcribe(*recording), recordings):
                heard.append(text)
                if progress:
                    progress(len(heard), len(recordings))
        return heard


class Whisper:
    """A Whisper model in a local folder, as CTranslate2 stores it, run by faster-whisper.

    It hears one recording at a time with all cores: the batches of faster-whisper are windows of
    one long recording, and a sentence is a single window.
    """

    sample_rate = 16000
    at_once = 1

    def __init__(self, folder: str | os.PathLike, language: str):
        folder = Path(folder).expanduser()
        self.name = f"whisper {folder.resolve().name}"
        self._folder, self._model = folder, _open_whisper(folder)
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
        ran_by = f"faster-whisper {version('faster-whisper')}, beam {BEAM_SIZE}"
        return f"{ran_by}|{self._language}|{_files_hash(files)}"

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        """Return what is heard in samples [-1, 1]."""
        samples = _audible(samples, sample_rate, self.sample_rate)
        if not len(samples):
            return ""
        segments, _ = self._model.transcribe(
            samples,
            language=self._language,
            beam_size=BEAM_SIZE,
            temperature=0.0,  # others draw words at random where it is unsure
            without_timestamps=True,  # nobody reads them, and each is a token to decode
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)

    def transcribe_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[str]:
        """Transcribe recordings one after the other: each has all cores, or the accelerator."""
        heard = []
        for recording in recordings:
            heard.append(self.transcribe(*recording))
            if progress:
                progress(len(heard), len(recordings))
        return heard


ASRS = {"en": Moonshine}


def _audible(samples: np.ndarray, rate: int, to_rate: int) -> np.ndarray:
    """The samples at another rate; none of silence, of which an ASR makes "you"."""
    samples = np.asarray(samples, np.float32)
    if not len(samples) or np.abs(samples).max() < SILENCE_PEAK:
        return samples[:0]
    return soxr.resample(samples, rate, to_rate)


def _duration(seconds: float) -> str:
    """A time in words, as exact as an estimate is."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _files_hash(paths: Sequence[Path]) -> str:
    """A hash of the contents of files, whatever their order."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with open(path, "rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _open_moonshine():
    # One thread for each transcriber halves its CPU time, and several of them fill the cores.
    os.environ.setdefault("MOONSHINE_ORT_SINGLE_THREAD", "1")
    try:
        from moonshine_voice import ModelArch, Transcriber, get_model_path
    except ImportError as error:
        raise _missing("the ASR moonshine-voice", error) from error
    model = Path(get_model_path("tiny-en"))
    if not model.is_dir():
        raise UserError(
            f"this version of moonshine-voice came without its English model ({model} is not "
            'there); the one that holds it is named by the extra: pip install "myxtts[eval]"'
        )
    # Looking for voice activity carries over from one recording to the next, so that the texts
    # depended on the order; recordings of sentences need no cutting, and err less without it.
    return Transcriber(str(model), ModelArch.TINY, options={"vad_threshold": "0.0"})


def _open_whisper(folder: Path):
    absent = [name for name in _WHISPER_FILES if not any(folder.glob(name))]
    if absent:
        raise UserError(
            f"{folder} is no folder with a Whisper model as faster-whisper reads it: there is no "
            f"{absent[0]} in it; download one, or convert one with ct2-transformers-converter"
        )
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise UserError(
            f"faster-whisper, which runs Whisper, cannot be imported ({error}); install it with "
            "pip install 'myxtts[whisper]'"
        ) from error
    try:
        return WhisperModel(str(folder), cpu_threads=available_cores(), local_files_only=True)
    except Exception as error:  # its tokenizers raise nothing narrower of a broken file
        raise UserError(f"the Whisper model in {folder} cannot be opened: {error}") from error


def _missing(what: str, error: ImportError) -> UserError:
    return UserError(
        f'{what} cannot be imported ({error}); install it with pip install "myxtts[eval]"'
    )
