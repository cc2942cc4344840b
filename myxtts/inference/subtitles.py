"""Times of speech as subtitles: SRT, WebVTT with the times of words, or JSON with everything."""

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UserError
from myxtts.inference.times import TimedSentence, TimedWord

VERSION = 1
_LINE, _MOST_LINES = 42, 2  # characters and lines that are read at a glance


@dataclass(frozen=True, slots=True)
class Timed:
    """All sentences of one recording, how long it is, and what its voice's units are."""

    sentences: Sequence[TimedSentence]
    seconds: float
    units: str


def check_subtitles(name: str) -> str:
    """Return the ending of a file of subtitles, or of a bare format, as ".srt"."""
    ending = Path(name).suffix.lower() or f".{name.lower().lstrip('.')}"
    if ending not in FORMATS:
        raise UserError(f"{name!r} is no file of subtitles: end it in one of {', '.join(FORMATS)}")
    return ending


def format_subtitles(timed: Timed, ending: str) -> str:
    """Write times as the format of an ending has them."""
    return FORMATS[ending](timed)


def to_srt(timed: Timed) -> str:
    """SubRip: numbered cues of up to two lines."""
    cues = [
        f"{number}\n{_clock(cue[0].start, ',')} --> {_clock(cue[-1].end, ',')}\n"
        + "\n".join(_lines(cue))
        for number, cue in enumerate(_cues(timed), 1)
    ]
    return "\n\n".join(cues) + "\n"


def to_vtt(timed: Timed) -> str:
    """WebVTT: the same cues, with a time before each word but the first."""
    cues = [
        f"{_clock(cue[0].start, '.')} --> {_clock(cue[-1].end, '.')}\n{_karaoke(cue)}"
        for cue in _cues(timed)
    ]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def to_json(timed: Timed) -> str:
    """Every sentence, word and unit in seconds; a word that is a guess is `approximate`."""
    document = {
        "version": VERSION,
        "seconds": _rounded(timed.seconds),
        "units": timed.units,
        "sentences": [
            {**_span(one.text, one), "words": [_word(word) for word in one.words]}
            for one in timed.sentences
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


FORMATS: dict[str, Callable[[Timed], str]] = {".srt": to_srt, ".vtt": to_vtt, ".json": to_json}


def _cues(timed: Timed) -> Iterator[list[TimedWord]]:
    """Divide sentences into cues of about one length, between words."""
    for sentence in timed.sentences:
        total = len(_plain(sentence.words))
        wanted = total / -(-total // (_LINE * _MOST_LINES))
        cue: list[TimedWord] = []
        for word in sentence.words:
            is_full = len(_lines([*cue, word])) > _MOST_LINES or len(_plain(cue)) >= wanted
            if cue and is_full:
                yield cue
                cue = []
            cue.append(word)
        yield cue


def _plain(cue: Sequence[TimedWord]) -> str:
    return " ".join(word.text for word in cue).replace("-->", "->")


def _lines(cue: Sequence[TimedWord]) -> list[str]:
    return textwrap.wrap(_plain(cue), _LINE, break_long_words=False, break_on_hyphens=False)


def _karaoke(cue: Sequence[TimedWord]) -> str:
    first, *others = cue
    timed = (f"<{_clock(word.start, '.')}>{_escaped(word.text)}" for word in others)
    return " ".join([_escaped(first.text), *timed])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float, point: str) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, second = divmod(whole, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}{point}{milliseconds:03d}"


def _word(word: TimedWord) -> dict[str, object]:
    found = _span(word.text, word)
    if not word.is_exact:
        found["approximate"] = True
    found["units"] = [
        {"symbol": unit.symbol, "start": _rounded(unit.start), "end": _rounded(unit.end)}
        for unit in word.units
    ]
    return found


def _span(text: str, timed: TimedSentence | TimedWord) -> dict[str, object]:
    return {"text": text, "start": _rounded(timed.start), "end": _rounded(timed.end)}


def _rounded(seconds: float) -> float:
    return round(seconds, 6)
