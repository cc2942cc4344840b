"""How Persian words are pronounced: tables, then word formation, then espeak for the rest."""

import re
import sqlite3
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from myxtts.text.language import Speak
from myxtts.text.languages.persian.inventory import HOMORICH, from_espeak, from_gruut, from_notation
from myxtts.text.languages.persian.numbers import NUMBER_WORDS
from myxtts.text.languages.persian.table_files import read_rows
from myxtts.text.languages.persian.tokens import ZWNJ

_MOST_CACHED = 100_000
_SHORTEST_STEM = 3


class Pronunciation(NamedTuple):
    """Phonemes of the inventory without stress, and where they are from."""

    phonemes: str
    source: str  # "table", "lexicon", "formed" or "espeak"


class Lexicon:
    """Pronounces single words; what espeak says of a word is remembered."""

    def __init__(self, speak: Speak):
        self._speak = speak
        self._known: dict[str, Pronunciation] = {}

    def pronounce(self, word: str) -> Pronunciation:
        """Pronounce a written Persian word without ezafe."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            found = self._known[word] = self._find(word)
        return found

    def _find(self, word: str) -> Pronunciation:
        listed = _look_up(word)
        if listed:
            return listed
        return self._form(word) or Pronunciation(self._ask(word), "espeak")

    def _form(self, word: str) -> Pronunciation | None:
        """Put a word together from a known stem and its endings, or from joined parts."""
        if ZWNJ in word:
            stem, _, ending = word.rpartition(ZWNJ)
            if ending in _JOINED_ENDINGS:
                return _add(self.pronounce(stem), _JOINED_ENDINGS[ending])
            if stem in _PREFIXES:
                said = _presents().get(ending) if stem in _VERBAL else None
                rest = (said or self.pronounce(ending).phonemes).removeprefix("ʔ")
                return Pronunciation(_PREFIXES[stem] + rest, "formed")
        for ending, sound in _ENDINGS.items():
            stem = word[: -len(ending)]
            if word.endswith(ending) and len(stem) >= _SHORTEST_STEM:
                known = _look_up(stem)
                if known and _fits(known.phonemes, sound):
                    return _add(known, sound)
        return None

    def _ask(self, word: str) -> str:
        spoken = from_espeak(self._speak(word, "fa")).replace(" ", "")
        return _repair(word, spoken)


def has_gruut() -> bool:
    """Whether the lexicon of gruut-lang-fa is installed."""
    return find_spec("gruut_lang_fa") is not None


def _look_up(word: str) -> Pronunciation | None:
    if word in _table():
        return Pronunciation(_table()[word], "table")
    if word.replace(ZWNJ, "") in _gruut():
        return Pronunciation(_gruut()[word.replace(ZWNJ, "")], "lexicon")
    return None


def _add(stem: Pronunciation, ending: str) -> Pronunciation:
    return Pronunciation(stem.phonemes + ending, "formed")


def _fits(stem: str, ending: str) -> bool:
    """Whether an ending can follow: a vowel needs a consonant before it."""
    return stem[-1] not in "æeoɒiu" or ending[0] not in "æeoɒiu"


def _repair(word: str, spoken: str) -> str:
    """Correct what espeak does to beginnings and endings; it reads a final "ای" with an ezafe."""
    if word.endswith(("ای", "وی")):
        spoken = re.sub("(?<=[ɒu])je$", "", spoken)
    if word.endswith(("یی", "ئی")):
        spoken = re.sub("(?<=[ɒu])i$", "ʔi", spoken)
    if word.startswith("آ") and spoken.startswith("æ"):
        spoken = "ɒ" + spoken[1:]
    if word.endswith("\u064b") and not spoken.endswith("æn"):
        spoken = spoken.removesuffix("n").rstrip("æɒ") + "æn"
    return spoken


@cache
def _table() -> dict[str, str]:
    own = {word: from_notation(spoken, HOMORICH) for word, spoken in read_rows("common_words.tsv")}
    words = {word: spoken.removeprefix("ʔ") for word, spoken in read_rows("words.tsv")} | own
    return words | _ordinals(words) | own


def _ordinals(words: dict[str, str]) -> dict[str, str]:
    """The ordinals of numbers, whose ending anywhere else would mean "my"."""
    known = (NUMBER_WORDS & words.keys()) - _IRREGULAR
    endings = _ORDINAL_ENDINGS.items()
    return {word + end: words[word] + sound for word in known for end, sound in endings}


@cache
def _presents() -> dict[str, str]:
    """Verbs behind "می": its "ماند" is "mānad", though alone it is "mānd"."""
    found: dict[str, str] = {}
    for stem, spoken in read_rows("verbs.tsv"):
        for ending, sound in _PERSONS.items():
            found.setdefault(stem + ending, from_notation(spoken, HOMORICH) + sound)
    return found


@cache
def _gruut() -> dict[str, str]:
    """The lexicon of gruut-lang-fa, where it is installed."""
    spec = find_spec("gruut_lang_fa")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).with_name("lexicon.db")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = connection.execute("select word, phonemes from word_phonemes").fetchall()
    finally:
        connection.close()
    return {word: from_gruut(phonemes) for word, phonemes in rows}


_IRREGULAR = frozenset("دو سه نه سی".split())  # their ordinals are other words, or listed
_ORDINAL_ENDINGS = {"م": "om", "مین": "omin", "می": "omi"}
_PREFIXES = {"می": "mi", "نمی": "nemi", "همی": "hæmi", "بی": "bi", "نا": "nɒ", "هم": "hæm"}
_VERBAL = ("می", "نمی", "همی")
_PERSONS = {"م": "æm", "ی": "i", "د": "æd", "یم": "im", "ید": "id", "ند": "ænd"}
_JOINED_ENDINGS = {
    **{"ها": "hɒ", "های": "hɒ", "هایی": "hɒʔi", "هایم": "hɒjæm", "هایت": "hɒjæt"},
    **{"هایش": "hɒjæʃ", "هایمان": "hɒjemɒn", "هایتان": "hɒjetɒn", "هایشان": "hɒjeʃɒn"},
    **{"هام": "hɒm", "هات": "hɒt", "هاش": "hɒʃ"},
    **{"هامون": "hɒmun", "هاتون": "hɒtun", "هاشون": "hɒʃun"},
    **{"تر": "tær", "ترین": "tærin", "تری": "tæri", "ترها": "tærhɒ"},
    **{"ای": "ʔi", "ام": "ʔæm", "ات": "ʔæt", "اش": "ʔæʃ", "ایم": "ʔim", "اید": "ʔid"},
    **{"اند": "ʔænd", "است": "ʔæst", "مان": "mɒn", "تان": "tɒn", "شان": "ʃɒn"},
    **{"مون": "mun", "تون": "tun", "شون": "ʃun"},
}
# Written without a half-space, after a stem that is known.
_ENDINGS = {
    **{"هایشان": "hɒjeʃɒn", "هایمان": "hɒjemɒn", "هایتان": "hɒjetɒn", "هایش": "hɒjæʃ"},
    **{"هایی": "hɒʔi", "های": "hɒ", "ها": "hɒ", "ترین": "tærin", "تر": "tær"},
    **{"امون": "ɒmun", "اتون": "ɒtun", "اشون": "ɒʃun"},
    **{"مون": "emun", "تون": "etun", "شون": "eʃun"},
    **{"شان": "eʃɒn", "مان": "emɒn", "تان": "etɒn", "ش": "æʃ", "م": "æm", "ی": "i", "ند": "ænd"},
}
