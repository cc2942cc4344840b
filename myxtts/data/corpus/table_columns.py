"""Which column of a metadata table is what: by its header, else by what the first rows hold."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from myxtts.data.corpus.recordings import Locator, without_extension
from myxtts.data.corpus.utterance import CorpusError, shorten
from myxtts.data.rejections import MALFORMED

RECORDING, TEXT, SPEAKER, LANGUAGE = "recording", "text", "speaker", "language"
SECONDS, RAW_TEXT, IGNORED = "seconds", "raw text", "ignored"

# Header names, best first: a path says more than an id, a normalised text more than a raw one.
HEADER_NAMES = {
    RECORDING: (
        "audio_file audio_filepath audio_path audio wav_file wav_path wav_filename wav path "
        "file_path filepath file_name filename file clip basename utterance_id file_id id"
    ).split(),
    TEXT: (
        "normalized_text normalised_text text_normalized normalized_transcription text "
        "transcript transcription sentence raw_text raw_transcription"
    ).split(),
    SPEAKER: "speaker_name speaker speaker_id spk spk_id sid client_id voice".split(),
    LANGUAGE: "language lang locale language_id".split(),
    SECONDS: "duration seconds".split(),
}
LANGUAGE_CODES = frozenset(
    (
        "af ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is "
        "it ja ka kk kn ko ku lb lt lv mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru sk sl "
        "sq sr sv sw ta te tg th tk tl tr tt ug uk ur uz vi yo yue zh zu"
    ).split()
)

_MOST_COLUMNS = 200
_LONGEST_NAME = 64  # of a speaker
_PEEK = 1000  # characters of a field that are looked at: enough to judge, however long it is


class MetadataRow(NamedTuple):
    """One line of metadata; `reason` and `detail` say why it cannot be used."""

    line: int
    recording: str
    text: str = ""
    speaker: str = ""
    language: str = ""
    seconds: float = 0.0
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Columns:
    """The role of each column, and how a line's fields become a row."""

    count: int
    recording: int
    texts: tuple[int, ...]  # best first: the next one serves where one is empty
    speaker: int | None = None
    language: int | None = None
    seconds: int | None = None

    def describe(self) -> str:
        """Name the roles in the order of the columns."""
        roles = [IGNORED] * self.count
        roles[self.recording] = RECORDING
        for column in self.texts:
            roles[column] = RAW_TEXT
        roles[self.texts[0]] = TEXT
        for role in (SPEAKER, LANGUAGE, SECONDS):
            if (column := getattr(self, role)) is not None:
                roles[column] = role
        return " | ".join(roles)

    def row(self, line: int, fields: list[str]) -> MetadataRow:
        """Pick a line's fields by their roles."""
        if len(fields) != self.count:
            fields = self._fit(fields)
            if not fields:
                return MetadataRow(line, "", reason=MALFORMED, detail=f"not {self.count} fields")
        text = ""
        for column in self.texts:
            if text := fields[column].strip():
                break
        return MetadataRow(
            line,
            fields[self.recording].strip(),
            text,
            "" if self.speaker is None else fields[self.speaker].strip(),
            "" if self.language is None else language_code(fields[self.language]),
            0.0 if self.seconds is None else _number(fields[self.seconds]),
        )

    def _fit(self, fields: list[str]) -> list[str]:
        """Bring a line to the table's width, or return nothing where that would be a guess."""
        if len(fields) < self.count:
            first_text = min(self.texts)
            whole = len(fields) > max(self.recording, first_text)
            return fields + [""] * (self.count - len(fields)) if whole else []
        extra = fields[self.count :]
        return fields[: self.count] if not any(field.strip() for field in extra) else []


@dataclass(frozen=True)
class OpenEnded(Columns):
    """Columns whose last is the only text: delimiters in it belong to the text."""

    delimiter: str = "|"

    def _fit(self, fields: list[str]) -> list[str]:
        if len(fields) < self.count:
            return super()._fit(fields)
        last = self.count - 1
        return [*fields[:last], self.delimiter.join(fields[last:])]


def find_columns(
    header: Sequence[str] | None, rows: Sequence[list[str]], delimiter: str, locator: Locator
) -> tuple[Columns, Locator]:
    """Decide what each column is, and how the recording column names its recordings."""
    width = len(header) if header else _usual_width(rows)
    if width < 2:
        raise CorpusError(
            "no delimiter (|, tab or comma) separates recordings from texts; write one utterance "
            f"a line as id|text. The first line is {shorten(_first_line(rows))!r}"
        )
    if width > _MOST_COLUMNS:
        raise CorpusError(
            f"its lines have {width:,} columns, which is no metadata. Write one utterance a line "
            f"as id|text. The first line is {shorten(_first_line(rows))!r}"
        )
    # What a text's own delimiters cut off does not matter for judging a column.
    samples = [[row[column].strip()[:_PEEK] for row in rows if column < len(row)]
               for column in range(width)]  # fmt: skip
    roles = header_roles(header) if header else {}
    recording, locator = _find_recordings(samples, roles.get(RECORDING, range(width)), locator)
    if header:
        columns = Columns(
            width,
            recording,
            tuple(roles[TEXT]),
            *(roles[role][0] if role in roles else None for role in (SPEAKER, LANGUAGE, SECONDS)),
        )
    else:
        columns = _judge(samples, recording, locator)
    if columns.texts == (width - 1,):
        columns = OpenEnded(**vars(columns), delimiter=delimiter)
    return columns, locator


