"""Whether an exported voice speaks as the trained one does: the same texts through both."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from myxtts.errors import UserError
from myxtts.text.languages import LANGUAGES, greeting

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.inference.speech import Speech

RATES = (0.5, 1.0, 2.0)
MOST_TEXTS, MOST_SPEAKERS = 6, 3  # of a language, and of a voice
MOST_MEL, MOST_RMS = 1e-3, 3e-3  # of log-mels, and of samples within -1 .. 1
# A duration is rounded to whole frames: once in a while it falls on the other side.
MOST_ROUNDED = 0.02

Speak = Callable[["Case"], "Speech"]


@dataclass(frozen=True)
class Case:
    """A text, and how it is said."""

    text: str
    language: str
    speaker: str
    speaking_rate: float


@dataclass(frozen=True)
class Parity:
    """What the engines make of the same cases: the largest differences where durations are equal.

    Vocoders make a thousand times more of what rounding changes in a mel, where a harmonic comes or
    goes: what is judged is `rms`, the root mean square over a text, its median over all texts.
    Griffin-Lim is the same code for both engines, and not judged at all.
    """

    cases: int
    other_durations: int
    largest_duration: int
    samples: float | None
    rms: float | None
    mel: float | None
    mean_mel: float | None
    seconds: float
    judges_samples: bool = True

    @property
    def holds(self) -> bool:
        """Whether an export of all bits may differ so much."""
        few = max(1, round(MOST_ROUNDED * self.cases)) if self.largest_duration <= 1 else 0
        if self.other_durations > few or self.mel is None or self.rms is None:
            return False
        is_near = self.rms <= MOST_RMS or not self.judges_samples
        return is_near and self.mel <= MOST_MEL

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        durations = (
            f"{self.cases} texts, {self.seconds:.0f} s of speech: {self.other_durations} with "
            f"other durations (by {self.largest_duration} frames at most)"
        )
        if self.mel is None:
            return f"{durations}, so that samples and mels cannot be compared"
        return (
            f"{durations}, samples within {self.samples:.1e} (RMS {self.rms:.1e}), mels within "
            f"{self.mel:.1e} ({self.mean_mel:.1e} on average)"
        )


def choose_cases(voice: "Voice", most_texts: int = MOST_TEXTS) -> list[Case]:
    """Texts in every language of a voice, by some speakers, at several rates."""
    speakers = voice.speakers[:MOST_SPEAKERS]
    found = []
    for language in voice.languages:
        texts = _texts(language)[:most_texts]
        ways = list(product(speakers, RATES))
        for number, text in enumerate(texts):
            speaker, rate = ways[number % len(ways)]
            found.append(Case(text, language, speaker, rate))
    return found


def compare(
    cases: Iterable[Case], trained: Speak, exported: Speak, judges_samples: bool = True
) -> Parity:
    """Say every case with both, and measure how far apart they are."""
    pairs = [_difference(trained(case), exported(case)) for case in cases]
    if not pairs:
        raise UserError("there is no text to compare the engines with")
    same = [pair for pair in pairs if not pair.frames]
    return Parity(
        len(pairs),
        len(pairs) - len(same),
        max(pair.frames for pair in pairs),
        max((pair.samples for pair in same), default=None),
        float(np.median([pair.rms for pair in same])) if same else None,
        max((pair.mel for pair in same), default=None),
        float(np.mean([pair.mean_mel for pair in same])) if same else None,
        sum(pair.seconds for pair in pairs),
        judges_samples,
    )


@dataclass(frozen=True)
class _Difference:
    frames: int  # of the token that differs most
    samples: float
    rms: float
    mel: float
    mean_mel: float
    seconds: float


def _difference(first: "Speech", second: "Speech") -> _Difference:
    if first.tokens.shape != second.tokens.shape:
        raise UserError("the exported voice reads a text as other tokens than the trained one")
    frames = int(np.abs(first.durations - second.durations).max())
    if first.mel.shape != second.mel.shape:  # the end may be predicted in another group of frames
        return _Difference(max(frames, 1), 0.0, 0.0, 0.0, 0.0, first.seconds)
    samples, mel = np.abs(first.samples - second.samples), np.abs(first.mel - second.mel)
    rms = float(np.sqrt(np.square(samples).mean()))
    sizes = float(samples.max()), rms, float(mel.max()), float(mel.mean())
    return _Difference(frames, *sizes, first.seconds)


def _texts(language: str) -> Sequence[str]:
    """Sentences of a language: its hard ones, or a greeting where it has none."""
    row = LANGUAGES.get(language)
    hard = [text for texts in row.hard_sentences.values() for text in texts] if row else []
    # Of each kind one, then the next: kinds stand in a row.
    spread = hard[:: max(1, len(hard) // MOST_TEXTS)]
    return [greeting(language), *spread]
