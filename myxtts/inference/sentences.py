"""Long text in pieces to be said in one go: sentences, or parts of those that are too long."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

CLAUSE, SENTENCE, PARAGRAPH = "clause", "sentence", "paragraph"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text to be said in one go, and what ends with it."""

    text: str
    ends: str


def cut_text(text: str, language: str, fits: Callable[[str], bool]) -> list[Piece]:
    """Cut at the ends of sentences, and further wherever `fits` denies; no word is lost."""
    pieces = []
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        sentences = [_tidy(part) for part in cut_sentences(paragraph, language)]
        sentences = [sentence for sentence in sentences if sentence]
        for sentence in sentences:
            *clauses, last = cut_clauses(sentence, fits)
            pieces += [Piece(clause, CLAUSE) for clause in clauses]
            pieces.append(Piece(last, SENTENCE))
        if sentences:
            pieces[-1] = Piece(pieces[-1].text, PARAGRAPH)
    return pieces


def cut_sentences(text: str, language: str = "en") -> list[str]:
    """Cut after every mark that ends a sentence; put together, the parts are the text."""
    has_capitals = text != text.lower()
    ends = [0]
    for match in _MARKS.finditer(text):
        if _is_end(text, ends[-1], match, language, has_capitals):
            ends.append(match.end())
    return [text[a:b] for a, b in pairwise([*ends, len(text)]) if b > a]


def cut_clauses(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Halve a sentence until each part fits, at the best place near its middle."""
    if fits(sentence) or len(sentence) < 2:
        return [sentence]
    place = _best_place(sentence)
    parts = (sentence[:place].strip(), sentence[place:].strip())
    return [clause for part in parts if part for clause in cut_clauses(part, fits)]


def _is_end(text: str, start: int, match: re.Match, language: str, has_capitals: bool) -> bool:
    """Tell whether marks end the sentence that began at `start`."""
    if "\n" in match[0] or match["wide"]:
        return True
    following = text[match.end() : match.end() + 9].lstrip(_OPENING)[:1]
    # In a text without capitals a small letter tells nothing.
    if following.islower() and has_capitals:
        return False
    if match["mark"] != ".":
        return True
    before = text[max(start, match.start() - _LONGEST_WORD) : match.start()]
    return not _is_abbreviated(before, following, language)


def _is_abbreviated(before: str, following: str, language: str) -> bool:
    """Tell whether a single dot belongs to the word before it."""
    word = before.rsplit(maxsplit=1)[-1].lstrip(_OPENING) if before.strip() else ""
    if word.isdecimal():  # a numbered line, and ordinals in the languages that write them so
        return word == before.strip() or language in _DOTTED_ORDINALS
    if word.lower() in _BEFORE_NUMBERS and following.isdecimal():
        return True
    is_initial = len(word) == 1 and word.isalpha() and word != "I" and not _is_wide(word)
    known = _ABBREVIATIONS.get(language, ())
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
_MIDDLE_PART = 0.7
_LONGEST_WORD = 40  # letters to look back for what a dot belongs to
_DOTTED_ORDINALS = ("de", "cs", "hu", "pl", "tr")
# "U.S", "e.g", "ه.ش": letters with dots between them, the last dot being the one in question.
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_BEFORE_NUMBERS = frozenset(
    "no nos nr núm num č vol fig ch p pp s str pág pag стр рис jan feb mar apr jun jul aug sep "
    "sept oct nov dec".split()
)
# Words that do not end a sentence when a dot follows them: titles, and what promises more to come.
_ABBREVIATIONS = {
    language: frozenset(words.split())
    for language, words in {
        "en": "mr mrs ms messrs dr prof rev hon gen col maj capt lt sgt cpl gov sen rep pres st mt "
        "ft vs cf approx viz",
        "de": "hr hrn fr frl dr prof st bzw ca evtl ggf inkl sog vgl zzgl",
        "fr": "dr mme mlle mgr prof av bd cf",
        "es": "sr sra srta dr dra prof ud uds d dña av",
        "pt": "sr sra srta dr dra prof profa exmo av",
        "it": "sig sigg dott prof avv ing geom",
        "nl": "dhr mevr mw dr drs prof mr bijv ca",
        "pl": "np tzn tzw dr prof im ul al św",
        "cs": "např tzv tj dr mudr judr ing bc mgr prof",
        "hu": "dr prof pl ill ún ifj",
        "tr": "dr prof doç av sn bkz örn",
        "ru": "г ул им проф см напр акад обл гр",
    }.items()
}