def header_roles(fields: Sequence[str]) -> dict[str, list[int]]:
    """Return the columns of each role, best first; nothing unless recording and text are named."""
    names = [re.sub(r"[\s-]+", "_", field.strip().lower()) for field in fields]
    roles = {
        role: [names.index(name) for name in known if name in names]
        for role, known in HEADER_NAMES.items()
    }
    roles = {role: columns for role, columns in roles.items() if columns}
    return roles if RECORDING in roles and TEXT in roles else {}


def language_code(written: str) -> str:
    """Spell a language code as `en` or `zh-cn`."""
    return written.strip().lower().replace("_", "-")


def is_numbers(text: str) -> bool:
    """Whether a text has digits and not one letter."""
    text = text[:_PEEK]
    return any(map(str.isdigit, text)) and not any(map(str.isalpha, text))


def _usual_width(rows: Sequence[list[str]]) -> int:
    """Return the most common number of fields, or the least one where texts hold delimiters."""
    widths = Counter(map(len, rows))
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    if count >= 0.8 * len(rows):
        return width
    return min((other for other in widths if other > 1), default=width)


def _find_recordings(
    samples: list[list[str]], candidates: Sequence[int], locator: Locator
) -> tuple[int, Locator]:
    """Return the column with most recordings; names that do not resolve may need adapting."""

    def found(column: int, locator: Locator) -> float:
        return locator.count(samples[column]) / max(1, len(samples[column]))

    best = max(candidates, key=lambda column: found(column, locator))
    if found(best, locator) >= 0.5:
        return best, locator
    variants = [(column, locator.adapted(samples[column])) for column in candidates]
    best, variant = max(variants, key=lambda choice: found(*choice))
    if found(best, variant) > 0:
        return best, variant
    # Nothing is there: take the column that looks like paths, so that the report can say so.
    looks = [sum(without_extension(name) != name for name in samples[c]) for c in candidates]
    return candidates[looks.index(max(looks))], locator


def _judge(samples: list[list[str]], recording: int, locator: Locator) -> Columns:
    """Tell texts, speaker and language apart by what the columns hold."""
    left = [column for column in range(len(samples)) if column != recording]
    left = [column for column in left if not _names_recordings(samples[column], locator)]
    language = next((column for column in left if _is_language(samples[column])), None)
    left = [column for column in left if column != language]
    texts = _find_texts({column: samples[column] for column in left})
    left = [column for column in left if column not in texts]
    speaker = next((column for column in left if _is_speaker(samples[column])), None)
    return Columns(len(samples), recording, texts, speaker, language)


def _find_texts(samples: dict[int, list[str]]) -> tuple[int, ...]:
    """Return the text column, preceded by a later one that spells the same text out."""
    worded = {
        column: _TextLikeness.of(values)
        for column, values in samples.items()
        if not _share(values, is_numbers) > 0.9 and not _share(values, _is_phonetic) > 0.5
    }
    if not worded or not any(likeness.length for likeness in worded.values()):
        numbers = next((value for values in samples.values() for value in values if value), "")
        raise CorpusError(
            f"no column holds text: there is only {shorten(numbers)!r} and the like. "
            "Write words next to each recording, as in id|text; numbers or token ids will not do"
        )
    best = max(worded.values(), key=_TextLikeness.score)
    alike = [column for column, likeness in worded.items() if likeness.resembles(best)]
    return tuple(reversed(alike))


class _TextLikeness(NamedTuple):
    """How much a column looks like sentences."""

    length: float  # in characters, on average
    spaced: float  # the share of values with a space inside
    distinct: float  # different values, as a share of all

    @classmethod
    def of(cls, values: list[str]) -> "_TextLikeness":
        count = max(1, len(values))
        return cls(
            sum(map(len, values)) / count,
            _share(values, lambda value: " " in value),
            len(set(values)) / count,
        )

    def score(self) -> float:
        return self.length * self.distinct * (1 + self.spaced)

    def resembles(self, other: "_TextLikeness") -> bool:
        return (
            self.length >= 0.5 * other.length
            and abs(self.spaced - other.spaced) <= 0.5
            and self.distinct >= 0.5 * other.distinct
        )


def _names_recordings(values: list[str], locator: Locator) -> bool:
    return locator.count(values) >= 0.5 * max(1, len(values))


def _is_language(values: list[str]) -> bool:
    return _share(values, lambda value: language_code(value).split("-")[0] in LANGUAGE_CODES) > 0.95


def _is_speaker(values: list[str]) -> bool:
    """Claim a speaker column: short names that recur (a small sample need not show it)."""
    if not values or _share(values, lambda value: len(value) > _LONGEST_NAME) > 0.05:
        return False
    if _share(values, _is_phonetic) > 0.5 or _share(values, _is_fraction) > 0.5:
        return False  # fractions are seconds
    return len(values) < 20 or len(set(values)) <= len(values) / 2


def _is_fraction(value: str) -> bool:
    return "." in value and is_numbers(value)


def _is_phonetic(value: str) -> bool:
    return value.startswith("{") or any(mark in value for mark in "ˈˌː")


def _share(values: list[str], claim: Callable[[str], object]) -> float:
    """Return the share of the values that are not empty for which a claim holds."""
    values = [value for value in values if value]
    return sum(map(bool, map(claim, values))) / max(1, len(values))


def _number(written: str) -> float:
    try:
        number = float(written)
    except ValueError:
        return 0.0
    return number if 0.0 <= number < math.inf else 0.0


def _first_line(rows: Sequence[list[str]]) -> str:
    return "".join(rows[0]) if rows else ""
