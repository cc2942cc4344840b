"""Text to IPA by the reader of a language or espeak-ng; each is kept open per process."""

import os
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec

from myxtts.text.errors import MissingExtraError
from myxtts.text.espeak import Espeak
from myxtts.text.language import Language, TextReader
from myxtts.text.languages import get_language
from myxtts.text.symbols import DIGITS, PUNCTUATION

_OPEN: dict[tuple[int, str], "_Espeak"] = {}
_READERS: dict[tuple[int, str], TextReader] = {}


class Phonemizer:
    """The phonemes of one language by espeak; every instance shares the open back-end."""

    def __init__(self, language: str):
        self.language = get_language(language)
        self._espeak = _open_espeak(self.language)
        self._spellings = str.maketrans(dict(self.language.espeak_spellings))
        letters = self.language.reader_letters
        self._reader_only = re.compile(f"[{letters}]") if letters else None

    def phonemize(self, texts: Sequence[str], plain: bool = False) -> list[str]:
        """Turn each normalised text into IPA with stress marks, ties and its punctuation.

        Plain IPA is as piper has it: as espeak writes it, without ties, decomposed, with the few
        marks that piper's front end keeps.
        """
        found = [self._phonemize_one(text, plain) for text in texts]
        return [_as_piper(text) for text in found] if plain else found

    def _phonemize_one(self, text: str, plain: bool) -> str:
        parts = []
        text = text.translate(self._spellings)
        if self._reader_only is not None and self._reader_only.search(text):
            raise MissingExtraError(f"reading {text[:40]!r}", self.language.reader_extra)
        text = _LONG_WORD.sub(_cut_word, drop_unreadable(text, self.language.code))
        for clause, pause in _clauses(text):
            parts += [self._espeak.speak(clause, plain), pause]
        return "".join(parts).strip()


def phonemize(
    texts: Sequence[str], language: str, by_espeak: bool | None = None, plain: bool = False
) -> list[str]:
    """Turn normalised texts into IPA, or into the plain IPA of piper, which is always espeak's.

    `by_espeak` chooses between espeak alone and the reader of the language; by default the reader
    is used where the packages that it needs are installed.
    """
    if plain:
        return Phonemizer(language).phonemize(texts, plain)
    if by_espeak is None:
        by_espeak = not has_reader(language)
    reader = None if by_espeak else open_reader(language)
    return (reader or Phonemizer(language)).phonemize(texts)


def has_reader(language: str) -> bool:
    """Whether a language has a reader of its own whose packages are installed."""
    row = get_language(language)
    return row.open_reader is not None and all(map(find_spec, row.reader_packages))


def open_reader(language: str) -> TextReader | None:
    """Open the reader of a language once per process; None where espeak reads alone."""
    row = get_language(language)
    if row.open_reader is None:
        return None
    key = os.getpid(), row.code
    if key not in _READERS:
        _READERS[key] = row.open_reader(speak)
    return _READERS[key]


def speak(words: str, language: str) -> str:
    """Return what espeak says to some words, as a reader asks for it."""
    return _phonemizer(os.getpid(), language).phonemize([words])[0]


@cache
def _phonemizer(_: int, language: str) -> Phonemizer:
    """One per process: a forked child opens its own espeak."""
    return Phonemizer(language)


def espeak_version() -> str:
    """Return which espeak-ng makes the phonemes, as they may differ between versions."""
    return _open_espeak(get_language("en")).version


def drop_unreadable(text: str, language: str) -> str:
    """Remove characters that the voice can only name ("Chinese letter") or skip."""
    return _unreadable(language).sub("", text)


def unreadable_characters(text: str, language: str, by_espeak: bool = True) -> list[str]:
    """List, with repeats, the characters that espeak, or else the reader, cannot say."""
    lost = _unreadable(language).findall(text)
    letters = "" if by_espeak else get_language(language).reader_letters
    return [sign for sign in lost if not (letters and re.match(f"[{letters}]", sign))]


@cache
def _unreadable(code: str) -> re.Pattern[str]:
    # Voices read any Latin letter; of Han, only the Chinese one knows the sounds. Japanese kanji
    # have to be written as kana.
    language = get_language(code)
    known = re.escape(language.alphabet + PUNCTUATION + DIGITS) + language.espeak_letters
    return re.compile(f"[^\\s{known}a-zA-Z\u00c0-\u024f\u0300-\u036f]")


