"""Chinese by words: jieba cuts them, pypinyin finds their syllables, and a table their phonemes."""

import re
from collections.abc import Sequence
from typing import Any

from myxtts.text.errors import MissingExtraError
from myxtts.text.language import Speak, SpokenWord

_INITIALS = {
    **{"b": "p", "p": "pʰ", "m": "m", "f": "f", "d": "t", "t": "tʰ", "n": "n", "l": "l"},
    **{"g": "k", "k": "kʰ", "h": "x", "j": "t͡ɕ", "q": "t͡ɕʰ", "x": "ɕ", "r": "ʐ"},
    **{"zh": "t͡ʂ", "ch": "t͡ʂʰ", "sh": "ʂ", "z": "t͡s", "c": "t͡sʰ", "s": "s", "": ""},
}
_FINALS = {
    **{"a": "ɑ", "o": "o", "e": "ɤ", "i": "i", "u": "u", "v": "y", "er": "ɚ", "ê": "ɛ"},
    **{"ai": "a͡i", "ei": "e͡i", "ao": "ɑ͡u", "ou": "o͡u", "an": "an", "en": "ən"},
    **{"ang": "ɑŋ", "eng": "əŋ", "ong": "oŋ", "ia": "i͡ɑ", "ie": "i͡ɛ", "iao": "jɑ͡u"},
    **{"iou": "i͡o͡u", "ian": "jɛn", "in": "in", "iang": "jɑŋ", "ing": "iŋ", "iong": "joŋ"},
    **{"io": "i͡o", "ua": "u͡a", "uo": "u͡o", "uai": "u͡a͡i", "uei": "u͡e͡i", "uan": "wan"},
    **{"uen": "wən", "uang": "wɑŋ", "ueng": "wəŋ", "ve": "y͡ɛ", "van": "y͡æn", "vn": "yn"},
    **{"m": "m", "n": "n", "ng": "ŋ"},
}
_BUZZED = frozenset("zh ch sh r z c s".split())  # their "i" is a vowel of its own
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_PART = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]+(?:'[^\W\d_]+)*|\d+|\s+|.")
_IS_HAN = re.compile(f"[{_HAN}]")
_DIGITS = "零一二三四五六七八九"
_MOST_DIGITS = 12
_PAUSES = frozenset("(),.:;?!¡¿—…")


class Reader:
    """Reads Chinese; words in Latin letters are read as English."""

    def __init__(self, speak: Speak):
        self._speak = speak
        self._cut, self._pinyin = _load()

    def phonemize(self, texts: Sequence[str]) -> list[str]:
        """Turn normalised texts into IPA with a digit for the tone of each syllable."""
        return [self._phonemize(text) for text in texts]

    def added_sounds(self, text: str) -> list[str]:
        """None: every sound is written."""
        return []

    def explain(self, text: str) -> list[SpokenWord]:
        """List the words of one normalised text with their syllables."""
        words = []
        for part in _PART.findall(text):
            if _IS_HAN.match(part):
                for word in self._cut(part):
                    pairs = self._pinyin(word)
                    words.append(SpokenWord(word, _say(pairs), " ".join(a + b for a, b in pairs)))
            elif part[0].isalnum():
                words.append(SpokenWord(part, self._say_other(part), "number or English"))
        return words

    def _phonemize(self, text: str) -> str:
        said: list[str] = []
        for part in _PART.findall(text):
            if _IS_HAN.match(part):
                said += [" " + _say(self._pinyin(word)) for word in self._cut(part)]
            elif part[0].isalnum():
                said.append(" " + self._say_other(part))
            elif part in _PAUSES:
                said.append(part)
        return re.sub(r"\s+", " ", "".join(said)).strip()

    def _say_other(self, part: str) -> str:
        if part.isdecimal():
            return _say(self._pinyin(cardinal(part)))
        return self._speak(part, "en")


def cardinal(digits: str) -> str:
    """Write a number in Han characters, digit by digit where it is long or starts with zero."""
    if len(digits) > _MOST_DIGITS or digits.startswith("0"):
        return "".join(_DIGITS[int(digit)] for digit in digits)
    groups = []
    value = int(digits)
    for scale in ("", "万", "亿"):
        value, group = divmod(value, 10_000)
        if group:
            zero = "零" if value and group < 1000 else ""
            groups.append(zero + _below_ten_thousand(group) + scale)
    words = "".join(reversed(groups))
    return words.removeprefix("一") if words.startswith("一十") else words


def _below_ten_thousand(value: int) -> str:
    words, is_gap = "", False
    for unit, size in (("千", 1000), ("百", 100), ("十", 10), ("", 1)):
        digit, value = divmod(value, size)
        if digit:
            words += ("零" if is_gap and words else "") + _DIGITS[digit] + unit
        is_gap = not digit
    return words


def _say(syllables: list[tuple[str, str]]) -> str:
    return "".join(_syllable(initial, final) for initial, final in syllables)


def _syllable(initial: str, final: str) -> str:
    """Say a syllable, as ("zh", "ong1")."""
    tone = final[-1] if final[-1:].isdigit() else "5"
    bare = final.rstrip("012345").replace("ü", "v")
    vowel = "ɨ" if bare == "i" and initial in _BUZZED else _FINALS.get(bare, "")
    return _INITIALS.get(initial, "") + vowel + tone if vowel else ""


def _load() -> tuple[Any, Any]:
    try:
        import jieba
        from pypinyin import Style, pinyin
    except ImportError as error:
        raise MissingExtraError("reading Chinese by words", "chinese") from error
    jieba.setLogLevel(60)

    def syllables(word: str) -> list[tuple[str, str]]:
        initials = pinyin(word, style=Style.INITIALS, strict=True)
        finals = pinyin(word, style=Style.FINALS_TONE3, strict=True, neutral_tone_with_five=True)
        return [(first[0], last[0]) for first, last in zip(initials, finals, strict=True)]

    return jieba.cut, syllables
