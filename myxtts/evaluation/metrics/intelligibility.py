"""What an ASR understands of speech: word and character error rates."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.errors import UserError
from myxtts.evaluation.asr import Recording, time_first
from myxtts.evaluation.ceilings import answers
from myxtts.evaluation.metrics.table import SPEECH
from myxtts.text.cleaners import normalise

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session


@dataclass(frozen=True, slots=True)
class Transcripts:
    """What the ASR made of each source, and of the hard texts."""

    sources: dict[str, list[str]]
    hard: list[str]


def word_errors(session: "Session") -> dict[str, np.ndarray]:
    """Of each sentence [sentences, 2], how many words are wrong and how many there are."""
    return {source: one.word_counts for source, one in session.shared(_error_rates).items()}


def character_errors(session: "Session") -> dict[str, np.ndarray]:
    """Of each sentence [sentences, 2], how many characters are wrong and how many there are."""
    return {source: one.character_counts for source, one in session.shared(_error_rates).items()}


def transcripts(session: "Session") -> Transcripts:
    """Transcribe all that is judged, and the hard texts; ceilings are taken from the cache."""
    sources, asr, rate = session.judged, session.judges.asr, session.sample_rate
    hard = list(session.subject.hard.spoken) if session.subject.hard else []
    speech = [one for part in sources.values() for one in part] + hard
    recordings = [(samples, rate) for samples in speech]
    is_kept = [name != SPEECH for name, part in sources.items() for _ in part]
    is_kept += [False] * len(hard)

    def transcribe(unknown: list[Recording]) -> list[str]:
        first = []
        if session.announce and len(unknown) > 1:
            first, estimate = time_first(asr, unknown)
            session.announce(estimate)
        with session.watch("listening", "recordings") as report:
            return [*first, *asr.transcribe_many(unknown[len(first) :], report)]

    texts = iter(answers(session.cache, lambda: asr.identity, recordings, is_kept, transcribe))
    found = {source: [next(texts) for _ in part] for source, part in sources.items()}
    return Transcripts(found, list(texts))


def _error_rates(session: "Session") -> "dict[str, ErrorRates]":
    said = [one.text for one in session.subject.sentences]
    found = session.shared(transcripts).sources
    return {
        source: error_rates(said, texts, session.subject.language)
        for source, texts in found.items()
    }


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

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def word_counts(self) -> np.ndarray:
        """Of each sentence [sentences, 2], how many words are wrong and how many there are."""
        return np.array([(one.errors, one.words) for one in self.sentences])

    @property
    def character_counts(self) -> np.ndarray:
        """Of each sentence [sentences, 2], how many characters are wrong and how many there are."""
        return np.array([(one.character_errors, one.characters) for one in self.sentences])


def error_rates(
    references: Sequence[str], hypotheses: Sequence[str], language: str = "en"
) -> ErrorRates:
    """Compare texts with transcripts, both as plain words; an empty transcript deletes them all."""
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")
    said = [plain_words(text, language) for text in references]
    heard = [plain_words(text, language) for text in hypotheses]
    if not all(said) or not said:
        empty = [text for text, words in zip(references, said, strict=True) if not words]
        which = f"{empty[0]!r} has none" if empty else "there is no reference"
        raise UserError(f"error rates need references with words in them: {which}")
    jiwer = _import_jiwer()
    result = jiwer.process_words(said, heard)
    characters = jiwer.process_characters(said, heard)
    alignments = zip(result.alignments, characters.alignments, strict=True)
    return ErrorRates(
        wer=result.wer,
        cer=characters.cer,
        words=sum(map(len, result.references)),
        substitutions=result.substitutions,
        deletions=result.deletions,
        insertions=result.insertions,
        sentences=tuple(map(_sentence_errors, said, heard, alignments)),
    )


def plain_words(text: str, language: str) -> str:
    """Return the words alone: lower case, numbers spoken, without punctuation or apostrophes.

    Spellings are left as they are: "grey" and "gray" differ.
    """
    spoken = normalise(text, language).replace("'", "").replace("\u200c", "")
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in spoken)
    return " ".join("".join(kept).split())


def _sentence_errors(
    said: str, heard: str, alignments: tuple[Sequence, Sequence]
) -> SentenceErrors:
    words, characters = map(_count_errors, alignments)
    return SentenceErrors(
        said,
        heard,
        words=len(said.split()),
        substitutions=words["substitute"],
        deletions=words["delete"],
        insertions=words["insert"],
        characters=len(said),
        character_errors=sum(characters.values()),
    )


def _count_errors(alignment: Sequence) -> dict[str, int]:
    counts = {"substitute": 0, "delete": 0, "insert": 0}
    for chunk in alignment:
        said = chunk.ref_end_idx - chunk.ref_start_idx
        heard = chunk.hyp_end_idx - chunk.hyp_start_idx
        if chunk.type != "equal":
            counts[chunk.type] += max(said, heard)
    return counts


def _import_jiwer():
    try:
        import jiwer
    except ImportError as error:
        raise UserError(
            f"jiwer, which counts errors, cannot be imported ({error}); install it with "
            'pip install "myxtts[eval]"'
        ) from error
    return jiwer
