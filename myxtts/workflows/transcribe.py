"""Texts for the clips of a corpus that have none, by a recogniser; resumable.

Texts go to `metadata.csv`, to which lines are only ever added: what somebody has written, changed
or removed there stays so. What was heard goes to `transcription.csv`, with what looks wrong.
"""

import csv
import io
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soxr

from myxtts.atomic import alone, explained, write
from myxtts.audio.io import AudioError, read_audio
from myxtts.data.corpus.metadata_files import TRANSCRIPTION_FILE
from myxtts.data.corpus.recordings import Recordings, without_extension
from myxtts.data.corpus.table_columns import header_roles
from myxtts.errors import UserError
from myxtts.files import read_regular
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.evaluation.asr import Asr

METADATA, WAVS = "metadata.csv", "wavs"
LOCK = ".metadata.lock"  # held by whoever changes lines of the metadata
NOTHING_HEARD, TOO_SLOW, TOO_FAST = "nothing heard", "few characters", "many characters"
HEARD_OTHERWISE = "heard otherwise a second time"
SAVE_SECONDS = 5.0
_FEWEST_TO_COMPARE = 8  # clips whose rate of speech says what is usual
_USUAL_FACTOR = 1.8  # between the median rate and what is unusual
_SECOND_SPEED = 1.1  # at which a clip is heard the second time
_SURE = 0.9  # from which two transcripts count as the same


@dataclass(frozen=True, slots=True)
class Heard:
    """What a recogniser heard in a clip, and what is suspicious about it."""

    clip: str
    seconds: float
    recogniser: str
    text: str
    characters_per_second: float
    suspicious: str = ""
    confidence: float | None = None  # how far it agrees with what is heard a tenth faster


@dataclass(frozen=True, slots=True)
class Transcribed:
    """What a call did, and what is in the corpus now."""

    corpus: Path
    clips: int
    written: int
    kept: int  # texts that were there
    removed: int  # clips whose lines somebody has removed
    suspicious: tuple[Heard, ...]
    failed: tuple[AudioError, ...]

    def summary(self) -> str:
        """How many texts there are, and which to look at."""
        lines = [
            f"{self.corpus / METADATA}: {self.written + self.kept:,} texts of {self.clips:,} clips "
            f"({self.written:,} written now, {self.kept:,} were there and are unchanged)"
        ]
        if self.removed:
            lines.append(f"  {self.removed:,} clips were removed from it by hand and stay so")
        if self.suspicious:
            lines.append(
                f"  {len(self.suspicious):,} to listen to, listed in {TRANSCRIPTION_FILE}:"
            )
            for one in self.suspicious[:5]:
                detail = f"{one.characters_per_second:.1f} characters/s"
                if one.suspicious == HEARD_OTHERWISE:
                    detail = f"confidence {one.confidence:.0%}"
                lines.append(f"    {one.clip}: {one.suspicious} ({detail}): {one.text[:60]!r}")
        return "\n".join(lines)


def transcribe_corpus(
    corpus: str | os.PathLike[str],
    language: str = "en",
    asr_model: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    with_confidence: bool = False,
) -> Transcribed:
    """Write a text for every clip that has none and was not heard before.

    A clip that was heard, and has no line any more, was removed by somebody. A confidence takes as
    long again.
    """
    corpus = Path(corpus).expanduser()
    paths = find_clips(corpus)
    ledger = _Ledger(corpus, paths)
    failed: list[AudioError] = []
    if any(map(ledger.is_missing, paths)):
        asr = _find_asr(language, asr_model)
        missing = {clip: path for clip, path in paths.items() if ledger.is_missing(clip, asr.name)}
        failed = _transcribe(asr, missing, ledger, clock, with_confidence)
    return ledger.result(failed)


def _transcribe(
    asr: "Asr",
    paths: Mapping[str, Path],
    ledger: "_Ledger",
    clock: Callable[[], float],
    with_confidence: bool,
) -> list[AudioError]:
    """Transcribe clips, as many at a time as the recogniser can; save now and then, and at last."""
    failed: list[AudioError] = []
    clips, saved, seconds = list(paths), clock(), 0.0
    try:
        with progress("transcribing", "clips") as report:
            for start in range(0, len(clips), asr.at_once):
                samples = {}
                for clip in clips[start : start + asr.at_once]:
                    try:
                        samples[clip] = read_audio(paths[clip], asr.sample_rate)
                    except AudioError as error:
                        failed.append(error)
                waves = list(samples.values())
                texts = asr.transcribe_many([(one, asr.sample_rate) for one in waves])
                sure = _confidences(asr, waves, texts) if with_confidence else [None] * len(texts)
                for (clip, one), text, share in zip(samples.items(), texts, sure, strict=True):
                    ledger.add(clip, len(one) / asr.sample_rate, asr.name, text, share)
                    seconds += len(one) / asr.sample_rate
                report(min(start + asr.at_once, len(clips)), len(clips), seconds)
                if clock() - saved >= SAVE_SECONDS:
                    ledger.save()
                    saved = clock()
    finally:  # Ctrl-C too
        ledger.save()
    return failed


