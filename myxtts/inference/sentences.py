"""Long text cut into segments that are synthesized one at a time: sentences, or parts of long ones.

A text is read as a stream: decisions about a sentence depend on the text before it and on at most
`WINDOW` characters from its beginning. So a longer sentence is cut, and a paragraph counts as
written without capitals where the part that was read has none.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from myxtts.text.languages import LANGUAGES

PHRASE, CLAUSE, SENTENCE, PARAGRAPH = "phrase", "clause", "sentence", "paragraph"
WINDOW = 4096


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that is synthesized at once, and what ends with it."""

    text: str
    ends: str


def cut_text(
    text: str | Iterable[str], language: str, fits: Callable[[str], bool]
) -> Iterator[Segment]:
    """Cut at the ends of sentences, and further where a segment does not fit; no word is lost.

    The text may come in parts, which are read no further than the next segment needs.
    """
    held = None  # the last segment: an empty line may follow, which makes it end a paragraph
    for part in _Reader(text, language):
        sentence = _tidy(part.text)
        if sentence:
            *clauses, last = cut_clauses(sentence, fits)
            if held:
                yield held
            yield from (Segment(clause, CLAUSE) for clause in clauses)
            held = Segment(last, part.ends)
        elif held and part.ends == PARAGRAPH:
            held = Segment(held.text, PARAGRAPH)
        if held and held.ends == PARAGRAPH:
            yield held
            held = None
    if held:
        yield Segment(held.text, PARAGRAPH)


def cut_opening(segments: Iterable[Segment], letters: int) -> Iterator[Segment]:
    """Cut the first segment in two where it is longer than about so many letters.

    It ends at its first mark or, if that is far away, at a space where no number is next to it:
    how a number is read depends on its neighbours.
    """
    segments = iter(segments)
    first = next(segments, None)
    if first is None:
        return
    place, ends = _opening_place(first.text, letters)
    if place:
        yield Segment(first.text[:place].strip(), ends)
        first = Segment(first.text[place:].strip(), first.ends)
    yield first
    yield from segments


