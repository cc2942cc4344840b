"""A subset of SSML 1.1: what a document asks a voice to say, piece by piece.

A piece is spoken in one manner. Elements that change how words are read become marks inside a
piece; those that change who speaks, how fast or how loud, and breaks, begin a new one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from myxtts.text.bounded_xml import XmlError, parse_xml
from myxtts.text.errors import TextError
from myxtts.text.languages import LANGUAGES
from myxtts.text.marks import Mark, MarkedText, Marks, carrier, without_places
from myxtts.text.say_as import say_as
from myxtts.text.ssml_values import Manner, break_seconds, gain_of, rate_of

PARAGRAPH, SENTENCE = "paragraph", "sentence"
_MOST_WARNINGS = 20
_SILENT = ("metadata", "meta", "lexicon", "desc")
_PLAIN = ("speak", "w", "token")
_READ_OTHERWISE = ("phoneme", "sub", "say-as")
_REMEDY = (
    ". Put one <speak> element around the text, close every element, and write & as &amp; and < "
    "as &lt;"
)
_SENTENCE_END = re.compile(r"[.!?…؟۔।॥。！？][\"'”’»)\]]*\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Words to be said in one manner, and the pause after them: what ends here, or seconds."""

    text: MarkedText
    manner: Manner
    ends: str | None = None
    break_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """The pieces of a document, and what of it was not understood."""

    pieces: tuple[Piece, ...]
    warnings: tuple[str, ...]


def parse_ssml(document: str, language: str) -> Script:
    """Read a document whose words are in a language where it names no other."""
    reader = _Reader(language)
    try:
        parse_xml(document, reader)
    except XmlError as error:
        remedy = "" if error.is_well_formed else _REMEDY
        raise TextError(f"the SSML cannot be read: {error}{remedy}") from error
    return Script(tuple(reader.pieces), tuple(reader.warnings.values()))


