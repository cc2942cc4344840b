"""What a corpus is made of: utterances, and lines that could not become one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from myxtts.errors import UserError


class CorpusError(UserError):
    """A corpus that cannot be read: what was seen, and what to do."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording with what is said in it, by whom and in which language.

    It is played `speed` times as fast as it was recorded, and pitch and formants rise with that.
    """

    id: str
    audio: Path
    text: str
    speaker: str
    language: str
    speed: float = 1.0


# From mild to strong, in turn higher and lower: a voice at another speed is somebody else's.
SPEEDS = (1.12, 0.89, 1.06, 0.94, 1.18, 0.84, 1.25, 0.8)


def with_speed_perturbation(utterances: Sequence[Utterance], voices: int) -> list[Utterance]:
    """Add so many voices to each speaker's own, by all of its recordings at another speed."""
    return [*utterances] + [
        replace(
            one,
            id=f"{one.id}@{speed:g}",
            speaker=f"{one.speaker}@{speed:g}",
            speed=speed,
        )
        for speed in SPEEDS[:voices]
        for one in utterances
    ]


def shorten(text: str, length: int = 60) -> str:
    """Cut what is shown to a user to a readable length."""
    return text if len(text) <= length else text[: length - 3] + "..."