def _opening_place(text: str, letters: int) -> tuple[int, str]:
    """Where an opening ends, and what ends with it; 0 where the text stays whole."""
    latest = len(text) - letters // 2  # the rest is no scrap
    near = min(2 * letters, latest)
    marks = (pattern.search(text, letters // 4, near) for pattern in _PLACES[:-1])
    if places := [match.end() for match in marks if match]:
        return min(places), CLAUSE
    space = _BETWEEN_WORDS.search(text, letters, latest)
    return (space.end(), PHRASE) if space else (0, SENTENCE)


def cut_sentences(text: str | Iterable[str], language: str = "en") -> Iterator[str]:
    """Cut after every mark that ends a sentence; put together, the parts are the text."""
    return (part.text for part in _Reader(text, language))


class _Reader:
    """Reads a text part by part and finds where its sentences end."""

    def __init__(self, text: str | Iterable[str], language: str):
        self._source = iter(_blocks(text) if isinstance(text, str) else text)
        self._language = language
        self._buffer = ""
        self._start = 0  # of the sentence, in the buffer; one character before it is kept
        self._is_over = False
        self._has_capitals = False  # in what was read of the paragraph
        self._looked_for_capitals = False  # from the sentence on

    def __iter__(self) -> Iterator[Segment]:
        """Yield every sentence with the spaces around it."""
        while self._fill():
            end, ends = self._find_end()
            part = self._buffer[self._start : end]
            self._has_capitals = ends != PARAGRAPH and (self._has_capitals or _has_capitals(part))
            self._start, self._looked_for_capitals = end, False
            yield Segment(part, ends)

    def _fill(self) -> bool:
        """Read until the window is full or the text is over; return whether anything is left."""
        missing = self._start + WINDOW + _AHEAD - len(self._buffer)
        if missing > 0 and not self._is_over:
            parts = [self._buffer[max(self._start - 1, 0) :]]
            while missing > 0 and (part := next(self._source, None)) is not None:
                parts.append(part)
                missing -= len(part)
            self._is_over = missing > 0
            self._start = min(self._start, 1)
            self._buffer = "".join(parts)
        return self._start < len(self._buffer)

    def _find_end(self) -> tuple[int, str]:
        """Find where the sentence ends, and what ends with it."""
        limit = self._start + WINDOW
        for match in _MARKS.finditer(self._buffer, self._start, limit):
            # At the window's edge what follows is unknown: the sentence is cut there anyway.
            if match.end() >= limit < len(self._buffer):
                break
            if self._is_end(match):
                return match.end(), PARAGRAPH if match[0].count("\n") > 1 else SENTENCE
        if len(self._buffer) <= limit:
            return len(self._buffer), SENTENCE
        return _last_place(self._buffer, self._start, limit), CLAUSE

    def _is_end(self, match: re.Match) -> bool:
        """Whether marks end the sentence."""
        if "\n" in match[0] or match["wide"]:
            return True
        text = self._buffer
        following = text[match.end() : match.end() + _AHEAD].lstrip(_OPENING)[:1]
        # In a text without capitals a small letter means nothing.
        if following.islower() and self._paragraph_has_capitals():
            return False
        if match["mark"] != ".":
            return True
        before = text[max(self._start, match.start() - _LONGEST_WORD) : match.start()]
        return not _is_abbreviated(before, following, self._language)

    def _paragraph_has_capitals(self) -> bool:
        if not self._has_capitals and not self._looked_for_capitals:
            self._looked_for_capitals = True
            window = self._buffer[self._start : self._start + WINDOW]
            self._has_capitals = _has_capitals(_BREAK.split(window, maxsplit=1)[0])
        return self._has_capitals


def _blocks(text: str) -> Iterator[str]:
    return (text[at : at + WINDOW] for at in range(0, len(text), WINDOW))


def _has_capitals(text: str) -> bool:
    return text != text.lower()


def _last_place(text: str, start: int, limit: int) -> int:
    """Find where to cut a sentence without an end: at the last strong mark, or a space, or here."""
    for pattern in _PLACES:
        places = [match.end() for match in pattern.finditer(text, (start + limit) // 2, limit)]
        if places:
            return places[-1]
    whole = (at for at in range(limit, start, -1) if not unicodedata.combining(text[at]))
    return next(whole, limit)


def cut_clauses(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Halve a sentence until each part fits, at the best place near its middle."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    place = _best_place(sentence)
    parts = (sentence[:place].strip(), sentence[place:].strip())
    return [clause for part in parts if part for clause in cut_clauses(part, fits)]


def _is_abbreviated(before: str, following: str, language: str) -> bool:
    """Whether a single dot belongs to the word before it."""
    row = LANGUAGES.get(language)
    word = before.rsplit(maxsplit=1)[-1].lstrip(_OPENING) if before.strip() else ""
    if word.isdecimal():  # a numbered line, and ordinals in the languages that write them so
        return word == before.strip() or bool(row and row.has_dotted_ordinals)
    if word.lower() in _BEFORE_NUMBERS and following.isdecimal():
        return True
    is_initial = len(word) == 1 and word.isalpha() and word != "I" and not _is_wide(word)
    known = row.abbreviations if row else ()
    return is_initial or word.lower() in known or bool(_DOTTED.fullmatch(word))


def _best_place(sentence: str) -> int:
    """Find where to cut: the strongest mark in the middle part, or a space, or any letter."""
    middle = len(sentence) / 2
    for pattern in _PLACES:
        places = [match.end() for match in pattern.finditer(sentence)]
        near = [place for place in places if abs(place - middle) < _MIDDLE_PART * middle]
        if near:
            return min(near, key=lambda place: abs(place - middle))
    # A mark would go with the letter before it: a word is cut only between whole characters.
    whole = (i for i in _from_middle(len(sentence)) if not unicodedata.combining(sentence[i]))
    return next(whole, len(sentence) // 2)


def _from_middle(length: int) -> Iterator[int]:
    """Yield the places within a text from its middle outwards."""
    yield from sorted(range(1, length), key=lambda place: abs(place - length // 2))


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


_BREAK = re.compile(r"\n\s*\n")
_OPENING = "\"'“„«‹(["
# Closing quotes and brackets belong to the sentence. Marks that are used in no other way need no
# space after them, and scripts without spaces have none.
_CLOSING = "[\"'”’»›)\\]】」』]*+"
_MARKS = re.compile(
    rf"(?P<wide>[。！？｡؟۔।॥]++[!?…]*+{_CLOSING})\s*+"
    rf"|(?<![.!?…])(?P<mark>[.!?…]++){_CLOSING}(?:\s++|$)"
    r"|\n\s*+"
)
# From strong to weak; the last is any space.
_PLACES = tuple(
    re.compile(pattern) for pattern in (r"[;:؛…]\s|[—–；：]\s?", r"[,،]\s|[、，]\s?|\s-\s", r"\s")
)
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_])\s(?=[^\W\d_])")
_MIDDLE_PART = 0.7
_AHEAD = 9  # characters after a mark, the first of which that is no opening quote is looked at
_LONGEST_WORD = 40  # letters to look back for what a dot belongs to
# "U.S", "e.g", "ه.ش": letters with dots between them, the last dot being the one in question.
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_BEFORE_NUMBERS = frozenset(
    "no nos nr núm num č vol fig ch p pp s str pág pag стр рис jan feb mar apr jun jul aug sep "
    "sept oct nov dec".split()
)