def _confidences(
    asr: "Asr", waves: Sequence[np.ndarray], texts: Sequence[str]
) -> list[float | None]:
    """How far each text agrees with what is heard when the clip is played a tenth faster.

    The recognisers give no confidence of their own without other weights. One that is sure hears
    the same twice.
    """
    rate = asr.sample_rate
    faster = [soxr.resample(one, rate, rate / _SECOND_SPEED).astype(np.float32) for one in waves]
    again = asr.transcribe_many([(one, rate) for one in faster])
    return [agreement(*pair) if pair[0] else None for pair in zip(texts, again, strict=True)]


def agreement(first: str, second: str) -> float:
    """The share of the letters and digits of two texts that they have in common, in order."""
    plain = ("".join(filter(str.isalnum, text.casefold())) for text in (first, second))
    return round(SequenceMatcher(None, *plain, autojunk=False).ratio(), 3)


class _Ledger:
    """The texts of a corpus: those in its metadata, and what was heard."""

    def __init__(self, corpus: Path, paths: Mapping[str, Path]):
        self._corpus, self._paths = corpus, paths
        self._has_metadata = (corpus / METADATA).exists()
        self._texts = read_texts(corpus / METADATA)
        self._kept = sum(1 for clip in paths if self._texts.get(clip))
        self._heard = read_heard(corpus / TRANSCRIPTION_FILE)
        self._new: list[Heard] = []  # whose texts are not in the metadata yet
        self._written = 0

    def is_missing(self, clip: str, recogniser: str | None = None) -> bool:
        """Whether a clip wants a text; what one recogniser has not heard another one may."""
        if clip in self._texts:  # an emptied line is somebody's decision too
            return False
        before = self._heard.get(clip)
        if before is None or not self._has_metadata:
            return True
        return not before.text and before.recogniser != recogniser

    def add(
        self, clip: str, seconds: float, recogniser: str, text: str, confidence: float | None = None
    ) -> None:
        text = " ".join(text.replace("|", " ").split())
        rate = _rate(text, seconds)
        heard = Heard(clip, round(seconds, 3), recogniser, text, rate, confidence=confidence)
        self._heard[clip] = heard
        self._new.append(self._heard[clip])

    def save(self) -> None:
        """Add lines to what the metadata hold now, then write the table.

        In this order: a clip in the table without a line counts as removed by somebody.
        """
        if not self._new:
            return
        spoken = [one for one in self._new if one.text]
        if spoken:
            with alone(self._corpus / LOCK):
                self._written += _add_lines(self._corpus / METADATA, spoken)
        _write_heard(self._corpus / TRANSCRIPTION_FILE, judge(self._heard))
        self._new = []

    def result(self, failed: Iterable[AudioError]) -> Transcribed:
        texts = read_texts(self._corpus / METADATA)
        removed = [
            clip
            for clip, one in self._heard.items()
            if one.text and clip in self._paths and clip not in texts
        ]
        # A text that was corrected is not suspicious any more.
        judged = judge(self._heard).values()
        doubtful = [one for one in judged if one.suspicious and _stands(one, texts)]
        return Transcribed(
            self._corpus,
            len(self._paths),
            self._written,
            self._kept,
            len(removed),
            tuple(doubtful),
            tuple(failed),
        )


def judge(heard: Mapping[str, Heard]) -> dict[str, Heard]:
    """Flag clips without text, and those whose rate of speech is far from the median.

    A text with far fewer or more characters per second than usual has often lost or made up words.
    Where a clip was heard twice, so is one that was heard otherwise.
    """
    rates = [one.characters_per_second for one in heard.values() if one.text]
    usual = statistics.median(rates) if len(rates) >= _FEWEST_TO_COMPARE else None
    return {clip: replace(one, suspicious=_suspicion(one, usual)) for clip, one in heard.items()}


