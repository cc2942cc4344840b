"""What a recogniser hears in speech, and how far that is from what was to be said."""

import os
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import soxr

from myxtts.audio.io import SILENCE_PEAK
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores
from myxtts.text.cleaners import normalise

Recording = tuple[np.ndarray, int]  # samples and their rate
Progress = Callable[[int, int], None]


def recogniser_for(language: str) -> "Moonshine | None":
    """Return a recogniser of a language, or None where there is none."""
    build = RECOGNISERS.get(language)
    return build() if build else None


class Moonshine:
    """The tiny English recogniser inside the wheel of moonshine-voice, which needs no network."""

    name = "moonshine tiny-en"
    sample_rate = 16000

    def __init__(self):
        self._idle = SimpleQueue()
        self._idle.put(_open_moonshine())

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        """Return what is heard in samples [-1, 1] of one sentence or a few."""
        samples = np.asarray(samples, np.float32)
        # The recogniser would hear "you" in silence.
        if not len(samples) or np.abs(samples).max() < SILENCE_PEAK:
            return ""
        samples = soxr.resample(samples, sample_rate, self.sample_rate)
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
        workers = max(1, min(available_cores(), len(recordings)))
        while self._idle.qsize() < workers:
            self._idle.put(_open_moonshine())
        with ThreadPoolExecutor(workers) as pool:
            for text in pool.map(lambda recording: self.transcribe(*recording), recordings):
                heard.append(text)
                if progress:
                    progress(len(heard), len(recordings))
        return heard


RECOGNISERS = {"en": Moonshine}


@dataclass(frozen=True, slots=True)
class SentenceErrors:
    """A sentence as both sides were compared, and how many of its words are wrong."""

    said: str
    heard: str
    words: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Word and character error rates over all sentences, and the count of each kind of error."""

    wer: float
    cer: float
    words: int
    substitutions: int
    deletions: int
    insertions: int
    sentences: tuple[SentenceErrors, ...]

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


def error_rates(
    references: Sequence[str], hypotheses: Sequence[str], language: str = "en"
) -> ErrorRates:
    """Compare what was said with what was heard, both as plain words; hearing nothing deletes."""
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")
    said = [plain_words(text, language) for text in references]
    heard = [plain_words(text, language) for text in hypotheses]
    if not all(said) or not said:
        empty = [text for text, words in zip(references, said, strict=True) if not words]
        which = f"{empty[0]!r} has none" if empty else "there is no reference"
        raise UserError(f"error rates need references with words in them: {which}")
    jiwer = _import_jiwer()
    result = jiwer.process_words(said, heard)
    return ErrorRates(
        wer=result.wer,
        cer=jiwer.process_characters(said, heard).cer,
        words=sum(map(len, result.references)),
        substitutions=result.substitutions,
        deletions=result.deletions,
        insertions=result.insertions,
        sentences=tuple(map(_sentence_errors, said, heard, result.alignments)),
    )


def plain_words(text: str, language: str) -> str:
    """Return the words alone: lower case, numbers spoken, without punctuation or apostrophes.

    Spellings are left as they are: "grey" and "gray" differ.
    """
    spoken = normalise(text, language).replace("'", "").replace("\u200c", "")
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in spoken)
    return " ".join("".join(kept).split())


def _sentence_errors(said: str, heard: str, alignment: Sequence) -> SentenceErrors:
    counts = {"equal": 0, "substitute": 0, "delete": 0, "insert": 0}
    for chunk in alignment:
        said_words = chunk.ref_end_idx - chunk.ref_start_idx
        heard_words = chunk.hyp_end_idx - chunk.hyp_start_idx
        counts[chunk.type] += max(said_words, heard_words)
    words = len(said.split())
    return SentenceErrors(
        said, heard, words, counts["substitute"], counts["delete"], counts["insert"]
    )


def _open_moonshine():
    # One thread for each recogniser halves its CPU time, and several of them fill the cores.
    os.environ.setdefault("MOONSHINE_ORT_SINGLE_THREAD", "1")
    try:
        from moonshine_voice import ModelArch, Transcriber, get_model_path
    except ImportError as error:
        raise _missing("the recogniser moonshine-voice", error) from error
    model = Path(get_model_path("tiny-en"))
    if not model.is_dir():
        raise UserError(
            f"this version of moonshine-voice came without its English model ({model} is not "
            'there); the one that holds it is named by the extra: pip install "myxtts[eval]"'
        )
    # Looking for voice activity carries over from one recording to the next, so that the texts
    # depended on the order; recordings of sentences need no cutting, and err less without it.
    return Transcriber(str(model), ModelArch.TINY, options={"vad_threshold": "0.0"})


def _import_jiwer():
    try:
        import jiwer
    except ImportError as error:
        raise _missing("jiwer, which counts errors,", error) from error
    return jiwer


def _missing(what: str, error: ImportError) -> UserError:
    return UserError(
        f'{what} cannot be imported ({error}); install it with pip install "myxtts[eval]"'
    )
