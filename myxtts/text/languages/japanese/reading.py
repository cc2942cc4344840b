"""Japanese with kanji: a dictionary of words says how they are pronounced, espeak reads that."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from myxtts.text.errors import MissingExtraError
from myxtts.text.language import Speak, SpokenWord

_PAUSES = re.compile(r"[(),.:;?!¡¿—…]")
_NO_READING = ("", "*", None)
_READINGS = {"日本": "ニホン"}  # of two, the one that most people say
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")


class _Word(NamedTuple):
    surface: str
    kana: str


class Reader:
    """Reads Japanese by fugashi and UniDic; particles sound as they are spoken."""

    def __init__(self, speak: Speak):
        self._speak = speak
        self._tagger = _load()

    def phonemize(self, texts: Sequence[str]) -> list[str]:
        """Turn normalised texts into IPA with their punctuation."""
        return [self._phonemize(text) for text in texts]

    def added_sounds(self, text: str) -> list[str]:
        """None: every sound is written."""
        return []

    def explain(self, text: str) -> list[SpokenWord]:
        """List the words of one normalised text with the kana that are read."""
        words = (word for word in self._words(text) if not _PAUSES.fullmatch(word.surface))
        return [SpokenWord(w.surface, self._say(w), w.kana) for w in words]

    def _say(self, word: _Word) -> str:
        return self._speak(word.kana, "en" if _is_latin(word) else "ja")

    def _phonemize(self, text: str) -> str:
        """Ask espeak for kana and Latin words apart: next to those it names each kana."""
        said = [
            self._speak("".join(map(_write, run)), "en" if is_latin else "ja")
            for is_latin, run in groupby(self._words(text), key=_is_latin)
        ]
        return " ".join(said)

    def _words(self, text: str) -> Iterator[_Word]:
        for part in re.findall(r"[(),.:;?!¡¿—…]|[^(),.:;?!¡¿—…]+", text):
            if _PAUSES.fullmatch(part):
                yield _Word(part, part)
                continue
            yield from self._read(part)

    def _read(self, part: str) -> Iterator[_Word]:
        """Take the readings of UniDic, but for those of the Japanese and other peoples."""
        is_name = False
        for word in self._tagger(part):
            said = getattr(word.feature, "pron", None)
            if is_name and word.surface == "人":
                said = "ジン"
            said = _READINGS.get(word.surface, said)
            yield _Word(word.surface, word.surface if said in _NO_READING else said)
            is_name = word.feature.pos2 == "固有名詞"


def _write(word: _Word) -> str:
    return word.surface + " " if _PAUSES.fullmatch(word.surface) else word.kana


def _is_latin(word: _Word) -> bool:
    return _LATIN.match(word.kana) is not None


def _load() -> Any:
    try:
        import unidic_lite
        from fugashi import Tagger
    except ImportError as error:
        raise MissingExtraError("reading kanji", "japanese") from error
    return Tagger(f'-d "{unidic_lite.DICDIR}" -r "{unidic_lite.DICDIR}/mecabrc"')
