"""Text as it is written becomes text as it is spoken, one language at a time."""

import re
import unicodedata

from myxtts.text.language import Language
from myxtts.text.languages import get_language
from myxtts.text.numbers import expand_numbers

# Part of every cache's fingerprint: raise it with any change to what `normalise` or, for the same
# espeak, `phonemize` returns. Where it concerns one language alone, raise the version of its row
# instead: caches of others stay valid, and so do runs, whose tables are the same.
CLEANERS_VERSION = 2

ZWNJ = "\u200c"


def normalise(text: str, language: str) -> str:
    """Return clean, lower-case, spelled-out text: "$5" in English is "five dollars"."""
    row = get_language(language)
    text = _unify(row.prepare(text) if row.prepare else text)
    text = row.expand(text) if row.expand else expand_numbers(text, row)
    text = _lower(text, row)
    return _tidy(text if row.has_joiners else text.replace(ZWNJ, ""))


def _unify(text: str) -> str:
    """Bring Unicode's many ways to write a letter, a digit, a quote or a space down to one."""
    text = unicodedata.normalize("NFC", _MARK_PILE.sub(_cut_marks, text))
    text = _COMPATIBILITY.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _SPACES.sub(" ", text)
    text = _INVISIBLE.sub("", text)
    text = _FOREIGN_DIGITS.sub(lambda match: str(unicodedata.digit(match[0])), text)
    text = re.sub(r"« ?| ?»", '"', text).translate(_PUNCTUATION)
    text = re.sub(r"-{2,}|(?<= )-(?= )", "—", text)
    return re.sub(r"\.{2,}|…[.…]+", "…", text)


def _cut_marks(run: re.Match[str]) -> str:
    """Keep the first marks of each pile: to sort them takes the square of their number."""
    kept, height = [], 0
    for character in run[0]:
        height = height + 1 if unicodedata.combining(character) else 0
        if height <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _lower(text: str, language: Language) -> str:
    """Lower-case a text; Turkish distinguishes dotted and dotless i."""
    for capital, small in language.lower_case.items():
        text = text.replace(capital, small)
    # Lower-casing a dotted capital I leaves a combining dot behind.
    return unicodedata.normalize("NFC", text.lower().replace("i\u0307", "i"))


def _tidy(text: str) -> str:
    """Drop what cannot be spoken, and leave one space between words and none before a comma."""
    text = _SILENT.sub(" ", text)
    text = re.sub(r'([!"(),:;?¡¿—…])(?:\s*\1)+', r"\1", text)
    text = re.sub(r" +", " ", text)
    text = re.sub(r" ([,.;:!?…)])", r"\1", text)
    text = re.sub(r"([,;:!?…)])(?=[^\W\d_])", r"\1 ", text)
    text = re.sub(r"([(¿¡]) ", r"\1", text)
    return text.strip(" -")


def _class(*spans: tuple[int, int]) -> str:
    return "[" + "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in spans) + "]"


_MOST_MARKS = 30  # the limit of Unicode's stream-safe text; no language comes near it
_MARK_PILE = re.compile(rf"[^\x00-\x7f\w]{{{_MOST_MARKS + 1},}}")
# Ligatures, Arabic presentation forms, full-width and half-width letters.
_COMPATIBILITY = re.compile(
    _class((0xFB00, 0xFB4F), (0xFB50, 0xFDFF), (0xFE30, 0xFE6F), (0xFE70, 0xFEFC), (0xFF01, 0xFFEE))
    + "+"
)
_SPACES = re.compile(r"\s+")
# Control, formatting, surrogate and private characters; the zero-width non-joiner is a letter of
# Persian spelling and stays until the language is known.
_INVISIBLE = re.compile(
    _class(
        (0x00, 0x1F),
        (0x7F, 0x9F),
        (0xAD, 0xAD),
        (0x061C, 0x061C),
        (0x180B, 0x180E),
        (0x200B, 0x200B),
        (0x200D, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xFFF0, 0xFFFB),
        (0xD800, 0xDFFF),
        (0xE000, 0xF8FF),
        (0xE0000, 0x10FFFF),
    )
)
_FOREIGN_DIGITS = re.compile(r"[^\D0-9]")
_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»‹›″‶「」『』《》〈〉❝❞", '"'),
        **dict.fromkeys("‘’‚‛′‵`´ʼʹ", "'"),
        **dict.fromkeys("‐‑‒–−﹣", "-"),
        **dict.fromkeys("―⸺⸻─━", "—"),
        **dict.fromkeys("،﹐", ","),
        **dict.fromkeys("۔।॥", "."),
        # Scripts without spaces still pause here.
        **{"、": ", ", "。": ". ", "｡": ". "},
        **dict.fromkeys("[{【〔", "("),
        **dict.fromkeys("]}】〕", ")"),
        "؛": ";",
        "؟": "?",
        "٪": "%",
        "⁄": "/",
        "‼": "!",
        "‽": "?",
        "٫": ".",
        "٬": ",",
        **{"½": " 1/2", "¼": " 1/4", "¾": " 3/4", "⅓": " 1/3", "⅔": " 2/3", "⅛": " 1/8"},
    }
)
_SILENT = re.compile(r"[\s*_~^|<>\\/#=+@$%&§¶†‡•·■□►™®©°×]+")
