"""Text to token ids and back, by a table that is fixed, saved and the same everywhere."""

import hashlib
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.config.documents import (
    MOST_JSON_BYTES,
    DocumentError,
    parse_json,
    read_document,
    shown,
)
from myxtts.monitoring.timers import TOKENS, stage
from myxtts.text import phonemes, symbols
from myxtts.text.cleaners import CLEANERS_VERSION, normalise
from myxtts.text.errors import TextError
from myxtts.text.foreign import latin_words
from myxtts.text.languages import LANGUAGES, get_language
from myxtts.text.languages.persian.emoji import is_named

logger = logging.getLogger(__name__)

CHARACTERS, PHONEMES, PIPER = UNITS = ("characters", "phonemes", "piper")
_MOST_SYMBOLS = 100_000  # of all of Unicode, the tables have some hundreds

_Found = tuple[tuple[int, ...], tuple[str, ...]]  # ids, and characters that have none


class Tokenizer:
    """Normalises text, cuts it into characters or phonemes and looks these up; PAD is 0."""

    def __init__(
        self,
        table: Sequence[str],
        languages: Sequence[str],
        units: str,
        readers: Iterable[str] | None = None,
    ):
        """`readers` are languages that their own readers turn into phonemes: by default all.

        What a voice was trained with stays: one from before a reader existed has none.
        """
        self.symbols = tuple(table)
        self.languages = tuple(languages)
        self.units = units
        self.readers = _with_readers(languages, units) if readers is None else tuple(readers)
        self._ids = _index(self.symbols)
        silent = (*symbols.SPECIALS, *symbols.PUNCTUATION)
        self._silent = frozenset(self._ids[symbol] for symbol in silent if symbol in self._ids)
        self._has_bytes = all(symbol in self._ids for symbol in symbols.BYTES)
        self._has_latin = "a" in self._ids
        # Bounded, as an odd text may hold any number of different characters.
        self._found = lru_cache(maxsize=65536)(self._find_ids)

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers get the table and fill caches of their own.
        return Tokenizer, (self.symbols, self.languages, self.units, self.readers)

    @classmethod
    def build(
        cls,
        languages: Sequence[str] = ("en",),
        units: str = "characters",
        espeak_alone: bool = False,
    ) -> "Tokenizer":
        """Make the table for some languages: it depends on nothing else, not on their order.

        With `espeak_alone` no language is read by a reader of its own.
        """
        if units not in UNITS:
            raise TextError(f"unknown units {units!r}: choose one of {', '.join(UNITS)}")
        codes = [get_language(code).code for code in languages]
        if not codes:
            raise TextError("a tokenizer needs at least one language")
        codes = [code for code in LANGUAGES if code in codes]
        if units != CHARACTERS:
            table = symbols.phoneme_table() if units == PHONEMES else symbols.piper_table()
            return cls(table, codes, units, () if espeak_alone else None)
        spoken = [LANGUAGES[code] for code in codes]
        letters = "".join(language.alphabet for language in spoken)
        has_bytes = any(item.is_open_script for item in spoken)
        return cls(symbols.character_table(letters, has_bytes), codes, units)

    def with_languages(self, languages: Iterable[str], espeak_alone: bool = False) -> "Tokenizer":
        """The same table, with the same ids, for more languages: it must hold all they need."""
        codes = [get_language(code).code for code in languages]
        added = [code for code in dict.fromkeys(codes) if code not in self.languages]
        for code in added:
            self._check_letters(code)
        readers = (*self.readers, *(() if espeak_alone else _with_readers(added, self.units)))
        return Tokenizer(self.symbols, (*self.languages, *added), self.units, readers)

    @property
    def language_versions(self) -> dict[str, int]:
        """The cleaners' version of those languages that have one of their own."""
        versions = {code: LANGUAGES[code].version for code in sorted(self.languages)}
        return {code: version for code, version in versions.items() if version}

    @property
    def _is_phonetic(self) -> bool:
        return self.units != CHARACTERS

    @property
    def vocab_size(self) -> int:
        """How many ids there are, PAD and the other specials included."""
        return len(self.symbols)

    def encode(self, text: str, language: str = "en") -> np.ndarray:
        """Return int32 ids from BOS to EOS, or raise if there is nothing to say."""
        ids = self.encode_batch([text], language)[0]
        if not len(ids):
            shown = text if len(text) <= 60 else text[:57] + "..."
            raise TextError(
                f"nothing to say in {shown!r}: give a text with words in {language!r} that the "
                f"tokenizer knows ({self.units} of {', '.join(self.languages)})"
            )
        return ids

    def encode_batch(self, texts: Sequence[str], language: str = "en") -> list[np.ndarray]:
        """Encode many texts; one with nothing to say gives an empty array."""
        with stage(TOKENS):
            return [self._to_ids(units, language) for units in self._to_units(texts, language)]

    def split(self, texts: Sequence[str], language: str = "en") -> list[list[str]]:
        """Return the units of texts, characters or phonemes, that `encode` looks up."""
        return [list(self._split(units)) for units in self._to_units(texts, language)]

    def added_sounds(self, text: str, language: str) -> list[int]:
        """Return the places in `encode(text)` of sounds that a reader adds, such as ezafes."""
        reader = phonemes.open_reader(language) if language in self.readers else None
        if reader is None:
            return []
        heads = reader.added_sounds(normalise(text, language))
        units = [self._split(head) for head in heads]
        return [sum(len(self._found(unit, language)[0]) for unit in own) for own in units]

    def look_up(self, unit: str, language: str = "en") -> _Found:
        """Return the ids of a unit of `split`, and the characters of it that have none."""
        return self._found(unit, language)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the normalised text or the phonemes behind ids, without the specials."""
        parts = [self._symbol(int(index)) for index in ids]
        text = "".join(part for part in parts if part not in symbols.SPECIALS)
        text = _BYTE_RUN.sub(_decode_bytes, text)
        return unicodedata.normalize("NFC", text)

    def unknown(self, text: str, language: str = "en") -> Counter[str]:
        """Count the characters, after normalisation, that `encode` has to drop."""
        counts: Counter[str] = Counter()
        if self._is_phonetic:
            self._check_language(language)
            clean = normalise(text, language)
            by_espeak = language not in self.readers
            counts.update(phonemes.unreadable_characters(clean, language, by_espeak))
        for unit in self._split(self._to_units([text], language)[0]):
            counts.update(self._found(unit, language)[1])
        return counts

    def foreign_words(self, text: str, language: str = "en") -> list[str]:
        """List the Latin words of a text that the table has no letters for, with repeats.

        Some languages spell them by the names of their letters, others drop them. espeak reads
        them by the rules of English.
        """
        row = get_language(language)
        if self._is_phonetic or self._has_latin or row.is_open_script:
            return []
        return latin_words(text)

    def to_json(self) -> str:
        """Write the whole table, so that a loaded tokenizer needs nothing else."""
        document = {
            "units": self.units,
            "languages": self.languages,
            "cleaners_version": CLEANERS_VERSION,
            "symbols": self.symbols,
        }
        if self.language_versions:
            document["language_versions"] = self.language_versions
        if self.readers:
            document["readers"] = self.readers
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """Read what `to_json` wrote."""
        try:
            document = parse_json(text)
            table, codes = document["symbols"], document["languages"]
            units, version = document["units"], document["cleaners_version"]
        except (DocumentError, KeyError, TypeError) as error:
            raise TextError(f"this is not a saved tokenizer ({error}): make it anew") from error
        if not _are_texts(table) or not _are_texts(codes) or len(table) > _MOST_SYMBOLS:
            raise TextError("this saved tokenizer has no tables of text: make it anew")
        if units not in UNITS or tuple(table[: len(symbols.SPECIALS)]) != symbols.SPECIALS:
            raise TextError("this saved tokenizer has another format: make it anew")
        languages = [get_language(code).code for code in codes]
        saved = document.get("readers") or []
        tokenizer = cls(table, languages, units, [code for code in languages if code in saved])
        tokenizer._tell_other_cleaners(version, document.get("language_versions") or {})
        return tokenizer

    def save(self, path: str | Path) -> None:
        """Write the tokenizer to a JSON file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer from a JSON file."""
        try:
            text = read_document(path, MOST_JSON_BYTES).decode("utf-8")
            return cls.from_json(text)
        except (OSError, DocumentError, UnicodeDecodeError, TextError) as error:
            raise TextError(f"cannot read the tokenizer {path}: {error}") from error

    def fingerprint(self) -> str:
        """Hash the table and what reads texts into it, but for `language_versions`.

        A run resumes with the same fingerprint, though a language may be read better than before.
        """
        parts = [self.units, str(CLEANERS_VERSION), *self.symbols]
        parts += ["named emoji"] if is_named() else []
        if self._is_phonetic:
            parts.append(phonemes.espeak_version())
            parts += [f"reader of {code}" for code in sorted(self.readers)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _to_units(self, texts: Sequence[str], language: str) -> list[str]:
        """Normalise texts and, where the units are phonemes, phonemize them."""
        self._check_language(language)
        clean = [normalise(text, language) for text in texts]
        if self._is_phonetic:
            by_espeak, plain = language not in self.readers, self.units == PIPER
            return phonemes.phonemize(clean, language, by_espeak, plain)
        spell = None if self._has_latin else get_language(language).spell_latin
        return [spell(text) for text in clean] if spell else clean

    def _tell_other_cleaners(self, version: object, language_versions: object) -> None:
        if (version, language_versions) != (CLEANERS_VERSION, self.language_versions):
            logger.warning(
                "the tokenizer was saved with cleaners version %s %s and this is version %s %s: "
                "some texts may be read differently",
                shown(version),
                shown(language_versions) if language_versions else "",
                CLEANERS_VERSION,
                self.language_versions or "",
            )

    def _to_ids(self, units: str, language: str) -> np.ndarray:
        ids = [symbols.BOS_ID]
        for unit in self._split(units):
            ids += self._found(unit, language)[0]
        ids.append(symbols.EOS_ID)
        return np.array([] if self._silent.issuperset(ids) else ids, np.int32)

    def _split(self, units: str) -> Iterable[str]:
        return _PHONEME.findall(units) if self.units == PHONEMES else units

    def _find_ids(self, unit: str, language: str) -> _Found:
        """Return the ids of a character or phoneme, and the characters of it that have none."""
        if unit in self._ids:
            return (self._ids[unit],), ()
        if self.units == CHARACTERS:
            return self._spell_character(unit, language)
        return self._spell_phoneme(unit)

    def _spell_character(self, character: str, language: str) -> _Found:
        """Write a character outside the table as simpler letters, or as bytes, or not at all."""
        plain = _PLAIN_LETTERS.get(character) or unicodedata.normalize("NFD", character)
        is_letter = plain != character and plain[0] in self._ids
        if is_letter:
            return tuple(self._ids[part] for part in plain if part in self._ids), ()
        if self._has_bytes and get_language(language).is_open_script:
            return tuple(self._ids[symbols.BYTES[byte]] for byte in character.encode()), ()
        return (), (character,)

    def _spell_phoneme(self, phoneme: str) -> _Found:
        """Write a phoneme outside the table as the longest known parts of it."""
        ids, missing = [], []
        rest = unicodedata.normalize("NFD", phoneme) if len(phoneme) == 1 else phoneme
        while rest:
            size = next((n for n in range(len(rest), 0, -1) if rest[:n] in self._ids), 0)
            if size:
                ids.append(self._ids[rest[:size]])
            elif rest[0] != symbols.TIE:
                missing.append(rest[0])
            rest = rest[size or 1 :]
        return tuple(ids), tuple(missing)

    def _symbol(self, index: int) -> str:
        if not 0 <= index < len(self.symbols):
            raise TextError(f"token {index} is outside the table of {len(self.symbols)} symbols")
        return self.symbols[index]

    def _check_letters(self, code: str) -> None:
        """Raise unless the table can write a language; that of phonemes can write all of them."""
        if self._is_phonetic:
            return
        language = get_language(code)
        missing = [letter for letter in language.alphabet if letter not in self._ids]
        if language.is_open_script and not self._has_bytes:
            missing.append("(the bytes that spell all others)")
        if missing:
            shown = " ".join(missing[:40]) + (" ..." if len(missing) > 40 else "")
            raise TextError(
                f"this tokenizer has characters of {', '.join(self.languages)} and lacks "
                f"{len(missing)} of {language.name} ({code}): {shown}. A table cannot grow once a "
                "model has learnt it: train anew with that language in the corpus too, or begin "
                "from a voice of phonemes (--text-units phonemes), whose table is that of all "
                "languages"
            )

    def _check_language(self, language: str) -> None:
        if get_language(language).code not in self.languages:
            raise TextError(
                f"this tokenizer was built for {', '.join(self.languages)}, not for {language!r}: "
                f"build one with that language too"
            )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _with_readers(languages: Iterable[str], units: str) -> tuple[str, ...]:
    """Those of some languages that have a reader of their own."""
    if units != "phonemes":
        return ()
    return tuple(code for code in languages if phonemes.has_reader(code))


def _index(table: Sequence[str]) -> dict[str, int]:
    ids = {symbol: index for index, symbol in enumerate(table)}
    if len(ids) != len(table):
        raise TextError("a symbol stands twice in the tokenizer's table: make it anew")
    return ids


_BYTE_RUN = re.compile(r"(?:<0x[0-9a-f]{2}>)+")
# Letters that Unicode does not take apart into a plain letter and a mark.
_PLAIN_LETTERS = {
    "ß": "ss",
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "ł": "l",
    "đ": "d",
    "ð": "d",
    "þ": "th",
    "ı": "i",
    # The ezafe sounds like the silent he at the end of a word, which every table of Persian has.
    "\u0650": "\u200cه",
}
# A stress mark, letters joined by ties, their diacritics and a length mark are one phoneme.
_MARKS = "[\u0300-\u0360\u0362-\u036fʲʰˤᵝː]*"
_PHONEME = re.compile(f"[ˈˌ]?[^\\W\\d_]{_MARKS}(?:\u0361[^\\W\\d_]{_MARKS})*|.", re.DOTALL)


def _decode_bytes(run: re.Match[str]) -> str:
    data = bytes.fromhex(run[0].replace("<0x", "").replace(">", ""))
    return data.decode("utf-8", errors="replace")
