"""Which words of a Persian sentence carry an ezafe, and how sure that is."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from myxtts.text.languages.persian.dates import is_date
from myxtts.text.languages.persian.features import hash_features
from myxtts.text.languages.persian.table_files import read_arrays
from myxtts.text.languages.persian.tokens import Word


def ezafe_probabilities(sentences: Sequence[Sequence[Word]]) -> list[np.ndarray]:
    """Return the probability of an ezafe for each word of each sentence.

    The last word of a sentence has none, nor has one before a mark that makes a pause. The day
    before a month always has one.
    """
    if not any(sentences):
        return [np.zeros(0) for _ in sentences]
    weights, scale, bias = _model()
    scores = weights[hash_features(sentences)].sum(axis=1, dtype=np.int64) * scale + bias
    probabilities = 1 / (1 + np.exp(-scores))
    ends = np.cumsum([len(words) for words in sentences])[:-1]
    found = np.split(probabilities, ends)
    for words, row in zip(sentences, found, strict=True):
        row[[_is_day(words, place) for place in range(len(words))]] = 1.0
        row[[_cannot_have(words, place) for place in range(len(words))]] = 0.0
    return found


def _is_day(words: Sequence[Word], place: int) -> bool:
    return place + 1 < len(words) and is_date(words[place].text, words[place + 1].text)


def _cannot_have(words: Sequence[Word], place: int) -> bool:
    word = words[place]
    is_last = place + 1 == len(words) or not _PAUSES.isdisjoint(word.gap)
    return is_last or not word.is_persian or _POINT in (word.text, words[place + 1].text)


@cache
def _model() -> tuple[np.ndarray, float, float]:
    arrays = read_arrays("ezafe.npz")
    return arrays["weights"].astype(np.int32), float(arrays["scale"]), float(arrays["bias"])


_POINT = "ممیز"  # within a decimal number
_PAUSES = frozenset(",.:;?!—…)")
