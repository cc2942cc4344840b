"""Korean as it is read: words by the rules of pronunciation, Latin words as English."""

import re
from collections.abc import Iterator, Sequence

from myxtts.text.language import Speak, SpokenWord
from myxtts.text.languages.korean.sounds import ends_in_l, is_syllable, pronounce, to_ipa

_PART = re.compile(r"[가-힣]+|[^\W\d_가-힣]+(?:'[^\W\d_]+)*|\d+|\s+|.")
_PAUSES = frozenset("(),.:;?!¡¿—…")
# After a form of a verb in l these begin with a tense consonant: 할 수 있다, 갈 것이다.
_AFTER_L = re.compile(
    r"(?<=([가-힣]) )(?:(것)|([거건걸게줄데바듯])(?![가-힣])|(거)(?=[야예다지])"
    r"|(수)(?=(?:가|는|도|밖에)? [있없]))"
)
_TENSE = dict(zip("것거건걸게줄데바듯수", "껏꺼껀껄께쭐떼빠뜻쑤", strict=True))


class Reader:
    """Reads Korean by rules, without a dictionary."""

    def __init__(self, speak: Speak):
        self._speak = speak

    def phonemize(self, texts: Sequence[str]) -> list[str]:
        """Turn normalised texts into IPA with their punctuation."""
        return [self._phonemize(text) for text in texts]

    def added_sounds(self, text: str) -> list[str]:
        """None: every sound is written."""
        return []

    def explain(self, text: str) -> list[SpokenWord]:
        """List the words of one normalised text with their spelling by sound."""
        words = []
        for part in self._parts(text):
            if is_syllable(part[0]):
                sounded = pronounce(part)
                words.append(SpokenWord(part, to_ipa(sounded), sounded))
            elif part[0].isalnum():
                words.append(SpokenWord(part, self._speak(part, "en"), "English"))
        return words

    def _phonemize(self, text: str) -> str:
        said = []
        for part in self._parts(text):
            if is_syllable(part[0]):
                said.append(to_ipa(pronounce(part)))
            elif part[0].isalnum():
                said.append(self._speak(part, "en"))
            elif part in _PAUSES or part.isspace():
                said.append(part)
        return re.sub(r"\s+", " ", "".join(said)).strip()

    def _parts(self, text: str) -> Iterator[str]:
        for found in _PART.finditer(_AFTER_L.sub(_tense, text)):
            yield found[0]


def _tense(match: re.Match[str]) -> str:
    return _TENSE[match[0]] if ends_in_l(match[1]) else match[0]