def _suspicion(one: Heard, usual: float | None) -> str:
    if not one.text:
        return NOTHING_HEARD
    if usual is not None and one.characters_per_second < usual / _USUAL_FACTOR:
        return TOO_SLOW
    if usual is not None and one.characters_per_second > usual * _USUAL_FACTOR:
        return TOO_FAST
    return HEARD_OTHERWISE if one.confidence is not None and one.confidence < _SURE else ""


def _stands(one: Heard, texts: Mapping[str, str]) -> bool:
    """Whether what was heard is still the text, or there is none."""
    return texts.get(one.clip, "") == one.text


def _rate(text: str, seconds: float) -> float:
    return round(len(text) / max(seconds, 1e-3), 2)


def find_clips(corpus: Path) -> dict[str, Path]:
    """The recordings in `wavs/` by id, in order."""
    folder = corpus / WAVS
    if not folder.is_dir():
        raise UserError(
            f"there is no folder {folder} with clips: name a corpus in the layout of LJSpeech, as "
            "`myxtts data slice` makes it"
        )
    home = os.path.abspath(folder)
    recordings = Recordings([home])
    found = {stem[len(home) + 1 :]: recordings.find_bare(stem) for stem in recordings.stems()}
    if not found:
        raise UserError(f"there is no clip in {folder}: `myxtts data slice` makes them")
    return {clip: Path(path) for clip, path in found.items() if path}


def _find_asr(language: str, model: str | None) -> "Asr":
    from myxtts.evaluation.asr import WHISPER_FOLDER, asr_for

    asr = asr_for(language, model)
    if asr is None:
        raise UserError(
            f"there is no recogniser for {language!r}: name the folder of a Whisper or sherpa-onnx "
            f"model with --asr-model or {WHISPER_FOLDER}, or write {METADATA} yourself, in lines "
            "such as id|text"
        )
    return asr


def read_texts(path: Path) -> dict[str, str]:
    """The texts by id, of a table without header that is `id|text` or `id|raw|normalised`."""
    texts = {}
    for row in read_rows(path):
        texts[without_extension(row[0].strip())] = next(
            (field.strip() for field in reversed(row[1:]) if field.strip()), ""
        )
    return texts


def read_rows(path: Path) -> list[list[str]]:
    try:
        text = read_regular(path).decode("utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as UTF-8 ({error}): save it so") from error
    rows = [line.rstrip("\r").split("|") for line in text.split("\n") if line.strip()]
    wrong = next((row for row in rows if not 2 <= len(row) <= 3), None)
    if wrong or (rows and header_roles(rows[0])):
        line = "|".join(wrong or rows[0])
        raise UserError(
            f"{path} is not in the layout of LJSpeech, lines of id|text or id|raw|normalised "
            f"without a header, so no text is added to it. A line of it is {line[:80]!r}"
        )
    return rows


def _add_lines(path: Path, heard: Sequence[Heard]) -> int:
    """Add texts to a table as it is now, unless somebody has written one; return how many."""
    rows = read_rows(path)
    there = {without_extension(row[0].strip()) for row in rows}
    width = len(rows[0]) if rows else 3
    new = [one for one in heard if one.clip not in there]
    content = read_regular(path) if path.exists() else b""
    if content and not content.endswith(b"\n"):
        content += b"\n"
    lines = ["|".join([one.clip, *[one.text] * (width - 1)]) + "\n" for one in new]
    with explained(path, kept="texts that were written before are kept"):
        write(path, content + "".join(lines).encode())
    return len(new)


def _write_heard(path: Path, heard: Mapping[str, Heard]) -> None:
    table = io.StringIO()
    rows = csv.DictWriter(table, [one.name for one in fields(Heard)], lineterminator="\n")
    rows.writeheader()
    rows.writerows(asdict(heard[clip]) for clip in sorted(heard))
    with explained(path, kept="texts that were written before are kept"):
        write(path, table.getvalue().encode(), alone=True)


def read_heard(path: Path) -> dict[str, Heard]:
    """What was heard by earlier calls; a table that cannot be read is an error."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_regular(path).decode("utf-8"), newline="")))
        found = [
            Heard(
                row["clip"],
                float(row["seconds"]),
                row["recogniser"],
                row["text"],
                float(row["characters_per_second"]),
                # Tables of earlier versions have none.
                confidence=float(row["confidence"]) if row.get("confidence") else None,
            )
            for row in rows
        ]
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({error}): restore it, or remove it, and every clip without a "
            f"line in {METADATA} is transcribed"
        ) from error
    return {one.clip: one for one in found}
