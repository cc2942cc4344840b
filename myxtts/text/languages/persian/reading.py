"""A normalised Persian text as it is read: words, homographs, pronunciation, ezafes, phonemes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from myxtts.text.language import Speak, SpokenWord
from myxtts.text.languages.persian.ezafe import takes_ezafe, with_ezafe, without_ezafe
from myxtts.text.languages.persian.homographs import Choice, choose_reading
from myxtts.text.languages.persian.latin import spell_latin
from myxtts.text.languages.persian.lexicon import Lexicon, Pronunciation
from myxtts.text.languages.persian.links import link
from myxtts.text.languages.persian.stress import stress
from myxtts.text.languages.persian.tagger import ezafe_probabilities
from myxtts.text.languages.persian.tokens import Word, split_words

_WORTH_SAYING = 0.1  # an ezafe that is less likely is not mentioned
_KEPT_MARKS = re.compile(r"[(),.:;?!¡¿—…]")


class ReadWord(NamedTuple):
    """A word and all that was decided about it."""

    word: Word
    phonemes: str  # with stress and ezafe
    bare: str  # without both
    source: str
    ezafe: float  # probability; what is written has 1
    has_ezafe: bool
    choice: Choice | None = None  # of a homograph


class ReadText(NamedTuple):
    """The words of a text, and what stands before the first."""

    lead: str
    words: list[ReadWord]

    @property
    def phonemes(self) -> str:
        """The text in IPA with its pauses."""
        return self._say(len(self.words)).strip()

    def up_to_ezafes(self) -> list[str]:
        """The text in IPA up to and with each ezafe."""
        ends = [place for place, item in enumerate(self.words, start=1) if item.has_ezafe]
        return [self._say(place).strip() for place in ends]

    def _say(self, count: int) -> str:
        parts = [_pause(self.lead)]
        for item in self.words[:count]:
            parts += [item.phonemes, "" if item.word.is_joined else _pause(item.word.gap)]
        return re.sub(r"\s+", " ", "".join(parts))


class Reader:
    """Reads Persian. It keeps what it has asked espeak."""

    def __init__(self, speak: Speak):
        self._speak = speak
        self._lexicon = Lexicon(speak)
        self._foreign: dict[str, str] = {}

    def read(self, texts: Sequence[str]) -> list[ReadText]:
        """Read normalised texts."""
        split = [split_words(text) for text in texts]
        ezafes = ezafe_probabilities([words for _, words in split])
        return [
            ReadText(lead, self._read_words(words, found.tolist()))
            for (lead, words), found in zip(split, ezafes, strict=True)
        ]

    def phonemize(self, texts: Sequence[str]) -> list[str]:
        """Turn normalised texts into IPA with stress marks and punctuation."""
        return [text.phonemes for text in self.read(texts)]

    def added_sounds(self, text: str) -> list[str]:
        """The IPA of a normalised text up to and with each ezafe."""
        (found,) = self.read([text])
        return found.up_to_ezafes()

    def explain(self, text: str) -> list[SpokenWord]:
        """List the words of one normalised text, with ezafes, homographs and sources."""
        (found,) = self.read([text])
        return [SpokenWord(item.word.text, item.phonemes, _notes(item)) for item in found.words]

    def _read_words(self, words: list[Word], ezafes: list[float]) -> list[ReadWord]:
        return [self._read_word(words, place, ezafes[place]) for place in range(len(words))]

    def _read_word(self, words: list[Word], place: int, ezafe: float) -> ReadWord:
        word = words[place]
        if not word.is_persian:
            spoken = self._read_foreign(word.text)
            return ReadWord(word, spoken, spoken, "other language", 0.0, False)
        ezafe = 1.0 if word.has_ezafe else ezafe
        choice = choose_reading(words, place, ezafe)
        found = self._lexicon.pronounce(word.text)
        if choice:
            found = Pronunciation(choice.phonemes, "homograph")
        if linked := link(words, place):
            found = Pronunciation(linked, "link")
        has_ezafe = word.has_ezafe or takes_ezafe(word.text, ezafe, place + 1 == len(words))
        marked = stress(word.text, found.phonemes)
        change = with_ezafe if has_ezafe else without_ezafe
        spoken = change(word.text, marked)
        return ReadWord(word, spoken, found.phonemes, found.source, ezafe, has_ezafe, choice)

    def _read_foreign(self, text: str) -> str:
        """Read a Latin word by English; spell what English says nothing of."""
        if text not in self._foreign:
            spoken = self._speak(text, "fa" if text.isdigit() else "en")
            names = spell_latin(text).split()
            self._foreign[text] = spoken or " ".join(map(self._say, names))
        return self._foreign[text]

    def _say(self, word: str) -> str:
        return stress(word, self._lexicon.pronounce(word).phonemes)


def _notes(item: ReadWord) -> str:
    notes = [item.source]
    if item.has_ezafe:
        notes.append("ezafe, written" if item.word.has_ezafe else f"ezafe {item.ezafe:.0%}")
    elif item.ezafe >= _WORTH_SAYING:
        notes.append(f"no ezafe {1 - item.ezafe:.0%}")
    if item.choice:
        others = ", ".join(r for r in item.choice.readings if r != item.choice.phonemes)
        notes.append(f"{item.choice.probability:.0%} sure, not {others}")
    return "; ".join(notes)


def _pause(gap: str) -> str:
    """Keep the marks that pause, and a space where words are apart."""
    marks = "".join(_KEPT_MARKS.findall(gap))
    return marks + (" " if gap[-1:].isspace() or not marks else "")
