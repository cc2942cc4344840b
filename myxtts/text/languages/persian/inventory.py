"""The phonemes of Iranian Persian, and how other notations write them.

| kind | IPA |
|---|---|
| vowels | æ e o ɒ i u |
| stops | p b t d k ɡ q ʔ |
| affricates | t͡ʃ d͡ʒ |
| fricatives | f v s z ʃ ʒ x h |
| others | m n l r j |

Iranian Persian merges ghayn and qaf (q), has no long e or o, and reads "ow" as "o". Stress is a
mark before the vowel.
"""

import re

VOWELS = "æeoɒiu"
CONSONANTS = tuple("p b t d k ɡ q ʔ t͡ʃ d͡ʒ f v s z ʃ ʒ x h m n l r j".split())
PHONEMES = (*VOWELS, *CONSONANTS)
STRESS = "ˈ"

# The notations of annotated texts, as in FarsDat and in HomoRich; longer keys go first.
_COMMON = {"y": "j", "g": "ɡ"}
FARSDAT = _COMMON | {"a": "æ", "/": "ɒ", ".": "ʃ", ",": "d͡ʒ", "'": "t͡ʃ", "[": "ʒ", "]": "ʔ"}
GE2PE = _COMMON | {"/": "æ", "a": "ɒ", "$": "ʃ", "j": "d͡ʒ", "c": "t͡ʃ", ";": "ʒ", "@": "ʔ"}
HOMORICH = _COMMON | {"a": "æ", "A": "ɒ", "S": "ʃ", "j": "d͡ʒ", "C": "t͡ʃ", "c": "t͡ʃ", "Z": "ʒ"}
HOMORICH |= {"?": "ʔ"}
# The IPA of gruut's lexicon, and the marks of espeak, whose vowels lean towards Dari.
GRUUT = {"ɒː": "ɒ", "e̞": "e", "iː": "i", "uː": "u", "ɾ": "r", "ɢ": "q", "g": "ɡ"}
ESPEAK = {"a": "æ", "ɑ": "ɒ", "ɣ": "q", "ɛ": "e", "ɔ": "o", "w": "v", "g": "ɡ", "ɢ": "q"}


def from_notation(text: str, notation: dict[str, str]) -> str:
    """Write one word of another notation in IPA; marks that it does not know are kept."""
    return "".join(notation.get(sign, sign) for sign in text)


def from_espeak(ipa: str) -> str:
    """Write espeak's Persian in the inventory, without stress and length."""
    plain = re.sub("[ˈˌːˑ\u0303\u031e\u032a]", "", ipa)
    return "".join(ESPEAK.get(sign, sign) for sign in plain)


def from_gruut(phonemes: str) -> str:
    """Write an entry of gruut's lexicon, whose phonemes are set apart, in the inventory."""
    return "".join(GRUUT.get(sign, sign) for sign in phonemes.split())


def as_espeak_codes(ipa: str) -> str:
    """Write IPA in the codes that espeak's Persian voice speaks; marks that pause stay outside."""
    parts = re.split(r"([^\w\sˈ͡]+)", ipa)
    spoken = [_CODE.sub(lambda sign: _CODES[sign[0]], part) for part in parts[::2]]
    said = [f"[[{codes.strip()}]]" if codes.strip() else "" for codes in spoken]
    pauses = [mark + " " for mark in parts[1::2]] + [""]
    return "".join(codes + mark for codes, mark in zip(said, pauses, strict=True)).strip()


def split_phonemes(word: str) -> list[str]:
    """Cut a word of the inventory into phonemes; an affricate is one."""
    return _PHONEME.findall(word)


_CODES = {"æ": "a", "ɒ": "A", "i": "i:", "u": "u:", "q": "q1", "ʔ": "?", "ɡ": "g", "r": "R"}
_CODES |= {"t͡ʃ": "tS", "d͡ʒ": "dZ", "ʃ": "S", "ʒ": "Z", STRESS: "'"}
_CODE = re.compile("|".join(sorted(_CODES, key=len, reverse=True)))
_PHONEME = re.compile("t͡ʃ|d͡ʒ|.", re.DOTALL)
