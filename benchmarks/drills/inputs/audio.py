"""Recordings from strangers: every format that libsndfile reads, with headers that lie."""

import io
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import soundfile

from benchmarks.drills.cases import WRONG
from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bad, Bounds, Input

KIND = "recordings"
COUNT, PER_CASE = 2200, 55
# An hour of silence is a few kilobytes of FLAC: decoding is bounded by size, not by promises.
BOUNDS = Bounds(cpu_seconds=2.0, cpu_per_byte=20e-6, megabytes=300.0, memory_per_byte=100.0)

_RATE = 16000
_FORMATS = {
    "wav": ("WAV", "PCM_16"),
    "wav8": ("WAV", "PCM_U8"),
    "wav24": ("WAV", "PCM_24"),
    "float": ("WAV", "FLOAT"),
    "double": ("WAV", "DOUBLE"),
    "mu-law": ("WAV", "ULAW"),
    "adpcm": ("WAV", "IMA_ADPCM"),
    "extensible": ("WAVEX", "PCM_16"),
    "rf64": ("RF64", "PCM_16"),
    "w64": ("W64", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_16"),
    "au": ("AU", "PCM_16"),
    "caf": ("CAF", "PCM_16"),
}
_SUFFIXES = {"ogg": ".ogg", "opus": ".ogg", "mp3": ".mp3", "flac": ".flac", "aiff": ".aiff"}
_RATES = (0, 1, 2, 7, 100, 999, 48_001, 384_000, 2_000_000, 2**31 - 1, 2**31, 2**32 - 1)
_CHANNELS = (0, 2, 3, 8, 255, 1024, 65535)


def set_up(folder: Path, seed: int) -> None:
    """Nothing: recordings are made as they are used."""


def warm_up() -> None:
    """Nothing: features are computed by NumPy."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    for name, data in mutations(seed, count):
        yield Input(name, len(data), _prepare(name, data))


def _prepare(name: str, data: bytes):
    def run(own: Path) -> None:
        from myxtts.audio.io import read_info
        from myxtts.config.config import DataConfig
        from myxtts.data.features import FeatureSettings, compute_features

        path = own / f"recording{_SUFFIXES.get(name.partition('-')[0], '.wav')}"
        path.write_bytes(data)
        read_info(path)
        arrays = compute_features(path, FeatureSettings.from_config(DataConfig()))
        for kind, array in arrays.items():
            if not np.isfinite(array).all():
                raise Bad(WRONG, f"{kind} that is not finite is stored")

    return run


def mutations(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Hostile recordings: a name that begins with the format, and the bytes."""
    random = Random(f"audio {seed}")
    for _ in range(count):
        draw = random.random()
        if draw < 0.3:
            yield _rewritten(random)
        elif draw < 0.4:
            yield _extreme(random)
        elif draw < 0.45:
            yield _long(random)
        elif draw < 0.5:
            yield _chunks(random)
        else:
            form = random.choice(list(_FORMATS))
            name, data = mutated(random, _recording(form))
            yield f"{form}-{name}", data


def encode(samples: np.ndarray, form: str, rate: int = _RATE) -> bytes:
    """Samples in one of the formats."""
    kind, subtype = _FORMATS[form]
    target = io.BytesIO()
    soundfile.write(target, samples, rate, format=kind, subtype=subtype)
    return target.getvalue()


@cache
def _recording(form: str) -> bytes:
    time = np.arange(_RATE // 2) / _RATE
    tone = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 9))
    return encode(0.2 * tone, form)


def _rewritten(random: Random) -> tuple[str, bytes]:
    """A wav whose header says something else than what follows."""
    form = random.choice(("wav", "wav8", "float", "mu-law"))
    data = bytearray(_recording(form))
    at = data.find(b"fmt ") + 8
    field = random.choice(("rate", "channels", "bits", "format", "align", "data", "riff", "fmt"))
    if field == "rate":
        value = random.choice(_RATES)
        struct.pack_into("<I", data, at + 4, value)
    elif field in ("channels", "bits", "format", "align"):
        place = {"format": 0, "channels": 2, "align": 12, "bits": 14}[field]
        value = random.choice((*_CHANNELS, 1, 7, 12, 16, 32, 64))
        struct.pack_into("<H", data, at + place, value)
    else:
        place = {"data": data.find(b"data") + 4, "riff": 4, "fmt": at - 4}[field]
        value = random.choice((0, 1, 17, 2**16, 2**31 - 1, 2**31, 0x7FFFF000, 2**32 - 1))
        struct.pack_into("<I", data, place, value)
    return f"{form}-{field}-{value}", bytes(data)


def _extreme(random: Random) -> tuple[str, bytes]:
    """Samples that floats can hold and no microphone gives."""
    value = random.choice((np.nan, np.inf, -np.inf, 1e38, 3.4e38, 1e30, 1e10, 100.0, 1e-40, 1.0))
    where = random.choice(("one", "all", "noise", "half"))
    form = random.choice(("float", "double"))
    noise = np.random.default_rng(random.randrange(2**32)).uniform(-1, 1, _RATE // 2)
    samples = {"all": np.ones_like(noise), "noise": noise, "half": noise, "one": 0.1 * noise}[where]
    samples = samples.astype(np.float64)
    if where == "one":
        samples[len(samples) // 2] = value
    elif where == "half":
        samples[::2] *= value
    else:
        samples *= value
    if form == "double" and random.random() < 0.3:
        samples *= 1e200
    with np.errstate(all="ignore"):
        return f"{form}-{where}-{value}", encode(samples, form)


def _long(random: Random) -> tuple[str, bytes]:
    """Little that says much: silence packs well, and low rates last long."""
    form = random.choice(("flac", "ogg", "mp3", "opus", "mu-law"))
    seconds = random.choice((0.001, 0.05, 60, 600))
    samples = np.zeros(int(seconds * _RATE) + 1, np.float32)
    samples[::160] = random.choice((0.0, 0.5))
    return f"{form}-{seconds}-seconds", encode(samples, form)


def _chunks(random: Random) -> tuple[str, bytes]:
    """A wav with many chunks before its data, or chunks in themselves."""
    data = _recording("wav")
    count = random.choice((10, 1000, 30_000))
    odd = random.choice(
        (b"LIST", b"JUNK", b"fmt ", b"data", b"fact", b"RIFF", b"\0\0\0\0", b"id3 ")
    )
    chunk = odd + struct.pack("<I", random.choice((0, 1, 4)))
    return f"wav-{count}-chunks", data[:12] + chunk * count + data[12:]
