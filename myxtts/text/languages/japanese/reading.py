"""Japanese with kanji: a dictionary of words says how they are pronounced, espeak reads that."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from myxtts.text.errors import MissingExtraError
from myxtts.text.language import Speak, SpokenWord

_PAUSES = re.compile(r"[(),.:;?!¡¿—…]")
_NO_READING = ("", "*", None)


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
        return [SpokenWord(w.surface, self._speak(w.kana, "ja"), w.kana) for w in words]

    def _phonemize(self, text: str) -> str:
        said = [
            word.kana if not _PAUSES.fullmatch(word.surface) else word.surface + " "
            for word in self._words(text)
        ]
        return self._speak("".join(said), "ja")

    def _words(self, text: str) -> Iterator[_Word]:
        for part in re.findall(r"[(),.:;?!¡¿—…]|[^(),.:;?!¡¿—…]+", text):
            if _PAUSES.fullmatch(part):
                yield _Word(part, part)
                continue
            for word in self._tagger(part):
                said = getattr(word.feature, "pron", None)
                yield _Word(word.surface, word.surface if said in _NO_READING else said)


def _load() -> Any:
    try:
        import unidic_lite
        from fugashi import Tagger
    except ImportError as error:
        raise MissingExtraError("reading kanji", "japanese") from error
    return Tagger(f'-d "{unidic_lite.DICDIR}" -r "{unidic_lite.DICDIR}/mecabrc"')
