"""Recordings that lie: real ones with their headers and bodies changed, the same for every seed.

Run by hand, it reads them all and prints what became of them:
    python -m tests.helpers.hostile_audio [seed] [count]
"""

import io
import resource
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.io import AudioError, read_audio

FORMATS = (
    ("wav", "WAV", "PCM_16"),
    ("wav", "WAV", "PCM_U8"),
    ("wav", "WAV", "PCM_24"),
    ("wav", "WAV", "FLOAT"),
    ("wav", "WAV", "DOUBLE"),
    ("wav", "WAV", "ULAW"),
    ("wav", "WAV", "MS_ADPCM"),
    ("wav", "WAV", "IMA_ADPCM"),
    ("wav", "WAVEX", "PCM_16"),
    ("wav", "RF64", "PCM_16"),
    ("wav", "AIFF", "PCM_16"),
    ("wav", "AU", "PCM_16"),
    ("wav", "CAF", "PCM_16"),
    ("wav", "CAF", "ALAC_16"),
    ("wav", "W64", "FLOAT"),
    ("flac", "FLAC", "PCM_16"),
    ("ogg", "OGG", "VORBIS"),
    ("opus", "OGG", "OPUS"),
    ("mp3", "MP3", "MPEG_LAYER_III"),
)
NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
RATE = 24000
HEADER = 96  # bytes in which most of what a header claims lies


def mutations(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield so many hostile recordings with file names that tell their format and what is odd.

    Two thirds are recordings of each format in turn with bytes changed, the others are made to lie.
    """
    rng = np.random.default_rng(seed)
    seeds = [(extension, *_recording(rng, form, subtype)) for extension, form, subtype in FORMATS]
    for number in range(count):
        if rng.random() < 1 / 3:
            title, content = _MADE[int(rng.choice(len(_MADE), p=_MADE_SHARES))](rng)
            yield f"{number:05d}-{title}", content
            continue
        extension, title, content = seeds[number % len(seeds)]
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        changed = change(rng, content)
        if rng.random() < 0.3:
            changed = _CHANGES[int(rng.integers(len(_CHANGES)))](rng, changed)
        yield f"{number:05d}-{title}{change.__name__}.{extension}", changed


def _recording(rng: np.random.Generator, form: str, subtype: str) -> tuple[str, bytes]:
    channels = 1 + int(rng.integers(2))
    samples = 0.2 * rng.standard_normal((6000, channels)) * np.sin(np.arange(6000) / 500)[:, None]
    return f"{form}-{subtype}", _encoded(samples, form, subtype)


def _encoded(samples: np.ndarray, form: str, subtype: str) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE, format=form, subtype=subtype)
    return _without_time(_with_fixed_serial(buffer.getvalue()))


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


_CHANGES = (_numbers, _flips, _truncation, _splice, _repetition, _flips_of_header, _noise)


def _claim(rng: np.random.Generator) -> tuple[str, bytes]:
    """A WAV whose header says something else in one field than what follows."""
    subtype = str(rng.choice(("PCM_16", "PCM_U8", "FLOAT", "ULAW")))
    content = bytearray(_recording(rng, "WAV", subtype)[1])
    form, data = content.find(b"fmt ") + 8, content.find(b"data") + 4
    at, size = {
        "format": (form, 2),
        "channels": (form + 2, 2),
        "rate": (form + 4, 4),
        "align": (form + 12, 2),
        "bits": (form + 14, 2),
        "fmt-size": (form - 4, 4),
        "data-size": (data, 4),
        "riff-size": (4, 4),
    }[field := str(rng.choice(_FIELDS))]
    value = int(rng.choice(_CLAIMS)) % 256**size
    content[at : at + size] = value.to_bytes(size, "little")
    return f"WAV-{subtype}-{field}-{value}.wav", bytes(content)


_FIELDS = ("format", "channels", "rate", "align", "bits", "fmt-size", "data-size", "riff-size")
_CLAIMS = (0, 1, 2, 3, 7, 8, 12, 17, 64, 255, 999, 1024, 48_001, 65_535, 65_536, 384_000, 2_000_000)
_CLAIMS += (0x7FFFF000, 2**31 - 1, 2**31, 2**32 - 1)


def _extreme(rng: np.random.Generator) -> tuple[str, bytes]:
    """Samples that floats can hold and no microphone gives: one, every second, or all."""
    subtype, step = str(rng.choice(("FLOAT", "DOUBLE"))), int(rng.choice((6000, 2, 1)))
    value = float(rng.choice((np.nan, np.inf, -np.inf, 3.4e38, 1e30, 1e10, 100.0, 1e-40, 1.0)))
    samples = rng.uniform(-1, 1, 6000)
    samples[step // 2 :: step] *= value
    if subtype == "DOUBLE" and rng.random() < 0.3:
        samples *= 1e200
    with np.errstate(all="ignore"):
        return f"WAV-{subtype}-{value}-every-{step}.wav", _encoded(samples, "WAV", subtype)


def _chunks(rng: np.random.Generator) -> tuple[str, bytes]:
    """A WAV with many chunks before its own."""
    content = _recording(rng, "WAV", "PCM_16")[1]
    count = int(rng.choice((10, 1000, 30_000)))
    names = (b"LIST", b"JUNK", b"fmt ", b"data", b"fact", b"RIFF", b"\0\0\0\0", b"id3 ")
    chunk = names[int(rng.integers(len(names)))] + int(rng.choice((0, 1, 4))).to_bytes(4, "little")
    return f"WAV-{count}-chunks.wav", content[:12] + chunk * count + content[12:]


def _length(rng: np.random.Generator) -> tuple[str, bytes]:
    """Next to nothing, or minutes of silence, which pack well."""
    forms = [form for form in FORMATS if form[2] in _PACKED]
    extension, form, subtype = forms[int(rng.integers(len(forms)))]
    seconds, pulse = float(rng.choice((0, 0.001, 0.05, 60, 600))), float(rng.choice((0, 0.5)))
    if subtype in ("VORBIS", "OPUS", "MPEG_LAYER_III"):
        seconds = min(seconds, 60.0)  # encoding more takes seconds
    title = f"{form}-{subtype}-{seconds}-seconds-{pulse}.{extension}"
    return title, _long(seconds, pulse, form, subtype)


@cache
def _long(seconds: float, pulse: float, form: str, subtype: str) -> bytes:
    samples = np.zeros(int(seconds * RATE) + 1, np.float32)
    samples[::160] = pulse
    return _encoded(samples, form, subtype)


_PACKED = ("ULAW", "PCM_16", "VORBIS", "OPUS", "MPEG_LAYER_III")
_MADE, _MADE_SHARES = (_claim, _extreme, _chunks, _length), (0.55, 0.25, 0.1, 0.1)


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
