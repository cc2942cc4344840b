"""Recordings that lie: real ones with their headers and bodies changed, the same for every seed.

Run by hand, it reads them all and prints what became of them:
    python -m tests.hostile_audio [seed] [count]
"""

import io
import resource
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.io import AudioError, read_audio

FORMATS = (
    ("wav", "WAV", "PCM_16"),
    ("wav", "WAV", "PCM_24"),
    ("wav", "WAV", "FLOAT"),
    ("wav", "WAV", "DOUBLE"),
    ("wav", "WAV", "MS_ADPCM"),
    ("wav", "WAVEX", "PCM_16"),
    ("wav", "RF64", "PCM_16"),
    ("wav", "AIFF", "PCM_16"),
    ("wav", "CAF", "ALAC_16"),
    ("wav", "W64", "FLOAT"),
    ("flac", "FLAC", "PCM_16"),
    ("ogg", "OGG", "VORBIS"),
    ("opus", "OGG", "OPUS"),
    ("mp3", "MP3", "MPEG_LAYER_III"),
)
NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
HEADER = 96  # bytes in which most of what a header claims lies


def mutations(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield so many changed recordings with file names that tell their format and the change."""
    rng = np.random.default_rng(seed)
    seeds = [(extension, *_recording(rng, form, subtype)) for extension, form, subtype in FORMATS]
    changes = (_numbers, _flips, _truncation, _splice, _repetition, _flips_of_header, _noise)
    for number in range(count):
        extension, title, content = seeds[number % len(seeds)]
        change = changes[int(rng.integers(len(changes)))]
        changed = change(rng, content)
        if rng.random() < 0.3:
            changed = changes[int(rng.integers(len(changes)))](rng, changed)
        yield f"{number:05d}-{title}{change.__name__}.{extension}", changed


def _recording(rng: np.random.Generator, form: str, subtype: str) -> tuple[str, bytes]:
    channels = 1 + int(rng.integers(2))
    samples = 0.2 * rng.standard_normal((6000, channels)) * np.sin(np.arange(6000) / 500)[:, None]
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 24000, format=form, subtype=subtype)
    return f"{form}-{subtype}", _without_time(_with_fixed_serial(buffer.getvalue()))


def _without_time(content: bytes) -> bytes:
    """A float file whose table of peaks does not say when it was written."""
    at = content.find(b"PEAK") + 12
    return content if at < 12 else content[:at] + bytes(4) + content[at + 4 :]


def _with_fixed_serial(content: bytes) -> bytes:
    """An Ogg file whose stream has the number 0: libsndfile chooses one by the time."""
    pages, at = [], 0
    while content[at : at + 4] == b"OggS":
        segments = content[at + 26]
        size = 27 + segments + sum(content[at + 27 : at + 27 + segments])
        page = content[at : at + 14] + bytes(4) + content[at + 18 : at + size]
        pages.append(with_ogg_checksum(page))
        at += size
    return b"".join(pages) + content[at:]


def with_ogg_checksum(page: bytes) -> bytes:
    """A page of Ogg with its CRC: the polynomial 0x04C11DB7, not reflected, from zero."""
    page, crc = bytes(page[:22]) + bytes(4) + bytes(page[26:]), 0
    for byte in page:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return page[:22] + crc.to_bytes(4, "little") + page[26:]


def _numbers(rng: np.random.Generator, content: bytes) -> bytes:
    """Extreme numbers in the header, of 1 to 8 bytes in either order."""
    changed = bytearray(content)
    for _ in range(1 + int(rng.integers(3))):
        width = int(rng.choice((1, 2, 4, 8)))
        value = NUMBERS[int(rng.integers(len(NUMBERS)))] % 256**width
        at = int(rng.integers(max(1, min(len(changed), HEADER) - width)))
        changed[at : at + width] = value.to_bytes(width, str(rng.choice(("little", "big"))))
    return bytes(changed)


def _flips(rng: np.random.Generator, content: bytes, until: int | None = None) -> bytes:
    changed = bytearray(content)
    until = min(len(changed), until or len(changed))
    for at in rng.integers(max(1, until), size=1 + int(rng.integers(20))) if until else ():
        changed[int(at)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _flips_of_header(rng: np.random.Generator, content: bytes) -> bytes:
    return _flips(rng, content, HEADER)


def _truncation(rng: np.random.Generator, content: bytes) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _splice(rng: np.random.Generator, content: bytes) -> bytes:
    """A part of the file moved to elsewhere in it."""
    first, last, to = (int(at) for at in rng.integers(len(content) + 1, size=3))
    return content[:to] + content[min(first, last) : max(first, last)] + content[to:]


def _repetition(rng: np.random.Generator, content: bytes) -> bytes:
    start = int(rng.integers(max(1, min(len(content), HEADER))))
    size = 1 + int(rng.integers(32))
    return (
        content[:start] + content[start : start + size] * int(rng.integers(500)) + content[start:]
    )


def _noise(rng: np.random.Generator, content: bytes) -> bytes:
    keep = int(rng.integers(len(content) + 1))
    return content[:keep] + rng.bytes(len(content) - keep)


def read_all(seed: int = 0, count: int = 2000) -> dict:
    """Read so many; count what was accepted and rejected, and find what cost most."""
    reasons, unexpected = Counter(), []
    worst = {"cpu_seconds": (0.0, ""), "peak_bytes": (0, ""), "peak_per_byte": (0.0, "")}
    with tempfile.TemporaryDirectory(prefix="hostile-audio-") as folder:
        for name, content in mutations(seed, count):
            path = Path(folder) / name
            path.write_bytes(content)
            tracemalloc.start()
            began = time.process_time()
            try:
                samples = read_audio(path, 22050)
                reasons["accepted"] += 1
                if not np.isfinite(samples).all():
                    unexpected.append(f"{name}: not finite")
            except AudioError as error:
                reasons[error.reason] += 1
            except Exception as error:  # whatever it is, it is what this looks for
                unexpected.append(f"{name}: {type(error).__name__}: {error}")
            seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            path.unlink()
            for key, value in (
                ("cpu_seconds", seconds),
                ("peak_bytes", peak),
                ("peak_per_byte", peak / max(1, len(content))),
            ):
                worst[key] = max(worst[key], (value, f"{name}, {len(content)} bytes"))
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "reasons": dict(reasons),
        "unexpected": unexpected,
        "worst": worst,
        "resident MB at most": resident,
    }


if __name__ == "__main__":
    for title, value in read_all(*map(int, sys.argv[1:])).items():
        print(title, value)
