"""What a language needs to be read, spoken and tested: one row of the table of languages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

LATIN = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True)
class SymbolWords:
    """The words for symbols that stand next to numbers; `{}` marks where the number goes.

    Currencies stay in their base form: inflecting them after a number is left to the writer.
    """

    minus: str
    point: str
    percent: str
    ampersand: str
    dollar: str
    euro: str
    pound: str
    has_decimal_comma: bool = False

    def money(self) -> dict[str, str]:
        """Map each currency sign to its word."""
        return {"$": self.dollar, "€": self.euro, "£": self.pound}


class SpokenWord(NamedTuple):
    """A written word, its phonemes, and what was decided about it, in words."""

    written: str
    phonemes: str
    notes: str = ""


class TextReader(Protocol):
    """Turns normalised texts of one language into phonemes, better than espeak alone does."""

    def phonemize(self, texts: Sequence[str]) -> list[str]:
        """Return the IPA of each text, with its punctuation."""

    def added_sounds(self, text: str) -> list[str]:
        """Return the IPA of a text up to and with each sound that no letter writes, an ezafe."""

    def explain(self, text: str) -> list[SpokenWord]:
        """Return the words of one text, with what was decided about each."""


Speak = Callable[[str, str], str]  # some words and the code of a language; their IPA by espeak


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language. What has a default may be left open."""

    code: str
    name: str
    greeting: str  # a short text to try a voice with
    alphabet: str  # in lower case
    espeak_voice: str
    script: str = "Latin"  # as `guess` names it
    is_open_script: bool = False  # no alphabet lists all characters: the others become bytes

    # Writing to speech
    prepare: Callable[[str], str] | None = None  # before the characters are unified
    expand: Callable[[str], str] | None = None  # numbers and abbreviations, by rules of its own
    num2words_code: str | None = None  # without rules of its own; None leaves digits to the voice
    symbol_words: SymbolWords | None = None
    months: tuple[str, ...] = ()  # as they stand in a date; with them, dates are read
    date: str = "{day} {month} {year}"  # {ordinal} is the day as an ordinal in words
    days: Mapping[int, str] = field(default_factory=dict)  # that are not said as a number
    year_words: Callable[[int], str] | None = None  # in a date, if not said as a number
    clock: str = ""  # how a time of day is said: "{hour} uhr {minute}"
    full_hour: str = "{hour}"  # and one without minutes
    hours: Mapping[int, str] = field(default_factory=dict)  # that are not said as a number
    day_endings: Mapping[str, str] = field(default_factory=dict)  # by the word before, "am dritten"
    noun_endings: Mapping[str, str] = field(default_factory=dict)  # without one, "dritter Stock"
    ordinal_marks: Mapping[str, tuple[str, str]] = field(
        default_factory=dict
    )  # after digits; an end of num2words' ordinal, and what is said instead
    special_ordinals: Mapping[str, str] = field(default_factory=dict)  # "1er" is "premier"
    ordinals_before_nouns: Mapping[str, str] = field(default_factory=dict)  # ends that shorten
    says_hundreds: bool = False  # 1984 is nineteen hundred eighty-four
    number_repairs: tuple[tuple[str, str], ...] = ()  # patterns in what num2words says
    # A number in words, the word after it, and the word before it
    agree: Callable[[str, str, str], str] | None = None
    abbreviation_words: Mapping[str, str] = field(default_factory=dict)  # "Dr." is "doktor"
    lower_case: Mapping[str, str] = field(default_factory=dict)  # letters with a case of their own
    foreign_forms: Mapping[str, str] = field(default_factory=dict)  # letters of other keyboards
    has_joiners: bool = False  # zero-width non-joiners are part of the spelling
    spell_latin: Callable[[str], str] | None = None  # Latin words, if not dropped
    version: int = 0  # raised where the cleaners change for this language alone

    # Phonemes
    open_reader: Callable[[Speak], TextReader] | None = None  # without one, espeak reads alone
    espeak_spellings: Mapping[str, str] = field(
        default_factory=dict
    )  # letters that it reads wrongly
    as_espeak_codes: Callable[[str], str] | None = (
        None  # makes espeak speak the phonemes of the reader
    )
    reader_packages: tuple[str, ...] = ()  # optional packages that the reader imports
    reader_letters: str = ""  # a class of characters that only the reader can say
    reader_extra: str = ""  # the extra to install for them
    espeak_letters: str = ""  # that espeak reads besides the alphabet, as a class of characters
    espeak_repairs: tuple[tuple[str, str], ...] = ()  # marks of espeak, and the IPA for them

    vowelise: Callable[[str, Speak], str] | None = None  # write the vowels that writers leave out
    judge: Callable[[Path, Speak], list[list[str]]] | None = (
        None  # a table of figures, by test sets
    )

    # Sentences
    abbreviations: frozenset[str] = frozenset()  # words whose dot does not end a sentence
    has_dotted_ordinals: bool = False  # "3." is "third"
    has_plain_ordinals: bool = False  # whose end depends on nothing
    hard_sentences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by difficulty

    # The guess of a language: words that several languages have count less.
    frequent_words: frozenset[str] = frozenset()


def span(first: int, last: int) -> str:
    """All characters from one code point to another, both included."""
    return "".join(map(chr, range(first, last + 1)))


def words(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(text.split())
