"""IPA as people write it becomes the phonemes of a table, as espeak writes them.

A stress mark moves from its syllable to the vowel, diphthongs and affricates are tied, and marks of
syllables disappear. A dot keeps two sounds apart that would be tied.
"""

import re
import unicodedata
from collections.abc import Sequence

from myxtts.text.errors import TextError
from myxtts.text.symbols import STRESS_MARKS, TIE
from myxtts.text.tokenizer import Tokenizer

_MARKS = "[\u0300-\u0360\u0362-\u036fʲʰˤᵝː]*"
# Stress marks are letters to Unicode.
_LETTER = f"[^\\W\\d_{STRESS_MARKS}]"
_PART = re.compile(f"(?P<sound>{_LETTER}{_MARKS}(?:{TIE}{_LETTER}{_MARKS})*)|(?P<other>.)", re.S)
_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɚɛɜɝɤɨɪɯɵʉʊʌʏᵻɶɞɘ")
_SYLLABIC = "\u0329"
_APART = ".|‿-"  # between syllables and words: they have no sound
_SAME = str.maketrans({"g": "ɡ", ":": "ː", "'": "ˈ", "’": "ˈ", "\u035c": TIE, "ʤ": "dʒ", "ʧ": "tʃ"})
_MOST_TIED = 3


class UnknownSymbolError(TextError):
    """IPA with a symbol that a voice does not have; `symbol` is that one."""

    def __init__(self, symbol: str, ipa: str):
        code = " ".join(f"U+{ord(character):04X}" for character in symbol)
        super().__init__(
            f"the voice has no symbol {symbol!r} ({code}), which stands in the IPA {ipa!r}: write "
            "the sound with others, as espeak-ng does for the language"
        )
        self.symbol = symbol


def to_phonemes(ipa: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the units of a pronunciation, all of which the tokenizer knows."""
    check_phonemes(tokenizer, ipa)
    units: list[str] = []
    for word in ipa.split():
        sounds = _sounds(unicodedata.normalize("NFC", word.translate(_SAME)))
        units += [" "] if units and sounds else []
        units += _tie(sounds, tokenizer)
    for unit in units:
        _check(unit, ipa, tokenizer)
    if not any(unit.strip() for unit in units):
        raise TextError(f"there is no sound in the IPA {ipa!r}: write one, or remove it")
    return tuple(units)


def check_phonemes(tokenizer: Tokenizer, ipa: str) -> None:
    """Raise for a voice that was not trained on phonemes."""
    if tokenizer.units == "characters":
        raise TextError(
            f"the voice reads characters and cannot say the IPA {ipa!r}: give a respelling in "
            "plain letters in a lexicon (word = respelling), or train a voice with "
            "--text-units phonemes"
        )


def _sounds(word: str) -> list[tuple[str, str, bool]]:
    """Take a word apart: (stress, sound, whether it may be tied to the sound before)."""
    found: list[tuple[str, str, bool]] = []
    stress, may_tie = "", False
    for part in _PART.finditer(word):
        sound, other = part["sound"], part["other"]
        if other and (other in STRESS_MARKS or other in _APART):
            stress = other if other in STRESS_MARKS else stress
            may_tie = False
            continue
        sound = sound or other
        own, stress = (stress, "") if _is_vowel(sound) else ("", stress)
        found.append((own, sound, may_tie and not own))
        may_tie = True
    return found


def _is_vowel(sound: str) -> bool:
    plain = unicodedata.normalize("NFD", sound)
    return plain[0] in _VOWELS or _SYLLABIC in plain


def _tie(sounds: Sequence[tuple[str, str, bool]], tokenizer: Tokenizer) -> list[str]:
    """Tie sounds that the table has as one, the longest first."""
    known, units, at = frozenset(tokenizer.symbols), [], 0
    while at < len(sounds):
        stress, sound, _ = sounds[at]
        size = 1
        for count in range(min(_MOST_TIED, len(sounds) - at), 1, -1):
            tied = TIE.join(part[1] for part in sounds[at : at + count])
            if all(part[2] for part in sounds[at + 1 : at + count]) and tied in known:
                sound, size = tied, count
                break
        units.append(stress + sound)
        at += size
    return units


def _check(unit: str, ipa: str, tokenizer: Tokenizer) -> None:
    missing = tokenizer.look_up(unit, tokenizer.languages[0])[1]
    if missing:
        raise UnknownSymbolError(missing[0], ipa)
