"""Where Persian words are stressed, by rule."""

import re

from myxtts.text.languages.persian.inventory import STRESS, VOWELS

_VOWEL = re.compile(f"[{VOWELS}]")
_UNSTRESSED = frozenset("و از به در که را با تا بر رو یا برای".split())
_VERBAL = ("می\u200c", "نمی\u200c")


def stress(written: str, phonemes: str) -> str:
    """Mark the last vowel of a word, or the prefix of a verb; an ezafe is added afterwards."""
    vowels = [match.start() for match in _VOWEL.finditer(phonemes)]
    if not vowels or written in _UNSTRESSED:
        return phonemes
    at = vowels[0] if written.startswith(_VERBAL) else vowels[-1]
    return phonemes[:at] + STRESS + phonemes[at:]
