"""Which word of a text each unit of its pronunciation belongs to.

A text is read as a whole: words change each other's sounds, merge and are joined by numbers and
abbreviations. So every word is also read alone, and the two readings are aligned. What espeak keeps
apart by a space stays apart; what it merges ("of the") is divided where the sounds fit best.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from myxtts.text.symbols import LENGTH_MARK, PUNCTUATION, STRESS_MARKS, TIE

Units = Sequence[str]

_MOST_MERGED = 4  # words that are read as one
_MOST_CELLS = 2500  # of a stretch without any word in common; a longer one is divided by length
_MOST_LETTERS_SQUARED = 1 << 16  # of two words that are compared: longer ones are no words
_SHORTEST_ANCHOR = 3  # characters of a word that is recognised where it stands by itself
_SIMILAR_LENGTH = 2  # characters by which the sounds of a word may differ in length
_MERGING_COST = 0.3
_GOOD_SHARE = 0.34  # of the characters may differ in a word that was found for sure
_PLAIN = str.maketrans("", "", STRESS_MARKS + LENGTH_MARK + TIE)


@dataclass(frozen=True, slots=True)
class Place:
    """The units of a word, from `start` to before `stop`; whether that is more than a guess."""

    start: int
    stop: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Words, and what is spoken for them."""

    words: range
    spoken: range
    is_certain: bool = True
    is_paired: bool = False


def place_words(alone: Sequence[Units], units: Units) -> list[Place]:
    """Find the units of each word, given how each is read alone; a silent word has no units."""
    spans = _spoken_words(units)
    plain = [_plain(part) for part in alone]
    heard = [number for number, part in enumerate(plain) if part]
    spoken = [_plain(units[start:stop]) for start, stop in spans]
    words = [plain[number] for number in heard]
    groups = _without_orphans(_align(words, spoken))
    found = [place for group in groups for place in _divide(group, words, spans, units)]
    paired = [group.is_paired for group in groups for _ in group.words]
    return _with_silent(_judge(found, words, paired, units), heard, len(plain))


def _spoken_words(units: Units) -> list[tuple[int, int]]:
    """Find what stands between spaces, without the punctuation around it."""
    found, start = [], 0
    for at in range(len(units) + 1):
        if at == len(units) or units[at] == " ":
            first, last = start, at
            while first < last and units[first] in PUNCTUATION:
                first += 1
            while last > first and units[last - 1] in PUNCTUATION:
                last -= 1
            if first < last:
                found.append((first, last))
            start = at + 1
    return found


def _align(words: Sequence[str], spoken: Sequence[str]) -> list[_Group]:
    """Divide words and what is spoken into groups that belong together, in order."""
    groups: list[_Group] = []
    at_word = at_spoken = 0
    for first, other, size in _anchors(words, spoken):
        groups += _align_stretch(words, range(at_word, first), spoken, range(at_spoken, other))
        groups += [
            _Group(range(first + n, first + n + 1), range(other + n, other + n + 1))
            for n in range(size)
        ]
        at_word, at_spoken = first + size, other + size
    rest = range(at_word, len(words)), range(at_spoken, len(spoken))
    return groups + _align_stretch(words, rest[0], spoken, rest[1])


def _anchors(words: Sequence[str], spoken: Sequence[str]) -> list[tuple[int, int, int]]:
    """Runs of words that are spoken as they are alone: (first word, first spoken, length)."""
    blocks = SequenceMatcher(None, words, spoken, autojunk=False).get_matching_blocks()
    return [
        (block.a, block.b, block.size)
        for block in blocks
        if block.size > 1 or block.size and len(words[block.a]) >= _SHORTEST_ANCHOR
    ]


def _align_stretch(
    words: Sequence[str], own: range, spoken: Sequence[str], heard: range
) -> list[_Group]:
    """Align a stretch at the least cost of differing characters."""
    if not own and not heard:
        return []
    if not own or not heard:
        return [_Group(own, heard)]
    if len(own) > 1 and len(own) * len(heard) > _MOST_CELLS:
        return [_Group(own, heard, is_certain=False)]
    costs: dict[tuple[int, int], float] = {(0, 0): 0.0}
    came: dict[tuple[int, int], tuple[int, int]] = {}
    for at in ((i, j) for i in range(len(own) + 1) for j in range(len(heard) + 1)):
        for to in _steps(at, len(own), len(heard)):
            said = "".join(spoken[heard.start + at[1] : heard.start + to[1]])
            meant = "".join(words[own.start + at[0] : own.start + to[0]])
            if to[1] - at[1] > 1 and len(said) > 2 * len(meant) + _SHORTEST_ANCHOR:
                continue  # costs more than to leave the rest to nobody
            cost = costs[at] + _distance(meant, said)
            cost += _MERGING_COST * max(to[0] - at[0] - 1, to[1] - at[1] - 1, 0)
            if cost < costs.get(to, float("inf")):
                costs[to], came[to] = cost, at
    groups, at = [], (len(own), len(heard))
    while at != (0, 0):
        since, at = at, came[at]
        groups.append(
            _Group(
                range(own.start + at[0], own.start + since[0]),
                range(heard.start + at[1], heard.start + since[1]),
            )
        )
    return _paired(groups[::-1], words, spoken)


