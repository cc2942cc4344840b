"""What a corpus is made of: utterances, and lines that could not become one."""

from dataclasses import dataclass
from pathlib import Path

from myxtts.audio.io import MISSING
from myxtts.errors import UserError

NO_TEXT = "no text"
TEXT_TOO_LONG = "text too long"
UNREADABLE_TEXT = "unreadable text"
DUPLICATE = "duplicate id"
OUTSIDE = "outside the corpus"
MALFORMED = "malformed line"
NO_SPEAKER = "no speaker"
REASONS = (
    MISSING, NO_TEXT, TEXT_TOO_LONG, UNREADABLE_TEXT, DUPLICATE, OUTSIDE, MALFORMED, NO_SPEAKER
)  # fmt: skip


class CorpusError(UserError):
    """A corpus that cannot be read: what was seen, and what to do."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording with what is said in it, by whom and in which language."""

    id: str
    audio: Path
    text: str
    speaker: str
    language: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """One line or recording that is not used."""

    id: str
    reason: str
    detail: str
    seconds: float = 0.0


def shorten(text: str, length: int = 60) -> str:
    """Cut what is shown to a user to a readable length."""
    return text if len(text) <= length else text[: length - 3] + "..."
