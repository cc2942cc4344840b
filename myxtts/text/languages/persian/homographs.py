"""Words with several pronunciations, which their neighbours decide between."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from myxtts.text.languages.persian.inventory import HOMORICH, from_notation
from myxtts.text.languages.persian.table_files import read_rows
from myxtts.text.languages.persian.tokens import ZWNJ, Word

_REACH = 7  # words to both sides that may decide
_NEAR = 2.0  # a direct neighbour counts so many times as much as one far away
_CUE = 2.0  # the weight of a cue that has none in the table, in nats
_PLACE = 1.5  # the weight of a place in the sentence


class Reading(NamedTuple):
    """One pronunciation of a homograph, and what speaks for it.

    `places` are letters: v at the end of a clause, n not there, e with an ezafe, b without, + next
    to a word that a half-space joins.
    """

    phonemes: str
    prior: float
    places: str
    cues: dict[str, float]


class Choice(NamedTuple):
    """The reading that was chosen, how likely it is, and all readings."""

    phonemes: str
    probability: float
    readings: tuple[str, ...]


def choose_reading(words: Sequence[Word], place: int, ezafe: float) -> Choice | None:
    """Read a homograph by its context; None for other words. `ezafe` is its probability."""
    readings = _homographs().get(words[place].text)
    if readings is None:
        return None
    context = context_of(words, place)
    scores = [_score(reading, context, words, place, ezafe) for reading in readings]
    best = max(range(len(scores)), key=scores.__getitem__)
    total = sum(math.exp(score - scores[best]) for score in scores)
    return Choice(readings[best].phonemes, 1 / total, tuple(r.phonemes for r in readings))


def _score(
    reading: Reading, context: dict[str, float], words: Sequence[Word], place: int, ezafe: float
) -> float:
    score = math.log(reading.prior)
    for word, nearness in context.items():
        score += nearness * reading.cues.get(word, 0.0)
    return score + _place_score(reading.places, words, place, ezafe)


def _place_score(places: str, words: Sequence[Word], place: int, ezafe: float) -> float:
    word = words[place]
    is_last = place + 1 == len(words) or any(mark in word.gap for mark in ",.;:?!—…")
    is_before_and = not is_last and words[place + 1].text in ("و", "که")
    score = 0.0
    if "v" in places:
        score += _PLACE if is_last else 0.0 if is_before_and else -_PLACE
    if "n" in places:
        score -= _PLACE if is_last else 0.0
    if "e" in places:
        score += _PLACE * (2 * ezafe - 1)
    if "b" in places:
        score -= _PLACE * (2 * ezafe - 1)
    return score


def context_of(words: Sequence[Word], place: int) -> dict[str, float]:
    """The words and stems around a place in its sentence, each with how near it is."""
    found: dict[str, float] = {}
    for at in _places_around(words, place):
        nearness = _NEAR if abs(at - place) == 1 else 1.0
        side = "<" if at < place else ">"
        for form in {words[at].text, _stem(words[at].text)}:
            found[form] = max(found.get(form, 0.0), nearness)
            if abs(at - place) == 1:
                found[side + form] = _NEAR
    return found


def _places_around(words: Sequence[Word], place: int) -> Iterator[int]:
    for at in range(place - 1, max(0, place - _REACH) - 1, -1):
        if _ends_sentence(words[at]):
            break
        yield at
    for at in range(place + 1, min(len(words), place + _REACH + 1)):
        if _ends_sentence(words[at - 1]):
            break
        yield at


def _ends_sentence(word: Word) -> bool:
    return any(mark in word.gap for mark in ".?!…")


def _stem(word: str) -> str:
    """A word without half-space parts and plain endings."""
    base = word.removeprefix("ن").removeprefix("می" + ZWNJ) if "می" + ZWNJ in word else word
    base = base.split(ZWNJ)[0]
    for ending in ("های", "ها", "شان", "ش", "ی"):
        if base.endswith(ending) and len(base) > len(ending) + 2:
            return base[: -len(ending)]
    return base


@cache
def _homographs() -> dict[str, list[Reading]]:
    """All homographs: readings of HomoRich, where its table was made, go before our own."""
    return _read("homographs.tsv") | _read("homorich.tsv")


def _read(name: str) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for word, phonemes, prior, places, *cues in read_rows(name):
        pairs = (cue.partition("=") for cue in (cues[0].split() if cues else []))
        weights = {cue: float(weight or _CUE) for cue, _, weight in pairs}
        spoken = from_notation(phonemes, HOMORICH)
        reading = Reading(spoken, float(prior), places.replace("-", ""), weights)
        found.setdefault(word, []).append(reading)
    return found
