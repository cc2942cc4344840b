"""Text files into speech: one wav for each text, or a stream of sentences."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from myxtts.atomic import write_output
from myxtts.audio.io import write_wav
from myxtts.audio.streaming import wav_header
from myxtts.errors import UserError
from myxtts.inference.script import stream_ssml
from myxtts.inference.speech import Sentence, Speech, join_speech
from myxtts.inference.subtitles import Timed, check_subtitles, format_subtitles
from myxtts.inference.synthesizer import Synthesizer
from myxtts.inference.times import find_times
from myxtts.monitoring.progress import Progress, progress
from myxtts.text.ssml import parse_ssml

_LINES_AT_A_TIME = 64
_BLOCK = 4096  # characters that are read at a time
_SPACES = re.compile(r"\s+")
_LINE_END = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # as of str.splitlines()
_SAFE_ID = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class Spoken:
    """Seconds of speech, and how long they took."""

    seconds: float
    took: float

    def __str__(self) -> str:
        factor = self.took / self.seconds
        return f"{self.seconds:.2f} s of speech in {self.took:.2f} s, real-time factor {factor:.3f}"


# Loads the voice, which takes seconds: it is called when nothing else can be wrong any more.
Load = Callable[[], Synthesizer]


def speak_text(
    load: Load,
    text: str,
    target: Path,
    save_mel: bool = False,
    subtitles: str | None = None,
    is_ssml: bool = False,
    **options: Any,
) -> str:
    """Write a text as one wav; `options` are those of `Synthesizer.speak`. Return what was done.

    `subtitles` is a file to write times to, or its ending for one next to the wav.
    """
    if target.is_dir():
        raise UserError(f"{target} is a folder: name a wav file with -o")
    if target.suffix.lower() != ".wav":
        raise UserError(f"{target} does not end in .wav, which is what is written: rename it")
    timed = subtitles_next_to(target, subtitles)
    if is_ssml:
        parse_ssml(text, options.get("language") or "en")  # before the voice is loaded
    synthesizer = load()
    began = time.monotonic()
    speech = join_speech(list(_stream(synthesizer, text, is_ssml, options)))
    _write(target, speech, save_mel)
    if timed:
        write_subtitles(timed, synthesizer, speech.spoken, speech.seconds)
    return f"{target}: {Spoken(speech.seconds, time.monotonic() - began)}"


def speak_file(
    load: Load,
    file: Path,
    folder: Path,
    save_mel: bool = False,
    subtitles: str | None = None,
    **options: Any,
) -> str:
    """Write ID.wav for each line of a file, and metadata.csv of them all. Return what was done.

    `subtitles` is the ending of files with the times of each, such as srt.
    """
    lines = read_lines(file)
    if folder.is_file() or folder.suffix.lower() == ".wav":
        raise UserError(f"a text file becomes many wavs: name a folder with -o, not {folder}")
    ending = check_ending(subtitles)
    synthesizer = load()
    with progress("speaking", "lines") as report:
        done = _speak_lines(synthesizer, lines, folder, save_mel, ending, report, options)
    return f"{folder}: {len(lines):,} wavs and metadata.csv, {done}"


def _speak_lines(
    synthesizer: Synthesizer,
    lines: dict[str, str],
    folder: Path,
    save_mel: bool,
    ending: str | None,
    report: Progress,
    options: dict[str, Any],
) -> Spoken:
    silent = synthesizer.nothing_to_say(list(lines.values()), options.get("language"))
    if silent:
        names = ", ".join(list(lines)[index] for index in silent[:10])
        raise UserError(f"nothing to say in {len(silent)} of the lines ({names}): remove them")
    ids, seconds, began = list(lines), 0.0, time.monotonic()
    for start in range(0, len(ids), _LINES_AT_A_TIME):
        part = ids[start : start + _LINES_AT_A_TIME]
        spoken = synthesizer.speak_many([lines[name] for name in part], **options)
        for name, speech in zip(part, spoken, strict=True):
            target = folder / f"{name}.wav"
            _write(target, speech, save_mel)
            if ending:
                timed = target.with_suffix(ending)
                write_subtitles(timed, synthesizer, speech.spoken, speech.seconds)
            seconds += speech.seconds
        report(start + len(part), len(ids), seconds)
    metadata = "".join(f"{name}|{text}\n" for name, text in lines.items())
    (folder / "metadata.csv").write_text(metadata, encoding="utf-8")
    return Spoken(seconds, time.monotonic() - began)


def stream(
    synthesizer: Synthesizer,
    text: str | Iterable[str],
    out: BinaryIO,
    subtitles: str | None = None,
    is_ssml: bool = False,
    **options: Any,
) -> Spoken:
    """Write a wav of unknown length, each sentence as soon as it is ready; then the subtitles."""
    target = subtitles_next_to(None, subtitles)
    began, seconds = time.monotonic(), 0.0
    parts = _stream(synthesizer, text, is_ssml, options)
    out.write(wav_header(synthesizer.spec.sample_rate))
    out.flush()
    spoken: list[Sentence] = []
    for speech in parts:
        out.write(np.round(speech.samples * 32768.0).astype("<i2").tobytes())
        out.flush()
        seconds += speech.seconds
        spoken += speech.spoken if target else ()
    if target:
        write_subtitles(target, synthesizer, spoken, seconds)
    return Spoken(seconds, time.monotonic() - began)


def _stream(
    synthesizer: Synthesizer, text: str | Iterable[str], is_ssml: bool, options: dict[str, Any]
) -> Iterator[Speech]:
    if is_ssml:
        return stream_ssml(synthesizer, "".join(text), **options)
    return synthesizer.stream(text, **options)


def subtitles_next_to(target: Path | None, subtitles: str | None) -> Path | None:
    """The file of subtitles that is meant by its name, or by its ending alone."""
    if subtitles is None:
        return None
    ending = check_subtitles(subtitles)
    if Path(subtitles).suffix and not Path(subtitles).is_dir():
        return Path(subtitles)
    if target is None:
        raise UserError("there is no file to put subtitles next to: name one, as in x.srt")
    return target.with_suffix(ending)


def check_ending(subtitles: str | None) -> str | None:
    """The ending of subtitles for many recordings, which no single file can hold."""
    if subtitles is None:
        return None
    ending = check_subtitles(subtitles)
    if subtitles.lower().lstrip(".") != ending[1:]:
        raise UserError(
            f"every recording gets subtitles of its own: give their ending alone, "
            f"--subtitles {ending[1:]}, not {subtitles}"
        )
    return ending


def write_subtitles(
    target: Path, synthesizer: Synthesizer, spoken: Iterable[Sentence], seconds: float
) -> None:
    """Write the times of what was spoken."""
    sentences = list(find_times(spoken, synthesizer.spec))
    timed = Timed(sentences, seconds, synthesizer.voice.tokenizer.units)
    write_output(target, format_subtitles(timed, target.suffix.lower()).encode())


def read_lines(path: Path) -> dict[str, str]:
    """Read a text file as text by id: the ids of `id|text` lines, or 0001, 0002, and so on."""
    return _by_id("".join(_read_blocks(path)), path)


def read_parts(path: Path) -> Iterator[str]:
    """Read a text file as it is needed, one sentence or more a line, without the ids of its lines.

    A file whose first line has no "|" has no ids; otherwise all lines must be read to know.
    """
    parts = _read_blocks(path)
    first = next(parts)
    if "|" in first.partition("\n")[0]:
        return iter(["\n".join(_by_id("".join([first, *parts]), path).values())])
    return chain([first], parts)


def _read_blocks(path: Path) -> Iterator[str]:
    """Yield a file without empty lines, a line or part of one at a time; raise if it is empty."""
    is_empty = at_start = True
    try:
        with path.open(encoding="utf-8-sig") as file:
            while block := file.readline(_BLOCK):
                block = _SPACES.sub(_line_end, block)
                block = block.lstrip() if at_start else block
                if block:
                    is_empty, at_start = False, block.endswith("\n")
                    yield block
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from error
    if is_empty:
        raise UserError(f"{path} holds no text: write one line for each recording to be made")


def _line_end(spaces: re.Match) -> str:
    return "\n" if _LINE_END.search(spaces[0]) else spaces[0]


def _by_id(text: str, path: Path) -> dict[str, str]:
    lines = [line.strip() for line in text.strip().split("\n")]
    if not all("|" in line for line in lines):
        return {f"{number:04d}": line for number, line in enumerate(lines, 1)}
    found: dict[str, str] = {}
    for line in lines:
        name, _, said = line.partition("|")
        _check_id(name, said, found, path)
        found[name] = said
    return found


def _check_id(name: str, text: str, known: dict[str, str], path: Path) -> None:
    if not _SAFE_ID.fullmatch(name):
        raise UserError(f"{path}: {name!r} cannot name a file: use letters, digits, '_', '.', '-'")
    if name in known:
        raise UserError(f"{path}: two lines are called {name!r}: give each its own name")
    if "|" in text:
        raise UserError(f"{path}: the line {name!r} has more than one '|': keep id|text")


def _write(target: Path, speech: Speech, save_mel: bool) -> None:
    write_wav(target, speech.samples, speech.sample_rate)
    if save_mel:
        mel = BytesIO()
        np.save(mel, speech.mel)
        write_output(target.with_suffix(".npy"), mel.getvalue())
