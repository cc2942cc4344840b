"""Books into speech: one recording for each chapter, resumable, with a playlist."""

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.atomic import explained, write
from myxtts.audio.encode import FORMATS, encode_audio
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, read_document
from myxtts.errors import UserError
from myxtts.files import read_regular
from myxtts.inference.speech import Sentence
from myxtts.inference.synthesizer import Synthesizer
from myxtts.monitoring.progress import Progress, progress
from myxtts.text.book import Book, Chapter, read_book
from myxtts.text.lexicon import Lexicon
from myxtts.workflows.synthesize import Load, Spoken, check_ending, write_subtitles

logger = logging.getLogger(__name__)

STATE, PLAYLIST = "book.json", "book.m3u8"
_VERSION = 1
_LONGEST_NAME = 50


@dataclass(frozen=True, slots=True)
class Finished:
    """A chapter that was spoken: its file, how large and long that is, and what it was made of."""

    file: str
    title: str
    bytes: int
    seconds: float
    made_of: str


@dataclass(frozen=True, slots=True)
class Task:
    """A chapter to be spoken: its number, its file, and a hash of all that it is made of."""

    number: int
    chapter: Chapter
    file: str
    made_of: str


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be spoken and how."""

    book: Book
    folder: Path
    format: str
    ending: str | None  # of subtitles
    options: Mapping[str, Any]


def speak_book(
    load: Load,
    file: Path,
    folder: Path,
    format: str = "wav",
    subtitles: str | None = None,
    **options: Any,
) -> str:
    """Write a recording for each chapter of a book. Return what was done.

    A chapter that is finished is not spoken again, unless its text, the voice or an option has
    changed. One that was interrupted begins anew: a file is whole or absent.
    """
    book = read_book(file)
    if folder.is_file() or folder.suffix.lower() in {one.ending for one in FORMATS.values()}:
        raise UserError(f"a book becomes a file per chapter: name a folder with -o, not {folder}")
    job = Job(book, folder, format, check_ending(subtitles), options)
    known = _read_state(folder)
    synthesizer = load()
    began = time.monotonic()
    with progress("speaking", "characters") as report:
        spoken, kept = _speak_chapters(synthesizer, job, known, report)
    if not spoken and not kept:
        raise UserError(f"there is nothing to say in {file} for this voice: check its language")
    return _summary(folder, spoken, kept, time.monotonic() - began)


def _speak_chapters(
    synthesizer: Synthesizer, job: Job, known: Mapping[str, Finished], report: Progress
) -> tuple[list[Finished], list[Finished]]:
    """Speak what is missing; return the chapters that were spoken, and those that were there."""
    tasks = _plan(job, _identity(synthesizer, job))
    kept = [known[task.file] for task in tasks if _is_there(job, known.get(task.file), task)]
    there = {finished.file for finished in kept}
    missing = [task for task in tasks if task.file not in there]
    work = _Work(synthesizer, job, report, sum(len(task.chapter.text) for task in missing))
    spoken: list[Finished] = []
    for task in missing:
        if _has_sound(synthesizer, task.chapter, job.options.get("language")):
            spoken.append(work.speak(task))
            _write_state(job, [*spoken, *kept])
        else:
            logger.warning("%s has nothing to say and is skipped", task.file)
    return spoken, kept


def _plan(job: Job, how: str) -> list[Task]:
    """A task for each chapter; `how` stands for the voice and the options."""
    count, ending = len(job.book.chapters), FORMATS[job.format].ending
    return [
        Task(
            number,
            chapter,
            _file_name(number, count, chapter, ending),
            _sha256(how, job.book.title, chapter.title, chapter.text, str(number)),
        )
        for number, chapter in enumerate(job.book.chapters, 1)
    ]


class _Work:
    """Speaks chapters and reports how far it is."""

    def __init__(self, synthesizer: Synthesizer, job: Job, report: Progress, total: int):
        self._synthesizer, self._job = synthesizer, job
        self._report, self._total = report, total
        self._done, self._seconds = 0, 0.0

    def speak(self, task: Task) -> Finished:
        """Speak a chapter into its file."""
        chapter = task.chapter
        samples, spoken = self._samples(chapter)
        rate = self._synthesizer.spec.sample_rate
        tags = {
            "title": chapter.title or f"{task.number}",
            "album": self._job.book.title,
            "artist": self._job.book.author,
            "tracknumber": f"{task.number}",
        }
        content = encode_audio(samples, rate, self._job.format, tags)
        seconds, target = len(samples) / rate, self._job.folder / task.file
        if self._job.ending:
            timed = target.with_suffix(self._job.ending)
            write_subtitles(timed, self._synthesizer, spoken, seconds)
        _write(target, content)
        return Finished(task.file, chapter.title, len(content), seconds, task.made_of)

    def _samples(self, chapter: Chapter) -> tuple[np.ndarray, list[Sentence]]:
        """The samples of a chapter, and its sentences where their times are wanted."""
        text = "\n\n".join(part for part in (chapter.title, chapter.text) if part)
        parts: list[np.ndarray] = []
        spoken: list[Sentence] = []
        before = self._done
        for speech in self._synthesizer.stream(text, **self._job.options):
            parts.append(speech.samples)
            spoken += speech.spoken if self._job.ending else ()
            self._done += sum(map(len, speech.sentences))
            self._seconds += speech.seconds
            self._report(min(self._done, self._total), self._total, self._seconds)
        self._done = before + len(chapter.text)
        return np.concatenate(parts), spoken


def _has_sound(synthesizer: Synthesizer, chapter: Chapter, language: str | None) -> bool:
    parts = [chapter.title, *chapter.text.split("\n\n")]
    return any(not synthesizer.nothing_to_say([part], language) for part in parts if part)


def _file_name(number: int, count: int, chapter: Chapter, ending: str) -> str:
    """A number, which sorts, and the letters of the title."""
    letters = re.sub(r"[\W_]+", "-", chapter.title)[:_LONGEST_NAME].strip("-")
    digits = f"{number:0{max(2, len(str(count)))}d}"
    return f"{digits}-{letters}{ending}" if letters else f"{digits}{ending}"


def _identity(synthesizer: Synthesizer, job: Job) -> str:
    """What all chapters are made of: the voice, the vocoder and the options."""
    card = synthesizer.voice.folder / "voice.json"
    voice = card.read_bytes().decode() if card.is_file() else str(synthesizer.voice.folder)
    options = {name: _described(name, value) for name, value in sorted(job.options.items())}
    return _sha256(
        voice, synthesizer.vocoder.name, job.format, job.ending or "", json.dumps(options)
    )


def _described(name: str, value: Any) -> Any:
    """An option by its content: a lexicon by its entries, references by their bytes."""
    if isinstance(value, Lexicon):
        return [repr(entry) for entry in value.entries]
    if name == "reference" and value is not None:
        paths = [value] if isinstance(value, str | os.PathLike) else value
        return [_described_file(Path(path)) for path in paths]
    return repr(value)


def _described_file(path: Path) -> str:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except OSError:
        return str(path)  # speaking says what is wrong with it


def _is_there(job: Job, finished: Finished | None, task: Task) -> bool:
    if finished is None or finished.made_of != task.made_of:
        return False
    file = job.folder / finished.file
    is_whole = file.is_file() and file.stat().st_size == finished.bytes
    return is_whole and (not job.ending or file.with_suffix(job.ending).is_file())


def _read_state(folder: Path) -> dict[str, Finished]:
    """What an earlier run has finished; a state that cannot be read counts as none."""
    try:
        document = parse_json(read_document(folder / STATE, MOST_JSON_BYTES))
        found = [Finished(**chapter) for chapter in document["chapters"]]
        return {str(chapter.file): chapter for chapter in found}
    except FileNotFoundError:
        return {}
    except (OSError, DocumentError, KeyError, TypeError, AttributeError) as error:
        logger.warning("cannot read %s (%s): all chapters are spoken anew", folder / STATE, error)
        return {}


def _write_state(job: Job, finished: Iterable[Finished]) -> None:
    """Write what is finished, and a playlist of it."""
    chapters = sorted(finished, key=lambda chapter: chapter.file)
    document = {
        "version": _VERSION,
        "title": job.book.title,
        "author": job.book.author,
        "chapters": [asdict(chapter) for chapter in chapters],
    }
    state = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    _write(job.folder / STATE, state.encode())
    lines = ["#EXTM3U", f"#PLAYLIST:{job.book.title}"]
    for chapter in chapters:
        lines += [f"#EXTINF:{chapter.seconds:.3f},{chapter.title or chapter.file}", chapter.file]
    _write(job.folder / PLAYLIST, ("\n".join(lines) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    """Write under a name that the next run overwrites, if this one is killed meanwhile."""
    with explained(path, kept="finished chapters are kept"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content, alone=True)


def _summary(
    folder: Path, spoken: Sequence[Finished], kept: Sequence[Finished], took: float
) -> str:
    count = len(spoken) + len(kept)
    there = f" ({len(kept):,} were there)" if kept else ""
    said = f"{folder}: {count:,} {'chapter' if count == 1 else 'chapters'}{there} and {PLAYLIST}"
    seconds = sum(one.seconds for one in spoken)
    return f"{said}, {Spoken(seconds, took)}" if spoken else said


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