def _paired(groups: list[_Group], words: Sequence[str], spoken: Sequence[str]) -> list[_Group]:
    """Mark groups as pairs where every word has one of its own that is about as long."""
    for group in groups:
        if len(group.words) != 1 or len(group.spoken) != 1:
            return groups
        if abs(len(words[group.words[0]]) - len(spoken[group.spoken[0]])) > _SIMILAR_LENGTH:
            return groups
    return [replace(group, is_paired=True) for group in groups]


def _steps(at: tuple[int, int], num_words: int, num_spoken: int) -> Iterator[tuple[int, int]]:
    """How an alignment may go on: one word as several, several as one, or one without the other."""
    i, j = at
    if j < num_spoken:
        yield i, j + 1
    if i < num_words:
        yield from ((i + 1, end) for end in range(j, num_spoken + 1))
        if j < num_spoken:
            yield from ((i + n, j + 1) for n in range(2, min(_MOST_MERGED, num_words - i) + 1))


def _without_orphans(groups: Sequence[_Group]) -> list[_Group]:
    """Add what no word was found for to the word before it, or to the first one, as a guess."""
    found: list[_Group] = []
    orphan = range(0)
    for group in groups:
        if group.words:
            spoken = range(orphan.start if orphan else group.spoken.start, group.spoken.stop)
            found.append(replace(group, spoken=spoken, is_certain=not orphan))
            orphan = range(0)
        elif found:
            spoken = range(found[-1].spoken.start, group.spoken.stop)
            found[-1] = _Group(found[-1].words, spoken, is_certain=False)
        else:
            orphan = range(orphan.start if orphan else group.spoken.start, group.spoken.stop)
    return found


def _divide(
    group: _Group, words: Sequence[str], spans: Sequence[tuple[int, int]], units: Units
) -> list[Place]:
    """Give each word of a group its units."""
    if not group.spoken:
        # Nothing is left of these words: they stand where the next one begins.
        at = spans[group.spoken.start][0] if group.spoken.start < len(spans) else len(units)
        return [Place(at, at, False) for _ in group.words]
    start, stop = spans[group.spoken[0]][0], spans[group.spoken[-1]][1]
    if len(group.words) == 1:
        return [Place(start, stop, group.is_certain)]
    parts = [words[number] for number in group.words]
    ends = _best_ends(parts, units[start:stop])
    bounds = [start, *(start + end for end in ends)]
    return [Place(*pair, group.is_certain) for pair in zip(bounds, bounds[1:], strict=False)]


def _best_ends(parts: Sequence[str], units: Units) -> list[int]:
    """Find where each part ends, so that the units between are most like it."""
    if len(parts) * len(units) ** 2 > _MOST_CELLS:
        total, done, ends = sum(map(len, parts)), 0, []
        for part in parts:
            done += len(part)
            ends.append(round(done / total * len(units)))
        return ends
    rows: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for part in parts:
        row: dict[int, tuple[float, int]] = {}
        for end in range(len(units) + 1):
            options = (
                (cost + _distance(part, _plain(units[start:end])), start)
                for start, (cost, _) in rows[-1].items()
                if start <= end
            )
            row[end] = min(options)
        rows.append(row)
    ends = [len(units)]
    for row in rows[:1:-1]:
        ends.append(row[ends[-1]][1])
    return ends[::-1]


def _judge(
    places: Sequence[Place], words: Sequence[str], paired: Sequence[bool], units: Units
) -> list[Place]:
    """A border is certain next to a word that sounds as it does alone or is paired."""
    good = [
        is_paired
        or _distance(word, said := _plain(units[place.start : place.stop]))
        <= _GOOD_SHARE * max(len(word), len(said))
        for word, place, is_paired in zip(words, places, paired, strict=True)
    ]
    borders = [True, *(one or other for one, other in zip(good, good[1:], strict=False)), True]
    return [
        Place(place.start, place.stop, place.is_exact and borders[n] and borders[n + 1])
        for n, place in enumerate(places)
    ]


def _with_silent(places: Sequence[Place], heard: Sequence[int], count: int) -> list[Place]:
    """Put words without a sound where the one before them ends."""
    by_number = dict(zip(heard, places, strict=True))
    found: list[Place] = []
    for number in range(count):
        end = found[-1].stop if found else 0
        found.append(by_number.get(number, Place(end, end, True)))
    return found


def _plain(units: Units) -> str:
    """Characters to compare by: without stress, length, ties, punctuation and spaces."""
    letters = (unit for unit in units if unit not in PUNCTUATION)
    return "".join(letters).translate(_PLAIN)


@lru_cache(maxsize=65536)
def _distance(one: str, other: str) -> int:
    """How many characters must be changed, added or removed to make one of the other."""
    if one == other or len(one) * len(other) > _MOST_LETTERS_SQUARED:
        return 0 if one == other else max(len(one), len(other))
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            cost = before if letter == wanted else 1 + min(before, row[j], row[j - 1])
            before, row[j] = row[j], cost
    return row[-1]
