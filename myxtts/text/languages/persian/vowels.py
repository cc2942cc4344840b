"""Persian with its short vowels and ezafes written out, for readers that cannot guess them."""

import unicodedata

from myxtts.text.language import Speak
from myxtts.text.languages.persian.inventory import split_phonemes
from myxtts.text.languages.persian.reading import Reader, ReadWord

_SHORT = {"æ": "\u064e", "e": "\u0650", "o": "\u064f"}
_SHADDA, _KASRA = "\u0651", "\u0650"
_SOUNDS = {
    **dict(zip("بپدرزژسشفکگلمن", "bpdrzʒsʃfkɡlmn", strict=True)),
    **dict.fromkeys("تط", "t"),
    **dict.fromkeys("صث", "s"),
    **dict.fromkeys("ذضظ", "z"),
    **dict.fromkeys("هح", "h"),
    **dict.fromkeys("قغ", "q"),
    **{"خ": "x", "چ": "t͡ʃ", "ج": "d͡ʒ", "ع": "ʔ", "ئ": "ʔ", "ء": "ʔ", "ؤ": "ʔ"},
}
# Letters that stand for vowels too, or for nothing: each with what it may say, best first.
_VOWEL_LETTERS = {
    "ا": ("ɒ", "æ", "e", "o", ""),
    "آ": ("ɒ",),
    "و": ("v", "u", "o", ""),
    "ی": ("j", "i", "ɒ", "e", ""),
    "ه": ("h", "e", "æ", ""),
    "ع": ("ʔ", ""),
    "ئ": ("ʔ", "j", ""),
    "\u064b": ("æ", ""),
}


def vowelise(text: str, speak: Speak) -> str:
    """Write the vowels of a normalised text above and below its letters."""
    (found,) = Reader(speak).read([text])
    return found.lead + "".join(_write(item) + _gap(item) for item in found.words)


def _gap(item: ReadWord) -> str:
    return "\u200c" if item.word.is_joined else item.word.gap


def _write(item: ReadWord) -> str:
    if not item.word.is_persian:
        return item.word.text
    written = mark_word(item.word.text, item.bare)
    return written + _ezafe(item.word.text) if item.has_ezafe else written


def _ezafe(word: str) -> str:
    return f"\u200cی{_KASRA}" if word.endswith("ه") else _KASRA


def mark_word(word: str, phonemes: str) -> str:
    """Put marks on a word; one whose letters do not fit its sounds stays as it is."""
    marked = _match(word, split_phonemes(phonemes))
    return word if marked is None else unicodedata.normalize("NFC", marked)


def _match(letters: str, sounds: list[str]) -> str | None:
    """Spell sounds with letters, from left to right, with a mark for every vowel between."""
    if not letters:
        return "" if not sounds else _SHORT.get(sounds[0]) if len(sounds) == 1 else None
    letter, rest = letters[0], letters[1:]
    if letter == "\u200c":
        tail = _match(rest, sounds)
        return None if tail is None else letter + tail
    for said in _VOWEL_LETTERS.get(letter, (_SOUNDS.get(letter, letter),)):
        if said and sounds[:1] != [said]:
            continue
        left = sounds[1:] if said else sounds
        mark = _SHORT.get(said, "") if said and letter == "ا" else ""
        found = _after(letter + mark, rest, left, said)
        if found is not None:
            return found
    return None


def _after(head: str, rest: str, sounds: list[str], said: str) -> str | None:
    """Go on behind a letter: with a doubled consonant, a short vowel, both or neither."""
    tries = [("", sounds)]
    is_consonant = bool(said) and said not in "æeoɒiu"
    if is_consonant and sounds[:1] == [said]:
        tries.insert(0, (_SHADDA, sounds[1:]))
    for doubled, left in tries:
        tail = _match(rest, left)
        if tail is not None and (rest or not left):
            return head + doubled + tail
        if is_consonant and left and left[0] in _SHORT:
            tail = _match(rest, left[1:])
            if tail is not None:
                return head + doubled + _SHORT[left[0]] + tail
    return None
