"""Small damage to bytes, as any format may suffer it."""

from random import Random

_MARKS = (
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b'"',
    b"|",
    b"\t",
    b"\x1b[31m",
    b"\xed\xa0\x80",
)


def mutated(random: Random, data: bytes) -> tuple[str, bytes]:
    """What was done to the bytes, and the bytes."""
    name, change = random.choice(_CHANGES)
    for _ in range(random.choice((1, 1, 2, 5))):
        data = change(random, data)
    return name, data


def _flip(random: Random, data: bytes) -> bytes:
    if not data:
        return data
    changed, at = bytearray(data), random.randrange(len(data))
    changed[at] ^= 1 << random.randrange(8)
    return bytes(changed)


def _flip_early(random: Random, data: bytes) -> bytes:
    return _flip(random, data[:64]) + data[64:]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice((random.randbytes(8), *_MARKS)) + data[at:]


def _remove(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at + random.choice((1, 4, 100)) :]


def _repeat(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at : at + 200] * random.choice((2, 3, 50)) + data[at:]


def _swap(random: Random, data: bytes) -> bytes:
    a, b = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[b:] + data[a:b] + data[:a]


def _fill(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    size = random.choice((4, 8, 64))
    return data[:at] + bytes([random.choice((0, 0x7F, 0x80, 0xFF))]) * size + data[at + size :]


_CHANGES = (
    ("flip", _flip),
    ("flip-early", _flip_early),
    ("cut", _cut),
    ("insert", _insert),
    ("remove", _remove),
    ("repeat", _repeat),
    ("swap", _swap),
    ("fill", _fill),
)
