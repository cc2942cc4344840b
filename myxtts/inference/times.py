"""When each sentence, word and unit of speech is heard, from the durations of its tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from myxtts.config.audio_spec import AudioSpec
from myxtts.inference.speech import Sentence


@dataclass(frozen=True, slots=True)
class TimedUnit:
    """A character or phoneme, and the seconds at which it begins and ends."""

    symbol: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word as it is written; where its borders are a guess, it is not exact."""

    text: str
    start: float
    end: float
    is_exact: bool
    units: tuple[TimedUnit, ...]


@dataclass(frozen=True, slots=True)
class TimedSentence:
    """A sentence, from its first word to its last; the silence around it is not part of it."""

    text: str
    start: float
    end: float
    words: tuple[TimedWord, ...]


def find_times(spoken: Iterable[Sentence], spec: AudioSpec) -> Iterator[TimedSentence]:
    """Yield the times of sentences that follow each other, pauses included."""
    frame_seconds = spec.hop_length / spec.sample_rate
    frame = 0
    for sentence in spoken:
        words = tuple(_words(sentence, frame, frame_seconds))
        if words:
            yield TimedSentence(sentence.reading.text, words[0].start, words[-1].end, words)
        frame += sentence.num_frames + sentence.pause_frames


def _words(sentence: Sentence, first_frame: int, frame_seconds: float) -> Iterator[TimedWord]:
    """Yield the words of a sentence; one without a sound goes with its neighbour's text."""
    reading = sentence.reading
    held: TimedWord | None = None
    silent = ""
    timed = _units(sentence, first_frame, frame_seconds)
    for number, word in enumerate(reading.words):
        units = timed.get(number, ())
        if units:
            if held:
                yield held
            text = f"{silent} {word.written}".strip()
            held = TimedWord(text, units[0].start, units[-1].end, reading.exact[number], units)
            silent = ""
        elif held:
            held = replace(held, text=f"{held.text} {word.written}")
        else:
            silent = f"{silent} {word.written}"
    if held:
        yield held


def _units(
    sentence: Sentence, first_frame: int, frame_seconds: float
) -> dict[int, tuple[TimedUnit, ...]]:
    """The units of each word, without the spaces and marks between words."""
    if not len(sentence.durations):
        return {}
    # What the stop head has cut off is not heard.
    heard = (min(int(end), sentence.num_frames) for end in accumulate(sentence.durations))
    ends = [first_frame + end for end in heard]
    found: dict[int, list[TimedUnit]] = {}
    token = 0  # BOS
    for unit in sentence.reading.units:
        start, token = ends[token], token + unit.num_tokens
        if unit.word is not None and unit.num_tokens and unit.symbol != " ":
            timed = TimedUnit(unit.symbol, start * frame_seconds, ends[token] * frame_seconds)
            found.setdefault(unit.word, []).append(timed)
    return {word: tuple(units) for word, units in found.items()}
