"""Whether a voice says all of a text and then ends: lengths, lost words and broken alignments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.evaluation.asr import ErrorRates

# Speech this much shorter or longer than a recording of the same words did not say them.
SHORTEST, LONGEST = 0.5, 2.0
LONGEST_SOUND = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Lengths:
    """Spoken against recorded length: over all sentences, and of the extreme ones."""

    ratio: float
    lowest: float
    highest: float
    too_short: frozenset[int]
    too_long: frozenset[int]


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


def lost(spoken: ErrorRates, recorded: ErrorRates) -> frozenset[int]:
    """Return the sentences of which less than half as many words were heard as in a recording."""
    pairs = zip(spoken.sentences, recorded.sentences, strict=True)
    return _numbers([2 * len(a.heard.split()) < len(b.heard.split()) for a, b in pairs])


def is_complete(frame_tokens: np.ndarray, num_tokens: int) -> bool:
    """Tell whether frames go through all tokens, from the first to the last, without a jump."""
    steps = np.diff(frame_tokens)
    ends = (frame_tokens[0], frame_tokens[-1])
    return ends == (0, num_tokens - 1) and bool(np.isin(steps, (0, 1)).all())


def _numbers(flags) -> frozenset[int]:
    return frozenset(np.flatnonzero(flags).tolist())
