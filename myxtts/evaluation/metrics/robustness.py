"""Whether a voice says a whole text and then stops: lengths, lost words, broken alignments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from myxtts.evaluation.metrics.intelligibility import plain_words, transcripts
from myxtts.evaluation.metrics.table import ASR, HARD_TEXTS, RECORDED, SPEECH

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

# Ratios of lengths, speech over recording, outside of which the speech skips text or never ends.
SHORTEST, LONGEST = 0.5, 2.0
LONGEST_SOUND = 1.0  # seconds
# A token with less than this share of its usual duration is inaudible; a run of so many is a word.
SHORTEST_TOKEN, SKIPPED_TOKENS = 0.25, 3
LEAST_SEEN = 5  # occurrences that a token's own median needs
ALL_KINDS = "all"


@dataclass(frozen=True, slots=True)
class UsualDurations:
    """The median frames that a voice gives each token, and those of rare tokens."""

    by_token: Mapping[int, float]
    other: float

    def expected(self, tokens: np.ndarray) -> np.ndarray:
        """The usual frames [tokens] of a text."""
        return np.array([self.by_token.get(token, self.other) for token in tokens.tolist()])


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A text of some kind as a voice spoke it, and its transcript if there is an ASR."""

    kind: str
    text: str
    tokens: np.ndarray  # [tokens]
    durations: np.ndarray  # [tokens], in frames
    frames: int  # the length of the speech
    heard: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HardSpeech:
    """Hard texts as a voice spoke them, the samples of each, and its usual durations."""

    attempts: Sequence[Attempt]
    spoken: Sequence[np.ndarray]
    usual: UsualDurations


@dataclass(frozen=True, slots=True)
class Faults:
    """What went wrong with one text."""

    kind: str
    is_skipped: bool
    is_endless: bool
    repeated: str | None  # words more often in the transcript than in the text; None without ASR

    @property
    def is_faultless(self) -> bool:
        return not (self.is_skipped or self.is_endless or self.repeated)


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """How many texts of a kind have each fault; a text may have several."""

    kind: str
    texts: int
    skipped: int
    endless: int
    repeated: int | None  # None without ASR
    faulty: int


def skipped(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is too short, or that lacks more than half the words by the ASR."""
    is_skipped = _ratios(session) < SHORTEST
    found = session.shared_or_none(transcripts, ASR)
    if found and RECORDED in found:
        is_skipped |= lost(found[SPEECH], found[RECORDED], session.subject.language)
    return {SPEECH: is_skipped.astype(float)}


def endless(session: "Session") -> dict[str, np.ndarray]:
    """1 for each sentence that is too long, or that has a sound of more than a second."""
    spec = session.subject.spec
    known = [one.durations for one in session.subject.sentences if one.durations is not None]
    is_endless = _ratios(session) > LONGEST
    if len(known) == len(session.subject.sentences):
        is_endless |= stuck(known, spec.hop_length / spec.sample_rate)
    return {SPEECH: is_endless.astype(float)}


def faulty_texts(session: "Session") -> dict[str, np.ndarray]:
    """1 for each hard text with a fault."""
    _, faults = session.shared(hard_faults)
    return {SPEECH: np.array([float(not one.is_faultless) for one in faults])}


def hard_faults(session: "Session") -> "tuple[list[Attempt], list[Faults]]":
    """The hard texts, with transcripts if there is an ASR, and their faults."""
    hard, spec = session.subject.hard, session.subject.spec
    attempts = list(hard.attempts)
    found = session.shared_or_none(transcripts, ASR)
    if found:
        pairs = zip(attempts, found[HARD_TEXTS], strict=True)
        attempts = [replace(one, heard=text) for one, text in pairs]
    frame_seconds = spec.hop_length / spec.sample_rate
    return attempts, find_faults(attempts, hard.usual, frame_seconds, session.subject.language)


def _ratios(session: "Session") -> np.ndarray:
    """The length of each sentence over that of its recording."""
    sentences = session.subject.sentences
    lengths = np.array([(len(one.spoken), len(one.recorded)) for one in sentences], np.float64)
    return lengths[:, 0] / lengths[:, 1]


def usual_durations(
    tokens: Sequence[np.ndarray], durations: Sequence[np.ndarray]
) -> UsualDurations:
    """Measure a voice's durations on texts that it speaks well: tokens, and frames of each."""
    tokens, durations = np.concatenate(tokens), np.concatenate(durations)
    found, counts = np.unique(tokens, return_counts=True)
    by_token = {
        int(token): float(np.median(durations[tokens == token]))
        for token in found[counts >= LEAST_SEEN]
    }
    return UsualDurations(by_token, float(np.median(durations)))


def find_faults(
    attempts: Sequence[Attempt], usual: UsualDurations, frame_seconds: float, language: str
) -> list[Faults]:
    """Find texts that were skipped, never ended or said twice, without recordings.

    The expected length of a text follows from the voice's usual durations.
    """
    ratios = np.array([one.frames / usual.expected(one.tokens).sum() for one in attempts])
    is_endless = (ratios > LONGEST) | stuck([one.durations for one in attempts], frame_seconds)
    return [
        Faults(
            one.kind,
            is_skipped=bool(ratios[number] < SHORTEST) or _loses_a_word(one, usual),
            is_endless=bool(is_endless[number]),
            repeated=None if one.heard is None else repeated_words(one.text, one.heard, language),
        )
        for number, one in enumerate(attempts)
    ]


def count_faults(faults: Sequence[Faults]) -> list[FaultCounts]:
    """Count the faults of each kind of text, in order of appearance, and of all."""
    kinds = dict.fromkeys(one.kind for one in faults)
    counts = [_count(kind, [one for one in faults if one.kind == kind]) for kind in kinds]
    return [*counts, _count(ALL_KINDS, faults)]


def repeated_words(said: str, heard: str, language: str) -> str:
    """Return the longest run of words that is more often in the transcript than in the text.

    One or two words count only where the transcript has more words than the text, and a single word
    only where it is doubled: an ASR may hear "to the" as "of the", but a repetition adds words.
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


def stuck(durations: Sequence[np.ndarray], frame_seconds: float) -> np.ndarray:
    """Which sentences have a sound of more than a second; durations in frames."""
    return np.array([one.max() * frame_seconds > LONGEST_SOUND for one in durations], bool)


def lost(spoken: Sequence[str], recorded: Sequence[str], language: str) -> np.ndarray:
    """Which transcripts have less than half as many words as those of the recordings."""
    counts = [[len(plain_words(text, language).split()) for text in x] for x in (spoken, recorded)]
    return 2 * np.array(counts[0]) < np.array(counts[1])


def is_complete(frame_tokens: np.ndarray, num_tokens: int) -> bool:
    """Whether frames go through all tokens, from first to last, without a jump."""
    steps = np.diff(frame_tokens)
    ends = (frame_tokens[0], frame_tokens[-1])
    return ends == (0, num_tokens - 1) and bool(np.isin(steps, (0, 1)).all())


def _loses_a_word(attempt: Attempt, usual: UsualDurations) -> bool:
    """Whether several tokens in a row have almost no frames."""
    is_short = attempt.durations < SHORTEST_TOKEN * usual.expected(attempt.tokens)
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
