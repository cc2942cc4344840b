"""How a voice reads a segment of text: its tokens, and which word each of them belongs to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from myxtts.text import symbols
from myxtts.text.ipa import check_phonemes, to_phonemes
from myxtts.text.lexicon import Lexicon, Pronunciations
from myxtts.text.marks import Mark, MarkedText, Marks, mark_inline
from myxtts.text.tokenizer import Tokenizer
from myxtts.text.word_alignment import Place, place_words


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is written, what is read in its place, and its phonemes where they are given."""

    written: str
    read: str
    phonemes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """A character or phoneme, how many tokens it became, and its word; None is between words."""

    symbol: str
    num_tokens: int
    word: int | None


class Reading:
    """One segment as a voice reads it; words are only looked for when they are asked for."""

    def __init__(self, words: Sequence[Word], tokenizer: Tokenizer, language: str):
        self.words = tuple(words)
        self.text = " ".join(word.written for word in words)
        self._tokenizer, self._language = tokenizer, language
        self._read = " ".join(word.read for word in words)

    @cached_property
    def ids(self) -> np.ndarray:
        """int32 ids from BOS to EOS; none where nothing has a sound."""
        if all(word.phonemes is None for word in self.words):
            return self._tokenizer.encode_batch([self._read], self._language)[0]
        ids = [symbols.BOS_ID]
        for unit in self._units_and_places[0]:
            ids += self._tokenizer.look_up(unit, self._language)[0]
        return np.array([*ids, symbols.EOS_ID], np.int32)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units between BOS and EOS, each with its word."""
        units, places = self._units_and_places
        owners: list[int | None] = [None] * len(units)
        for number, place in enumerate(places):
            owners[place.start : place.stop] = [number] * (place.stop - place.start)
        return tuple(
            Unit(unit, len(self._tokenizer.look_up(unit, self._language)[0]), owner)
            for unit, owner in zip(units, owners, strict=True)
        )

    @property
    def exact(self) -> tuple[bool, ...]:
        """Whether the units of each word are certain."""
        return tuple(place.is_exact for place in self._units_and_places[1])

    @cached_property
    def _units_and_places(self) -> tuple[list[str], list[Place]]:
        """All units, with given phonemes in place of what was read, and where words are."""
        read = [word.read for word in self.words]
        whole, *alone = self._tokenizer.split([self._read, *read], self._language)
        places = place_words(alone, whole)
        given = [n for n, word in enumerate(self.words) if word.phonemes is not None]
        if all(places[n].is_exact and places[n].start < places[n].stop for n in given):
            return _replace(whole, places, self.words)
        return self._read_around_given()

    def _read_around_given(self) -> tuple[list[str], list[Place]]:
        """Read what is between given phonemes by itself, where it is not certain what to replace.

        It loses how neighbours influence each other across the given word.
        """
        units: list[str] = []
        places: list[Place] = []
        for run in _runs(self.words):
            units += [" "] if units else []
            start = len(units)
            if run[0].phonemes is not None:
                own = [*run[0].phonemes]
                found = [Place(0, len(own), True)]
            else:
                texts = [" ".join(word.read for word in run), *(word.read for word in run)]
                own, *alone = self._tokenizer.split(texts, self._language)
                found = place_words(alone, own)
            units += own
            places += [Place(start + p.start, start + p.stop, p.is_exact) for p in found]
        return units, places


class Reader:
    """Reads the segments of one text in one language, with its marks and a lexicon."""

    def __init__(self, tokenizer: Tokenizer, language: str, lexicon: Lexicon | None = None):
        self._tokenizer, self._language = tokenizer, language
        self._marks = Marks()
        self._lexicon: Pronunciations | None = None
        if lexicon is not None:
            self._lexicon = lexicon.for_voice(tokenizer, language)

    def mark(self, text: str | Iterable[str] | MarkedText) -> str | Iterable[str]:
        """Return a text, or its parts, with a character in place of each pronunciation in it."""
        if isinstance(text, MarkedText):
            self._marks = text.marks
            return text.text
        return mark_inline(text, self._marks)

    def read(self, segment: str) -> Reading:
        """Read a segment of what `mark` returned."""
        if self._lexicon is not None:
            segment = self._lexicon.mark(segment, self._marks)
        words = [word for token in segment.split() for word in self._words(token)]
        return Reading(words, self._tokenizer, self._language)

    def _words(self, token: str) -> Iterator[Word]:
        """The words of what stands between spaces: more than one only next to given phonemes."""
        written = read = ""
        phonemes: tuple[str, ...] | None = None
        for part in self._marks.cut(token):
            if isinstance(part, str):
                if phonemes is not None and _has_letters(part):
                    yield Word(written, read, phonemes)
                    written, read, phonemes = "", "", None
                written, read = written + part, read + part
                continue
            if part.ipa is not None and (phonemes is not None or _has_letters(written)):
                yield Word(written, read, phonemes)
                written, read, phonemes = "", "", None
            written, read = written + part.written, read + part.read
            phonemes = self._phonemes(part) or phonemes
        if written:
            yield Word(written, read, phonemes)

    def _phonemes(self, mark: Mark) -> tuple[str, ...] | None:
        if mark.ipa is None:
            return None
        check_phonemes(self._tokenizer, mark.ipa)
        return to_phonemes(mark.ipa, self._tokenizer)


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _replace(
    units: Sequence[str], places: Sequence[Place], words: Sequence[Word]
) -> tuple[list[str], list[Place]]:
    """Put given phonemes where the units of their words are."""
    found: list[str] = []
    moved: list[Place] = []
    done = 0
    for place, word in zip(places, words, strict=True):
        found += units[done : place.start]
        start = len(found)
        found += units[place.start : place.stop] if word.phonemes is None else word.phonemes
        moved.append(Place(start, len(found), place.is_exact))
        done = max(done, place.stop)
    return [*found, *units[done:]], moved


def _runs(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Runs of words without given phonemes, and each word with them by itself."""
    run: list[Word] = []
    for word in words:
        if word.phonemes is not None:
            if run:
                yield run
            yield [word]
            run = []
        else:
            run.append(word)
    if run:
        yield run
