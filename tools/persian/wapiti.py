"""A reader of Wapiti's text models: the part-of-speech tagger inside gruut-lang-fa is one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np


class WapitiTagger:
    """A linear-chain CRF with the patterns of hazm's tagger of words."""

    def __init__(self, path: Path):
        with path.open("rb") as file:
            _records(file, b"#rdr#")
            self.labels = [label.decode() for label in _records(file, b"#qrk#")]
            names = _records(file, b"#qrk#")
            weights = dict(line.strip().split(b"=") for line in file)
        count = len(self.labels)
        values = np.zeros(1 + max(map(int, weights)), np.float32)
        values[np.array(list(map(int, weights)))] = [
            float.fromhex(x.decode()) for x in weights.values()
        ]
        self.unigrams: dict[bytes, np.ndarray] = {}
        self.bigrams: dict[bytes, np.ndarray] = {}
        start = 0
        for name in names:
            if name[:1] in b"u*":
                self.unigrams[name[2:]] = _pad(values[start : start + count], count)
                start += count
            if name[:1] in b"b*":
                pairs = _pad(values[start : start + count * count], count * count)
                self.bigrams[name[2:]] = pairs.reshape(count, count)
                start += count * count

    def tag(self, words: Sequence[str]) -> list[str]:
        """Return the best sequence of labels, by Viterbi."""
        count = len(self.labels)
        score, back = np.zeros(count), []
        for place in range(len(words)):
            here, pairs = np.zeros(count), np.zeros((count, count))
            for name in _observe(words, place):
                here += self.unigrams.get(name, 0.0)
                pairs += self.bigrams.get(name, 0.0)
            total = score[:, None] + pairs if place else np.zeros((count, count))
            back.append(total.argmax(0))
            score = total.max(0) + here
        path = [int(score.argmax())]
        for row in back[:0:-1]:
            path.append(int(row[path[-1]]))
        return [self.labels[label] for label in path[::-1]]


def _observe(words: Sequence[str], place: int) -> Iterator[bytes]:
    """Yield what the patterns of the model see at a place."""
    yield b""
    for name, offset in ((b"wll", -2), (b"wl", -1), (b"w", 0), (b"wr", 1), (b"wrr", 2)):
        yield name + b"=" + _word(words, place + offset)
    own = _word(words, place)
    for size in (1, 2, 3):  # bytes, not letters
        yield b"p%d=" % size + own[:size]
        yield b"s%d=" % size + own[-size:]
    for mark, test in ((b"p", _has_mark), (b"n", _has_digit)):
        for name, offset in ((b"l", -1), (b"", 0), (b"r", 1)):
            yield mark + b"?" + name + b"=" + _truth(test(_word(words, place + offset)))
        is_all = all(test(own[at : at + 1]) for at in range(len(own)))
        yield mark + b"?a=" + _truth(is_all)


def _word(words: Sequence[str], place: int) -> bytes:
    """A word, or the name of a place beyond the sentence: _x-1 before it, _x+1 behind it."""
    if place < 0:
        return b"_x%d" % place
    return words[place].encode() if place < len(words) else b"_x+%d" % (place - len(words) + 1)


def _truth(value: bool) -> bytes:
    return b"true" if value else b"false"


def _has_mark(word: bytes) -> bool:
    return any(chr(byte) in "!\"#%&'()*,-./:;?@[\\]_{}" for byte in word if byte < 128)


def _has_digit(word: bytes) -> bool:
    return any(48 <= byte < 58 for byte in word)


def _pad(values: np.ndarray, size: int) -> np.ndarray:
    return values if len(values) == size else np.pad(values, (0, size - len(values)))


def _records(file, start: bytes) -> list[bytes]:
    """Read a section of `length:text,` lines."""
    line = file.readline()
    while not line.startswith(start):
        line = file.readline()
    size = int(line[len(start) :].split(b"/")[0])
    rows = []
    for _ in range(size):
        length, _, rest = file.readline().partition(b":")
        while len(rest) < int(length) + 2:
            rest += file.readline()
        rows.append(rest[: int(length)])
    return rows
