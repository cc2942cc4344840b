"""The sound of an ezafe, and the sound of a word that can carry one."""

from myxtts.text.languages.persian.inventory import VOWELS

# A ye at the end of these writes nothing but the ezafe.
_CARRIERS = ("ای", "وی")
_ALWAYS = "های"
_LIKELY = 0.5


def takes_ezafe(written: str, probability: float, is_last: bool) -> bool:
    """Decide whether a word has an ezafe; the plural with a ye has one, unless nothing follows."""
    return not is_last and (probability >= _LIKELY or written.endswith(_ALWAYS))


def with_ezafe(written: str, phonemes: str) -> str:
    """Add the ezafe: "e" after a consonant, "je" after a vowel."""
    if written.endswith(_CARRIERS) and phonemes[-2:] in ("ɒj", "uj"):
        phonemes = phonemes[:-1]
    return phonemes + ("je" if phonemes[-1:] in VOWELS else "e")


def without_ezafe(written: str, phonemes: str) -> str:
    """Say the ye that is written for an ezafe and has none, as in "روی" at the end of a clause."""
    if written.endswith(_CARRIERS) and phonemes[-1:] in ("ɒ", "u") and len(written) > 2:
        return phonemes + "j"
    return phonemes
