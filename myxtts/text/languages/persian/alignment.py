"""Which spoken words belong to which written ones, by their consonants."""

import re
from collections.abc import Sequence
from functools import lru_cache

_MOST_JOINED = 4  # spoken words of one written word, and the other way round
_SOUNDS = {
    **dict(zip("بپتجچخدرزژسشفقکگلمن", "bptjcxdrzJsSfqkglmn", strict=True)),
    **dict.fromkeys("صث", "s"),
    **dict.fromkeys("ذضظ", "z"),
    **dict.fromkeys("طة", "t"),
    **dict.fromkeys("هح", "h"),
    **dict.fromkeys("غ", "q"),
    **{"و": "v", "ی": "y", "ئ": "y", "\u064b": "n"},
}
_IPA = {"t͡ʃ": "c", "d͡ʒ": "j", "ʃ": "S", "ʒ": "J", "ɡ": "g", "j": "y", "i": "y", "u": "v"}
_SOUND = re.compile("t͡ʃ|d͡ʒ|.")
_WEAK = frozenset("vyh")


def align(written: Sequence[str], spoken: Sequence[str]) -> list[tuple[slice, slice]]:
    """Pair runs of written words with runs of spoken ones; one of each pair has a single word."""
    letters = [_letters(word) for word in written]
    sounds = [_sounds(word) for word in spoken]
    best: dict[tuple[int, int], tuple[float, tuple[int, int] | None]] = {(0, 0): (0.0, None)}
    for row in range(len(written) + 1):
        for column in range(len(spoken) + 1):
            if (row, column) not in best:
                continue
            cost = best[row, column][0]
            for rows, columns in _MOVES:
                end = row + rows, column + columns
                if end[0] > len(written) or end[1] > len(spoken):
                    continue
                wanted = "".join(letters[row : end[0]]), "".join(sounds[column : end[1]])
                total = (
                    cost + _distance(*wanted) + 0.3 * (rows + columns - 2 * (rows * columns == 1))
                )
                if end not in best or total < best[end][0]:
                    best[end] = total, (row, column)
    return _path(best, (len(written), len(spoken)))


def can_be(written: str, spoken: str) -> bool:
    """Whether a written word can sound so: at most one consonant in three may differ."""
    letters, sounds = _letters(written), re.sub(r"(.)\1", r"\1", _sounds(spoken))
    return _distance(letters, sounds) <= max(len(letters), len(sounds)) / 3 + 0.1


def _path(best: dict, end: tuple[int, int]) -> list[tuple[slice, slice]]:
    pairs = []
    while best[end][1] is not None:
        start = best[end][1]
        pairs.append((slice(start[0], end[0]), slice(start[1], end[1])))
        end = start
    return pairs[::-1]


def _letters(word: str) -> str:
    return "".join(_SOUNDS.get(letter, "") for letter in word)


def _sounds(word: str) -> str:
    parts = (_IPA.get(sound, sound) for sound in _SOUND.findall(word))
    return "".join(part for part in parts if part not in "æeoɒʔ12-")


@lru_cache(maxsize=65536)
def _distance(first: str, second: str) -> float:
    """The edit distance of two words' consonants, where glides and h count less."""
    row = [0.0]
    for sound in second:
        row.append(row[-1] + _price(sound))
    for letter in first:
        diagonal, row[0] = row[0], row[0] + _price(letter)
        for place, sound in enumerate(second, 1):
            change = diagonal + (0.0 if letter == sound else 1.5)
            diagonal = row[place]
            row[place] = min(change, row[place] + _price(letter), row[place - 1] + _price(sound))
    return row[-1]


def _price(sound: str) -> float:
    return 0.4 if sound in _WEAK else 1.0


_MOVES = [(1, size) for size in range(_MOST_JOINED + 1)]
_MOVES += [(size, 1) for size in range(_MOST_JOINED + 1) if size != 1]
