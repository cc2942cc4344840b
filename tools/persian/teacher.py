"""Classes of words from the part-of-speech tagger of hazm, which gruut-lang-fa packs (MIT)."""

import numpy as np

from myxtts.text.languages.persian.word_classes import PARTS, WordClass
from tools.persian.annotated import Sentence
from tools.persian.wapiti import WapitiTagger

_LEVELS = (-1.5, -0.5, 0.0, 0.5, 1.5)
_NO_EZAFE = 7  # the part of speech has no form with an ezafe


def word_classes(tagger: WapitiTagger) -> dict[str, WordClass]:
    """Class every word that the tagger has a weight for."""
    names = [name[2:] for name in tagger.unigrams if name.startswith(b"w=")]
    return {name.decode("utf-8", "replace"): _class(tagger, name) for name in names}


def _class(tagger: WapitiTagger, word: bytes) -> WordClass:
    scores = tagger.unigrams[b"w=" + word].astype(float)
    for size in (1, 2, 3):
        scores = scores + tagger.unigrams.get(b"p%d=" % size + word[:size], 0.0)
        scores = scores + tagger.unigrams.get(b"s%d=" % size + word[-size:], 0.0)
    at = {label: place for place, label in enumerate(tagger.labels)}
    best = {part: max(scores[at[part]], _with_ezafe(scores, at, part)) for part in PARTS}
    first, second = sorted(PARTS, key=best.__getitem__, reverse=True)[:2]
    lean = _NO_EZAFE
    if first + "e" in at:
        lean = _level(scores[at[first + "e"]] - scores[at[first]])
    right = tagger.unigrams.get(b"wr=" + word, np.zeros(len(at)))
    asks = _level(max(right[at["Ne"]], right[at["AJe"]]) - max(right[at["N"]], right[at["AJ"]]))
    return WordClass(first, second, lean, asks)


def _with_ezafe(scores: np.ndarray, at: dict[str, int], part: str) -> float:
    return scores[at[part + "e"]] if part + "e" in at else -np.inf


def _level(value: float) -> int:
    return sum(value > level for level in _LEVELS)


def keep_agreed(sentences: list[Sentence], tagger: WapitiTagger) -> list[Sentence]:
    """Forget the labels of words on which the tagger says otherwise: one of the two is wrong."""
    kept = []
    for sentence in sentences:
        tags = tagger.tag([word.text for word in sentence.words])
        pairs = zip(sentence.ezafes, tags, strict=True)
        labels = [mark if bool(mark) == tag.endswith("e") else None for mark, tag in pairs]
        kept.append(sentence._replace(ezafes=labels))
    return kept
