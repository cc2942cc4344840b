"""Pronunciations that a user writes down: lines of `word = pronunciation`.

The pronunciation is IPA between slashes, or a respelling in plain letters:

    # for all languages
    Siobhan = shivawn
    Nguyen = /wˈɪn/
    [en]
    New York = noo york

An entry in small letters stands for every way to write it; one with capitals only for itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from myxtts.files import read_regular
from myxtts.text.errors import TextError
from myxtts.text.ipa import UnknownSymbolError, to_phonemes
from myxtts.text.languages import LANGUAGES
from myxtts.text.marks import Mark, Marks
from myxtts.text.tokenizer import Tokenizer

MOST_BYTES = 1 << 26
_SECTION = re.compile(r"\[([\w-]+)\]")
_COMMENT = re.compile(r"(?:^|\s)#.*")
# A word, with the apostrophes, hyphens and joiners within it.
_WORD = re.compile(r"[^\W_]+(?:['’\u200c-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: a word or several, and IPA or a respelling of it; `language` None is any."""

    line: int
    word: str
    language: str | None
    respelling: str
    ipa: str | None


class Lexicon:
    """The entries of a file; the last one of a word wins, and one of a language over one of all."""

    def __init__(self, entries: list[Entry], source: str = "the lexicon"):
        self.entries, self.source = entries, source

    def for_voice(self, tokenizer: Tokenizer, language: str) -> "Pronunciations":
        """Return what holds for a language; raise for what the voice cannot say."""
        return _for_voice(self, tokenizer, language)


class Pronunciations:
    """The entries that hold for one language, to be found in its texts."""

    def __init__(self, entries: list[Entry], language: str):
        self._language = language
        self._by_word = {_key(entry.word): entry for entry in entries}
        self._most_words = max((len(_WORD.findall(key)) for key in self._by_word), default=0)

    def mark(self, text: str, marks: Marks) -> str:
        """Replace the words of a text that have an entry by marks."""
        if not self._by_word:
            return text
        parts, done = [], 0
        for start, end, entry in self._find(text):
            written = text[start:end]
            read = entry.respelling or written
            parts += [text[done:start], marks.add(Mark(written, read, entry.ipa))]
            done = end
        return "".join([*parts, text[done:]])

    def _find(self, text: str) -> Iterator[tuple[int, int, Entry]]:
        """Find entries from left to right, the one of most words first."""
        words = [match.span() for match in _WORD.finditer(text)]
        at = 0
        while at < len(words):
            for count in range(min(self._most_words, len(words) - at), 0, -1):
                start, end = words[at][0], words[at + count - 1][1]
                if entry := self._get(text[start:end]) or self._possessive(text[start:end]):
                    yield start, end, entry
                    at += count - 1
                    break
            at += 1

    def _get(self, written: str) -> Entry | None:
        key = _key(written)
        return self._by_word.get(key) or self._by_word.get(key.lower())

    def _possessive(self, written: str) -> Entry | None:
        """The entry of an English name with an s of its own."""
        name, mark = written[:-2], written[-2:]
        if self._language != "en" or mark not in ("'s", "’s"):
            return None
        entry = self._get(name)
        if entry is None or entry.ipa is None:
            return entry and replace(entry, respelling=f"{entry.respelling}'s")
        return replace(entry, ipa=entry.ipa + _possessive_sound(entry.ipa))


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon; an error names the line."""
    try:
        content = read_regular(path)
    except OSError as error:
        raise TextError(
            f"cannot read the lexicon {path} ({error.strerror}): name a text file with --lexicon"
        ) from error
    if len(content) > MOST_BYTES:
        raise TextError(f"the lexicon {path} is larger than {MOST_BYTES:,} bytes: shorten it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TextError(f"{path}, line {line}: it is not UTF-8: save it as UTF-8") from error
    return parse_lexicon(text, str(path))


def parse_lexicon(text: str, source: str = "the lexicon") -> Lexicon:
    """Read the lines of a lexicon."""
    entries: list[Entry] = []
    language: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub("", line).strip()
        where = f"{source}, line {number}"
        if section := _SECTION.fullmatch(line):
            language = _check_language(section[1], where)
        elif line:
            entries.append(_parse_entry(line, number, language, where))
    return Lexicon(entries, source)


def _check_language(code: str, where: str) -> str:
    if code not in LANGUAGES:
        raise TextError(
            f"{where}: unknown language {code!r}: write one of {', '.join(LANGUAGES)} in brackets"
        )
    return code


def _parse_entry(line: str, number: int, language: str | None, where: str) -> Entry:
    word, equals, said = (part.strip() for part in line.partition("="))
    if not equals or not said:
        raise TextError(
            f"{where}: {line[:60]!r} is not an entry: write word = respelling, or word = /IPA/"
        )
    if not _WORD.search(word):
        raise TextError(f"{where}: {word[:60]!r} has no letters: write a word before the '='")
    spans = [match.span() for match in _WORD.finditer(word)]
    if (spans[0][0], spans[-1][1]) != (0, len(word)):
        raise TextError(
            f"{where}: {word[:60]!r} begins or ends with a mark: write the word without it"
        )
    if len(said) > 1 and said.startswith("/") and said.endswith("/"):
        ipa = said.strip("/").strip()
        if not ipa:
            raise TextError(f"{where}: nothing stands between the slashes: write IPA there")
        return Entry(number, word, language, "", ipa)
    return Entry(number, word, language, said, None)


@lru_cache(maxsize=64)
def _for_voice(lexicon: Lexicon, tokenizer: Tokenizer, language: str) -> Pronunciations:
    general = [entry for entry in lexicon.entries if entry.language is None]
    own = [entry for entry in lexicon.entries if entry.language == language]
    for entry in (*general, *own):
        _check_entry(entry, f"{lexicon.source}, line {entry.line}", tokenizer, language)
    return Pronunciations([*general, *own], language)


def _check_entry(entry: Entry, where: str, tokenizer: Tokenizer, language: str) -> None:
    if entry.ipa is None:
        if unknown := tokenizer.unknown(entry.respelling, language):
            symbol = next(iter(unknown))
            raise TextError(
                f"{where}: the voice has no {symbol!r} (U+{ord(symbol[0]):04X}), which stands in "
                f"the respelling of {entry.word!r}: write it in letters of the language"
            )
        if not len(tokenizer.encode_batch([entry.respelling], language)[0]):
            raise TextError(f"{where}: the respelling of {entry.word!r} has no sound: change it")
        return
    try:
        to_phonemes(entry.ipa, tokenizer)
    except UnknownSymbolError as error:
        raise TextError(
            f"{where}: the voice has no symbol {error.symbol!r} "
            f"(U+{ord(error.symbol[0]):04X}), which stands in the IPA of {entry.word!r}: write "
            "the sound with others, as espeak-ng does for the language"
        ) from error
    except TextError as error:
        raise TextError(f"{where}: {error}") from error


def _possessive_sound(ipa: str) -> str:
    if ipa[-1] in "szʃʒ":
        return "ᵻz"
    return "s" if ipa[-1] in "ptkfθ" else "z"


def _key(word: str) -> str:
    return " ".join(word.replace("’", "'").split())
