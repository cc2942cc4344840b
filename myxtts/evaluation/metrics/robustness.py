"""Whether a voice says all of a text and then ends: lengths, lost words and broken alignments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from myxtts.evaluation.metrics.intelligibility import plain_words, transcripts
from myxtts.evaluation.metrics.table import ASR, RECORDED, SPEECH

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

# Speech this much shorter or longer than a recording of the same words did not say them.
SHORTEST, LONGEST = 0.5, 2.0
LONGEST_SOUND = 1.0  # seconds
# A token with less than this share of its usual time is not heard; so many in a row are a word.
SHORTEST_TOKEN, SKIPPED_TOKENS = 0.25, 3
LEAST_SEEN = 5  # times, before a token's own median is trusted
ALL_KINDS = "all"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Spoken against recorded length: over all sentences, and of the extreme ones."""

    ratio: float
    lowest: float
    highest: float
    too_short: frozenset[int]
    too_long: frozenset[int]


@dataclass(frozen=True, slots=True)
class Pace:
    """How many frames a voice gives to each token, in the median, and to those it rarely says."""

    by_token: Mapping[int, float]
    other: float

    def expected(self, tokens: np.ndarray) -> np.ndarray:
        """How many frames [tokens] a text would have at this pace."""
        return np.array([self.by_token.get(token, self.other) for token in tokens.tolist()])


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A text of some kind as a voice said it, and its transcript where an ASR listened."""

    kind: str
    text: str
    tokens: np.ndarray  # [tokens]
    durations: np.ndarray  # [tokens], in frames
    frames: int  # the length of what was said
    heard: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HardSpeech:
    """Hard texts as a voice spoke them, the samples of each, and its pace in other texts."""

    attempts: Sequence[Attempt]
    spoken: Sequence[np.ndarray]
    pace: Pace


@dataclass(frozen=True, slots=True)
class Faults:
    """What went wrong with one text."""

    kind: str
    is_skipped: bool
    is_endless: bool
    repeated: str | None  # words heard more often than said; None where nobody listened

    @property
    def is_faultless(self) -> bool:
        return not (self.is_skipped or self.is_endless or self.repeated)


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """How many texts of a kind went wrong, and in which way; one can in several."""

    kind: str
    texts: int
    skipped: int
    endless: int
    repeated: int | None  # None where nobody listened to any
    faulty: int


def skipped(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is too short, or of which the ASR finds less than half the words."""
    too_short = _lengths(session).too_short
    found = session.shared_or_none(transcripts, ASR)
    if found and RECORDED in found.sources:
        texts = (found.sources[SPEECH], found.sources[RECORDED])
        too_short |= lost(*texts, session.subject.language)
    return {SPEECH: _flags(session, too_short)}