# A run of these between two words either pauses, and is kept, or is skipped. A point or a comma
# between two letters or digits belongs to them.
_SEPARATORS = re.compile(r'((?:[\s"();?!¡¿—…]|[.,:](?!(?<=\w.)\w))+)')
_PAUSES = frozenset("(),.:;?!¡¿—…")
_LONGEST_CLAUSE = 500
# espeak keeps a word in 160 bytes: it forgets the rest of a longer one, and some, such as hundreds
# of dotted letters, make it write beyond its buffers and end the process.
_LONGEST_WORD_BYTES = 120
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD_BYTES // 4 + 1},}}")


def _cut_word(match: re.Match[str]) -> str:
    """Put spaces into a run of characters that is too long for espeak."""
    word = match[0]
    size = _LONGEST_WORD_BYTES // max(len(character.encode()) for character in set(word))
    return " ".join(word[start : start + size] for start in range(0, len(word), size))


def _clauses(text: str) -> Iterator[tuple[str, str]]:
    """Yield (words, pause): espeak drops punctuation, so it only sees the text between pauses.

    Quotation marks make no sound and no pause, and cutting a clause at them would change how the
    words around them are read: they are dropped.
    """
    parts = _SEPARATORS.split(text)
    words, last = "", len(parts) - 1
    for index in range(0, last, 2):
        words += parts[index]
        run = parts[index + 1]
        is_outermost = not words or not parts[index + 2]
        if is_outermost or not _PAUSES.isdisjoint(run) or len(words) > _LONGEST_CLAUSE:
            yield words, re.sub(r"\s+", " ", run.replace('"', ""))
            words = ""
        else:
            words += " "
    yield words + parts[last], ""


def _as_piper(ipa: str) -> str:
    """IPA with the marks of piper's front end, and none of them twice."""
    ipa = re.sub(r"\s+", " ", ipa.translate(_PIPER_MARKS))
    ipa = re.sub(r" ?([,.:;?!])[ ,.:;?!]*(?= |$)", r"\1", ipa)
    return unicodedata.normalize("NFD", ipa.strip(" ,;"))


class _Espeak:
    """One copy of the espeak-ng library with one voice; its state is global, hence the lock."""

    def __init__(self, language: Language):
        self._language = language
        self._library = _load_library(language.espeak_voice)
        self._repairs = (*language.espeak_repairs, *_COMMON_REPAIRS)
        self._lock = threading.Lock()
        self.version = self._library.version

    def speak(self, words: str, plain: bool = False) -> str:
        """Return the IPA of a clause, without flags for words of another language.

        What players have is espeak's own: plain IPA is not repaired.
        """
        if not words.strip(" '-"):
            return ""
        with self._lock:
            ipa = self._library.ipa(words)
        ipa = _SWITCH_FLAG.sub("", ipa)
        for written, repaired in _PLAIN if plain else self._repairs:
            ipa = ipa.replace(written, repaired)
        return unicodedata.normalize("NFC", " ".join(ipa.split()))


def _open_espeak(language: Language) -> _Espeak:
    # A forked child opens its own: the lock and the library's state belong to the parent.
    key = os.getpid(), language.code
    if key not in _OPEN:
        _OPEN[key] = _Espeak(language)
    return _OPEN[key]


def _load_library(voice: str) -> Espeak:
    """Open espeak-ng from the package of the extra, with a voice set."""
    try:
        import espeakng_loader
    except ImportError as error:
        raise MissingExtraError("turning text into phonemes", "phonemes") from error
    library, data = espeakng_loader.get_library_path(), espeakng_loader.get_data_path()
    return Espeak(library, data, voice)


# Words of another language come as "(en)...(fa)", with ties between the letters of the flag.
_SWITCH_FLAG = re.compile(r"\([^)]*\)")
# Where espeak's "IPA" holds marks of its own, the IPA for the same sound.
_COMMON_REPAIRS = (("͡h", "ʰ"), ("͡ᵝ", "ᵝ"), ("-", ""), ("_", ""))
# Of plain IPA: what is no sound.
_PLAIN = (("\u0361", ""), ("-", ""), ("_", ""))
_PIPER_MARKS = str.maketrans({"(": " ", ")": " ", "—": "; ", "…": ". ", "¡": "", "¿": ""})
