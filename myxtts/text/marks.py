"""Text with marks: words whose sound is not that of their letters.

A mark takes the place of its words as one character of a private area of Unicode, so that cutting a
text into sentences never cuts a mark. Such characters in a text itself have no sound and are
removed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from myxtts.text.errors import TextError

_FIRST, _LAST = 0xF0000, 0x10FFFD
_PLACE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_LONGEST_INLINE = 500
_INLINE = re.compile(rf"\[\[(.{{0,{_LONGEST_INLINE}}}?)\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written, what is read in its place, and perhaps the IPA of that."""

    written: str
    read: str
    ipa: str | None = None


@dataclass(slots=True)
class Marks:
    """The marks of a text; equal ones share a character."""

    _characters: dict[Mark, str] = field(default_factory=dict)
    _marks: list[Mark] = field(default_factory=list)

    def add(self, mark: Mark) -> str:
        """Return the character that stands for a mark."""
        if mark not in self._characters:
            if _FIRST + len(self._marks) > _LAST:
                raise TextError(f"more than {_LAST - _FIRST + 1:,} pronunciations in one text")
            self._characters[mark] = chr(_FIRST + len(self._marks))
            self._marks.append(mark)
        return self._characters[mark]

    def get(self, character: str) -> Mark | None:
        """Return the mark that a character stands for, if it does."""
        index = ord(character) - _FIRST
        return self._marks[index] if 0 <= index < len(self._marks) else None

    def cut(self, text: str) -> list[str | Mark]:
        """Cut a text into marks and what is between them."""
        found: list[str | Mark] = []
        for part in _PLACES.split(text):
            mark = self.get(part) if len(part) == 1 else None
            if mark or part:
                found.append(mark or part)
        return found


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text and the marks in it."""

    text: str
    marks: Marks


_PLACES = re.compile(f"({_PLACE.pattern})")


def without_places(text: str) -> str:
    """Remove characters that could be taken for marks."""
    return _PLACE.sub("", text)


def mark_inline(text: str | Iterable[str], marks: Marks) -> str | Iterator[str]:
    """Replace every `[[ ipa ]]` by a mark, in a text or its parts as they come."""
    if isinstance(text, str):
        return _mark_all(text, marks)
    return _mark_parts(text, marks)


def _mark_parts(parts: Iterable[str], marks: Marks) -> Iterator[str]:
    """Mark a text that comes in parts; one that ends within `[[` waits for the next."""
    held = ""
    for part in parts:
        held += part
        opened = held.rfind("[")
        opened -= opened > 0 and held[opened - 1] == "["
        is_open = opened >= 0 and "]]" not in held[opened:]
        end = opened if is_open and len(held) - opened <= _LONGEST_INLINE else len(held)
        if end:
            yield _mark_all(held[:end], marks)
        held = held[end:]
    if held:
        yield _mark_all(held, marks)


def _mark_all(text: str, marks: Marks) -> str:
    text = without_places(text)
    if "[[" not in text:
        return text

    def mark(match: re.Match[str]) -> str:
        ipa = match[1].strip().strip("/").strip()
        if not ipa:
            return " "
        return _apart(match, marks.add(Mark(ipa, carrier(ipa), ipa)))

    return _INLINE.sub(mark, text)


def _apart(match: re.Match[str], character: str) -> str:
    """Put spaces between a mark and the letters next to it."""
    text, start, end = match.string, match.start(), match.end()
    before = " " if text[max(start - 1, 0) : start].isalnum() else ""
    after = " " if text[end : end + 1].isalnum() else ""
    return before + character + after


def carrier(ipa: str) -> str:
    """A word to stand for a pronunciation while its neighbours are read: "the" heeds a vowel."""
    first = next((letter for letter in ipa if letter.isalpha() and letter not in "ˈˌ"), "")
    return "anna" if first in _VOWEL_LETTERS else "nana"


_VOWEL_LETTERS = frozenset("aeiouyæøœɐɑɒɔəɚɛɜɝɤɨɪɯɵʉʊʌʏᵻ")
