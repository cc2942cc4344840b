"""Word and character error rates of an ASR's transcripts."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from myxtts.errors import UserError
from myxtts.evaluation.asr import Recording, time_first
from myxtts.evaluation.ceilings import answers
from myxtts.evaluation.extras import import_extra
from myxtts.evaluation.metrics.table import HARD_TEXTS
from myxtts.text.cleaners import normalise

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session


def sentence_errors(session: "Session") -> "dict[str, tuple[SentenceErrors, ...]]":
    """The errors in the transcript of each sentence, by source."""
    said = [one.text for one in session.subject.sentences]
    found, language = session.shared(transcripts), session.subject.language
    return {
        source: error_rates(said, found[source], language).sentences for source in session.judged
    }


def transcripts(session: "Session") -> dict[str, list[str]]:
    """Transcribe all that is judged, by source, and the hard texts."""
    asr, hard = session.judges.asr, session.subject.hard
    spoken = session.judged | ({HARD_TEXTS: hard.spoken} if hard else {})
    recordings = {
        source: [(samples, session.sample_rate) for samples in part]
        for source, part in spoken.items()
    }

    def transcribe(unknown: list[Recording]) -> list[str]:
        first = []
        if session.announce and len(unknown) > 1:
            first, estimate = time_first(asr, unknown)
            session.announce(estimate)
        with session.watch("listening", "recordings") as report:
            return [*first, *asr.transcribe_many(unknown[len(first) :], report)]

    return answers(session.cache, lambda: asr.identity, recordings, transcribe)


@dataclass(frozen=True, slots=True)
class SentenceErrors:
    """The words of a sentence and of its transcript, and how many of them are wrong."""

    said: str
    heard: str
    words: int
    substitutions: int
    deletions: int
    insertions: int
    characters: int
    character_errors: int

    @property
    def errors(self) -> int:
        """How many words are wrong."""
        return self.substitutions + self.deletions + self.insertions


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Word and character error rates over all sentences, and the count of each kind of error."""

    wer: float
    cer: float
    words: int
    substitutions: int
    deletions: int
    insertions: int
    sentences: tuple[SentenceErrors, ...]


def error_rates(
    references: Sequence[str], hypotheses: Sequence[str], language: str = "en"
) -> ErrorRates:
    """Compare texts with transcripts as plain words; an empty transcript deletes all words."""
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")
    said = [plain_words(text, language) for text in references]
    heard = [plain_words(text, language) for text in hypotheses]
    if not all(said) or not said:
        empty = [text for text, words in zip(references, said, strict=True) if not words]
        which = f"{empty[0]!r} has none" if empty else "there is no reference"
        raise UserError(f"error rates need references with words in them: {which}")
    sentences = tuple(map(_compare_words, said, heard))
    counts = {
        name: sum(getattr(one, name) for one in sentences)
        for name in ("words", "substitutions", "deletions", "insertions")
    }
    return ErrorRates(
        wer=sum(one.errors for one in sentences) / counts["words"],
        cer=sum(one.character_errors for one in sentences) / sum(map(len, said)),
        **counts,
        sentences=sentences,
    )


def plain_words(text: str, language: str) -> str:
    """Return the words in lower case, with numbers as words and without punctuation.

    Spellings stay as they are: "grey" and "gray" differ.
    """
    spoken = normalise(text, language).replace("'", "").replace("\u200c", "")
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in spoken)
    return " ".join("".join(kept).split())


def _compare_words(said: str, heard: str) -> SentenceErrors:
    jiwer = import_extra("jiwer", "jiwer, which counts errors,")
    words, characters = jiwer.process_words(said, heard), jiwer.process_characters(said, heard)
    return SentenceErrors(
        said,
        heard,
        words=len(said.split()),
        substitutions=words.substitutions,
        deletions=words.deletions,
        insertions=words.insertions,
        characters=len(said),
        character_errors=characters.substitutions + characters.deletions + characters.insertions,
    )