def endless(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is too long, or in which one sound lasts longer than any does."""
    spec = session.subject.spec
    known = [one.durations for one in session.subject.sentences if one.durations is not None]
    found = _lengths(session).too_long
    if len(known) == len(session.subject.sentences):
        found |= stuck(known, spec.hop_length / spec.sample_rate)
    return {SPEECH: _flags(session, found)}


def faulty_texts(session: "Session") -> dict[str, np.ndarray]:
    """1 for each hard text with a fault."""
    _, faults = session.shared(hard_faults)
    return {SPEECH: np.array([float(not one.is_faultless) for one in faults])}


def hard_faults(session: "Session") -> "tuple[list[Attempt], list[Faults]]":
    """The hard texts, with their transcripts where there is an ASR, and what went wrong."""
    hard, spec = session.subject.hard, session.subject.spec
    attempts = list(hard.attempts)
    found = session.shared_or_none(transcripts, ASR)
    if found:
        pairs = zip(attempts, found.hard, strict=True)
        attempts = [replace(one, heard=text) for one, text in pairs]
    frame_seconds = spec.hop_length / spec.sample_rate
    return attempts, find_faults(attempts, hard.pace, frame_seconds, session.subject.language)


def _lengths(session: "Session") -> "Lengths":
    sources = session.sources
    return compare_lengths(*([len(one) for one in sources[name]] for name in (SPEECH, RECORDED)))


def _flags(session: "Session", numbers: frozenset[int]) -> np.ndarray:
    return np.array([float(n in numbers) for n in range(len(session.subject.sentences))])


def measure_pace(tokens: Sequence[np.ndarray], durations: Sequence[np.ndarray]) -> Pace:
    """Take the pace of a voice from texts that it says well: tokens, and frames of each."""
    tokens, durations = np.concatenate(tokens), np.concatenate(durations)
    found, counts = np.unique(tokens, return_counts=True)
    by_token = {
        int(token): float(np.median(durations[tokens == token]))
        for token in found[counts >= LEAST_SEEN]
    }
    return Pace(by_token, float(np.median(durations)))


def find_faults(
    attempts: Sequence[Attempt], pace: Pace, frame_seconds: float, language: str
) -> list[Faults]:
    """Find texts that were not said to their end, not ended, or said twice; no recording is needed.

    What is expected of a text's length is the voice's own pace.
    """
    lengths = compare_lengths(
        [one.frames for one in attempts], [pace.expected(one.tokens).sum() for one in attempts]
    )
    endless = lengths.too_long | stuck([one.durations for one in attempts], frame_seconds)
    return [
        Faults(
            one.kind,
            is_skipped=number in lengths.too_short or _loses_a_word(one, pace),
            is_endless=number in endless,
            repeated=None if one.heard is None else repeated_words(one.text, one.heard, language),
        )
        for number, one in enumerate(attempts)
    ]


def count_faults(faults: Sequence[Faults]) -> list[FaultCounts]:
    """Count the faults of each kind of text, in the order in which kinds come, and of all."""
    kinds = dict.fromkeys(one.kind for one in faults)
    counts = [_count(kind, [one for one in faults if one.kind == kind]) for kind in kinds]
    return [*counts, _count(ALL_KINDS, faults)]


def repeated_words(said: str, heard: str, language: str) -> str:
    """Return the longest run of a text's words that is heard more often than said, or nothing.

    One or two words count only where more words are heard than said, and a single one where it is
    doubled: an ASR takes "to the" for "of the" at times, and then has that too often, but
    what is repeated adds words.
    """
    said_words, heard_words = (plain_words(text, language).split() for text in (said, heard))
    has_more = len(heard_words) > len(said_words)
    for length in range(len(said_words), 1 if has_more else 2, -1):
        often = _runs(heard_words, length)
        for run, times in _runs(said_words, length).items():
            if often[run] > times:
                return " ".join(run)
    if has_more:
        doubled = _doubled(heard_words) - _doubled(said_words)
        return next((word for word in doubled if word in said_words), "")
    return ""


def compare_lengths(spoken: Sequence[int], recorded: Sequence[int]) -> Lengths:
    """Compare the lengths of sentences, in any unit; too short and too long ones by number."""
    ratios = np.asarray(spoken, np.float64) / np.asarray(recorded, np.float64)
    return Lengths(
        ratio=sum(spoken) / sum(recorded),
        lowest=float(ratios.min()),
        highest=float(ratios.max()),
        too_short=_numbers(ratios < SHORTEST),
        too_long=_numbers(ratios > LONGEST),
    )


def stuck(durations: Sequence[np.ndarray], frame_seconds: float) -> frozenset[int]:
    """Return the sentences in which one sound lasts longer than any does; durations in frames."""
    return _numbers([one.max() * frame_seconds > LONGEST_SOUND for one in durations])


def lost(spoken: Sequence[str], recorded: Sequence[str], language: str) -> frozenset[int]:
    """The sentences whose transcript has less than half as many words as that of a recording."""
    counts = [[len(plain_words(text, language).split()) for text in x] for x in (spoken, recorded)]
    return _numbers([2 * own < other for own, other in zip(*counts, strict=True)])


def is_complete(frame_tokens: np.ndarray, num_tokens: int) -> bool:
    """Tell whether frames go through all tokens, from the first to the last, without a jump."""
    steps = np.diff(frame_tokens)
    ends = (frame_tokens[0], frame_tokens[-1])
    return ends == (0, num_tokens - 1) and bool(np.isin(steps, (0, 1)).all())


def _loses_a_word(attempt: Attempt, pace: Pace) -> bool:
    """Tell whether several tokens in a row have hardly any time."""
    is_short = attempt.durations < SHORTEST_TOKEN * pace.expected(attempt.tokens)
    row = np.convolve(is_short, np.ones(SKIPPED_TOKENS, np.int64))
    return bool(row.max() >= SKIPPED_TOKENS)


def _count(kind: str, faults: Sequence[Faults]) -> FaultCounts:
    listened = [one.repeated for one in faults if one.repeated is not None]
    return FaultCounts(
        kind,
        texts=len(faults),
        skipped=sum(one.is_skipped for one in faults),
        endless=sum(one.is_endless for one in faults),
        repeated=sum(map(bool, listened)) if listened else None,
        faulty=sum(not one.is_faultless for one in faults),
    )


def _runs(words: Sequence[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(length)), strict=False))


def _doubled(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word, after in zip(words, words[1:], strict=False) if word == after)


def _numbers(flags) -> frozenset[int]:
    return frozenset(np.flatnonzero(flags).tolist())
