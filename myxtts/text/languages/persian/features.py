"""What the ezafe tagger sees of a word and its neighbours, as rows of a hashed table."""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from myxtts.text.languages.persian.tokens import ZWNJ, Word
from myxtts.text.languages.persian.word_classes import WordClass, class_of

TABLE_BITS = 19
_EDGE = "<edge>"
_REACH = 3  # words to both sides that a template may look at
_MIX = np.uint64(0x9E3779B97F4A7C15)

# Of a word: itself, its endings and beginnings, a rough kind, its stem, the mark behind it, whether
# a half-space follows; and from the table of word classes: its part of speech, how much it leans to
# an ezafe, how much it asks its neighbour for one, and its two likeliest parts of speech.
_ATTRIBUTES = (
    *("word", "end1", "end2", "end3", "end4", "start1", "start2", "start3", "kind", "stem"),
    *("gap", "joined", "pos", "lean", "asks", "pair"),
)
_AT = {name: place for place, name in enumerate(_ATTRIBUTES)}
# A template is a list of attribute:offset; the values that it names are hashed together.
_TEMPLATES = """
gap:0 | gap:0 joined:0 kind:0
word:0 | word:1 | word:2 | word:3 | word:-1 | word:-2 | stem:0 | stem:1 | stem:-1
end1:0 | end2:0 | end3:0 | end4:0 | start1:0 | start2:0 | start3:0
end2:1 | end3:1 | end4:1 | start1:1 | start2:1 | start3:1 | end2:-1 | end3:-1 | start2:-1 | end3:2
kind:0 kind:1 | kind:-1 kind:0 kind:1 kind:2 | end1:0 kind:1 | word:0 kind:1
word:0 word:1 | word:0 word:-1 | word:1 word:2 | word:-1 word:-2 | word:0 word:2
word:-1 end2:0 | word:1 end2:0 | word:1 end3:0 | word:0 end2:1 | word:0 start2:1 | word:2 end2:1
end2:0 end2:1 | end3:0 end3:1 | end2:0 start2:1 | word:0 gap:0
end2:0 end2:1 end2:2 | end2:-1 end2:0 end2:1
pos:0 | pos:1 | pos:2 | pos:-1 | lean:0 | lean:1 | lean:2 | lean:-1 | asks:1 | asks:0
pair:0 | pair:1 | pos:0 pos:1 | lean:0 asks:1 | lean:0 asks:1 gap:0 | lean:0 lean:1
lean:0 lean:1 lean:2 | lean:-1 lean:0 lean:1 | pos:0 pos:1 pos:2 | pos:-1 pos:0 pos:1
pos:-1 pos:0 pos:1 pos:2 | pair:0 pair:1 | pair:0 pair:1 pair:2 | pair:-1 pair:0 pair:1
word:0 pos:1 | word:0 lean:1 | word:1 pos:0 | word:1 lean:0 | end2:0 pos:1 | end1:0 pos:0 pos:1
end1:0 pair:0 pair:1 | word:-1 pos:0 pos:1 | pos:0 pos:1 word:2 | pos:0 pos:1 gap:0 gap:1
pos:0 pos:1 pos:2 pos:3 | pos:-2 pos:-1 pos:0 pos:1
"""


def _parse(template: str) -> list[tuple[int, int]]:
    parts = (part.split(":") for part in template.split())
    return [(_AT[name], int(offset)) for name, offset in parts]


_PARSED = [_parse(one) for line in _TEMPLATES.split("\n") if line for one in line.split("|")]


def hash_features(sentences: Sequence[Sequence[Word]]) -> np.ndarray:
    """Return the rows of the table for each word of all sentences, [words, templates]."""
    rows: list[tuple[int, ...]] = []
    places: list[int] = []
    edge = [_attributes(_EDGE, "", False)] * _REACH
    for words in sentences:
        start = len(rows) + _REACH
        rows += edge
        rows += [_attributes(word.text, word.gap.strip()[:1], word.is_joined) for word in words]
        rows += edge
        places.extend(range(start, start + len(words)))
    values = np.array(rows, np.uint64).reshape(-1, len(_ATTRIBUTES))
    return _mix(values, np.array(places, np.int64)).T


def _mix(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Hash the values that the templates name, [templates, words]; all templates at once."""
    mixed = np.repeat(np.arange(1, len(_PARSED) + 1, dtype=np.uint64)[:, None], len(at), axis=1)
    for chosen, attributes, offsets in _STEPS:
        part = mixed[chosen] ^ values[at + offsets[:, None], attributes[:, None]]
        part *= _MIX
        mixed[chosen] = part ^ (part >> np.uint64(29))
    return (mixed & np.uint64(2**TABLE_BITS - 1)).astype(np.int64)


def _steps() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For the first, second ... part of templates: which have one, its attribute and offset."""
    steps = []
    for number in range(max(map(len, _PARSED))):
        chosen = [place for place, parts in enumerate(_PARSED) if len(parts) > number]
        parts = np.array([_PARSED[place][number] for place in chosen])
        steps.append((np.array(chosen), parts[:, 0], parts[:, 1]))
    return steps


_STEPS = _steps()


@lru_cache(maxsize=200_000)
def _attributes(text: str, gap: str, is_joined: bool) -> tuple[int, ...]:
    known = class_of(text) or class_of(text.rsplit(ZWNJ, 1)[-1]) or _unknown(text)
    names = (
        *(text, text[-1:], text[-2:], text[-3:], text[-4:], text[:1], text[:2], text[:3]),
        *(_kind(text), _stem(text), gap, str(is_joined)),
        *(known.part, f"{known.part}{known.lean}", f"a{known.asks}", known.part + known.second),
    )
    return tuple(zlib.crc32(name.encode()) for name in names)


def _unknown(text: str) -> WordClass:
    """What stands for the class of a word that the table lacks: its kind and its ending."""
    return WordClass("?" + _kind(text), text[-2:], -1, -1)


def _kind(text: str) -> str:
    """A short word itself, the prefix of a verb, or the ending of an inflected word."""
    if text == _EDGE:
        return text
    if not "\u0600" <= text[0] <= "\u06ff":
        return "latin"
    if len(text) < 3:
        return text
    if text.startswith(_VERBAL):
        return "verb"
    return next((ending for ending in _ENDINGS if text.endswith(ending)), "")


def _stem(text: str) -> str:
    """A word without its endings of number, degree and person."""
    base = text if text.startswith(_VERBAL) else text.split(ZWNJ)[0]
    for ending in _ENDINGS:
        if base.endswith(ending) and len(base) > len(ending) + 1:
            return base[: -len(ending)]
    return base


_VERBAL = (f"می{ZWNJ}", f"نمی{ZWNJ}")
_ENDINGS = tuple("هایی های ها ترین تر شان مان تان یی ان ات ین ند یم ید ش م ت ی ه".split())