@dataclass(slots=True)
class _Reader:
    """Takes the elements of a document and makes pieces of them."""

    language: str
    pieces: list[Piece] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)  # one for each kind
    _marks: Marks = field(default_factory=Marks)
    _manners: list[Manner] = field(default_factory=lambda: [Manner()])
    _text: list[str] = field(default_factory=list)
    _num_silent: int = 0  # elements around the text that is not read
    _held: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)  # in an element that is read otherwise
    _has_begun: bool = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._has_begun and name != "speak":
            raise ValueError(f"the outermost element is <{name}>, not <speak>")
        self._has_begun = True
        if self._num_silent or name in _SILENT:
            self._num_silent += 1
        elif self._held or name in _READ_OTHERWISE:
            self._held.append((name, attributes))
        else:
            self._begin(name, attributes)

    def end(self, name: str) -> None:
        if self._num_silent:
            self._num_silent -= 1
        elif self._held:
            held = self._held.pop()
            if not self._held:
                self._add_mark(*held)
        else:
            self._add_boundary(name)
            self._set_manner(self._manners[-2] if len(self._manners) > 1 else Manner())
            self._manners.pop()
            if name == "speak":
                self._flush()

    def text(self, text: str) -> None:
        if self._num_silent:
            return
        text = without_places(re.sub(r"\s+", " ", text))
        (self._words if self._held else self._text).append(text)

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        self._add_boundary(name)
        manner = self._manner(name, attributes)
        self._set_manner(manner)
        self._manners.append(manner)
        if name == "break":
            self._flush(break_seconds(attributes))

    def _manner(self, name: str, attributes: Mapping[str, str]) -> Manner:
        """How the text of an element is to be said."""
        manner = self._manners[-1]
        if language := attributes.get("xml:lang"):
            manner = replace(manner, language=_find_language(language))
        if name == "prosody":
            rate = manner.rate * rate_of(attributes.get("rate", "default"))
            gain = manner.gain_db + gain_of(attributes.get("volume", "default"))
            self._warn_of_others(name, attributes, ("rate", "volume", "xml:lang"))
            return replace(manner, rate=rate, gain_db=gain)
        if name == "voice":
            self._warn_of_others(name, attributes, ("name", "xml:lang"))
            return replace(manner, speaker=attributes.get("name") or manner.speaker)
        if name not in ("lang", "s", "p", "break", *_PLAIN):
            self._warn(f"<{name}>", "is not known: its text is read as it is")
        return manner

    def _warn(self, what: str, why: str) -> None:
        """Keep a warning, unless it is one of many."""
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.setdefault(what, f"{what} {why}")

    def _warn_of_others(self, name: str, attributes: Mapping[str, str], known: tuple) -> None:
        for other in attributes:
            if other not in known:
                self._warn(f"{other!r} of <{name}>", "has no effect")

    def _set_manner(self, manner: Manner) -> None:
        """Begin a new piece where the manner changes."""
        if manner != self._manners[-1]:
            self._flush()

    def _add_boundary(self, name: str) -> None:
        """End a sentence or a paragraph, if one was begun."""
        if name not in ("s", "p"):
            return
        while self._text and not self._text[-1].strip(" "):
            self._text.pop()
        wanted = "\n" if name == "s" else "\n\n"
        if not self._text:
            self._lengthen_pause(PARAGRAPH if name == "p" else SENTENCE)
        elif self._text[-1].strip():
            self._text.append(wanted)
        else:
            self._text[-1] = max(self._text[-1], wanted)

    def _lengthen_pause(self, ends: str) -> None:
        """Make the piece before end at least so much."""
        if self.pieces and self.pieces[-1].ends != PARAGRAPH:
            self.pieces[-1] = replace(self.pieces[-1], ends=ends)

    def _add_mark(self, name: str, attributes: Mapping[str, str]) -> None:
        words = " ".join("".join(self._words).split())
        self._words = []
        mark = self._mark(name, attributes, words)
        if mark.ipa is None and mark.read == mark.written:
            self._text.append(mark.read)
        elif mark.read:
            space = " " if self._follows_letter() else ""
            self._text.append(space + self._marks.add(mark))

    def _follows_letter(self) -> bool:
        return bool(self._text) and self._text[-1][-1:].isalnum()

    def _mark(self, name: str, attributes: Mapping[str, str], words: str) -> Mark:
        """What is read in place of the words of an element."""
        language = self._manners[-1].language or self.language
        if name == "phoneme":
            return _phoneme(attributes, words)
        if name == "sub":
            alias = " ".join(attributes.get("alias", "").split())
            if not alias:
                raise ValueError('<sub> has no alias: write what to say as alias="..."')
            return Mark(words or alias, alias)
        kind = attributes.get("interpret-as", "")
        read = say_as(words, kind, attributes.get("format", ""), language)
        if read is None:
            self._warn(f"say-as {kind!r}", f"cannot be done for {words[:40]!r}: read as it is")
        return Mark(words, read or words)

    def _flush(self, seconds: float | None = None) -> None:
        """End the piece, if it has words or a break after it."""
        text = re.sub(r" *(\n+) *", r"\1", "".join(self._text))
        ends = _ending(text)
        self._text = []
        if text.strip() or seconds is not None:
            marked = MarkedText(text.strip(), self._marks)
            self.pieces.append(Piece(marked, self._manners[-1], ends, seconds))


def _ending(text: str) -> str | None:
    newlines = len(text) - len(text.rstrip("\n"))
    if newlines > 1:
        return PARAGRAPH
    return SENTENCE if newlines or _SENTENCE_END.search(text) else None


def _phoneme(attributes: Mapping[str, str], words: str) -> Mark:
    alphabet = attributes.get("alphabet", "ipa")
    ipa = attributes.get("ph", "").strip()
    if alphabet != "ipa":
        raise ValueError(f"the alphabet {alphabet!r} of <phoneme> is not known: write IPA")
    if not ipa:
        raise ValueError('<phoneme> has no sounds: write them as ph="..."')
    return Mark(words or ipa, words or carrier(ipa), ipa)


def _find_language(tag: str) -> str:
    """The language of a tag such as en-US."""
    tag = tag.lower()
    for code in (tag, tag.partition("-")[0]):
        found = [known for known in LANGUAGES if code in (known, known.partition("-")[0])]
        if found:
            return found[0]
    raise ValueError(f"unknown language {tag!r}: write one of {', '.join(LANGUAGES)}")
