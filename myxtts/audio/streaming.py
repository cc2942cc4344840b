"""Speech as the bytes of a file that is still being made: each part as soon as it is spoken."""

import struct
import threading
from io import RawIOBase
from typing import Any

import numpy as np
import soundfile
import soxr

from myxtts.audio.encode import FORMATS

PCM = "pcm"
PCM_RATE = 24000  # what clients take raw samples for
_UNKNOWN_BYTES = 0xFFFFFFFF
# At a constant rate (64 kbit/s) players know how long an MP3 is from its size: a variable one says
# so in its header, at the end.
_HOW = {"mp3": {"bitrate_mode": "CONSTANT", "compression_level": 0.63}}
_MPEG_HEADER = 4  # bytes of a frame
_BLOCK = 1 << 16  # samples: libsndfile overflows its stack on more of Vorbis at once


class StreamEncoder:
    """Encodes mono samples that come in parts; the bytes, one after the other, are a file.

    `pcm` is 16-bit little-endian samples at 24 kHz without a header. A wav's header leaves its
    length open. What formats write into their header at the end is lost: players do
    without. It may be closed while another thread encodes.
    """

    def __init__(self, name: str, sample_rate: int):
        self.name, self.rate = name, _rate(name, sample_rate)
        self._resampler = None
        if self.rate != sample_rate:
            self._resampler = soxr.ResampleStream(sample_rate, self.rate, 1, dtype="float32")
        self._sink = _Sink()
        self._lock, self._is_closed = threading.Lock(), False
        self._file: Any = None
        if name == "wav":
            self._sink.write(wav_header(self.rate))
        elif name != PCM:
            form = FORMATS[name]
            kind = {"format": form.container, "subtype": form.coding, **_HOW.get(name, {})}
            self._file = soundfile.SoundFile(self._sink, "w", self.rate, 1, **kind)

    def encode(self, samples: np.ndarray, is_last: bool = False) -> bytes:
        """The bytes that are ready once these samples are known; with the last ones, all others."""
        with self._lock:  # libsndfile does not survive a file that is closed meanwhile
            return b"" if self._is_closed else self._encode(samples, is_last)

    def _encode(self, samples: np.ndarray, is_last: bool) -> bytes:
        samples = np.ascontiguousarray(samples, np.float32)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=is_last)
        samples = np.clip(samples, -1.0, 1.0)
        if self._file is None:
            self._sink.write(to_pcm16(samples))
        else:
            for start in range(0, len(samples), _BLOCK):
                self._file.write(samples[start : start + _BLOCK])
            if is_last:
                self._file.close()
        return self._sink.take()

    def close(self) -> None:
        """Free what the encoder holds, whether or not the last samples came."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()


def wav_header(sample_rate: int) -> bytes:
    """Return the header of mono 16-bit PCM whose length is not known yet."""
    layout = struct.pack("<IHHIIHH", 16, 1, 1, sample_rate, 2 * sample_rate, 2, 16)
    unknown = struct.pack("<I", _UNKNOWN_BYTES)
    return b"RIFF" + unknown + b"WAVEfmt " + layout + b"data" + unknown


def _rate(name: str, sample_rate: int) -> int:
    """The rate of a format: that of the samples, or the next higher one that it has."""
    if name == PCM:
        return PCM_RATE
    rates = FORMATS[name].rates
    if not rates or sample_rate in rates:
        return sample_rate
    return min((rate for rate in rates if rate > sample_rate), default=rates[-1])


def to_pcm16(samples: np.ndarray) -> bytes:
    """Samples as 16-bit little-endian integers, limited to full scale."""
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2").tobytes()


class _Sink(RawIOBase):
    """A file whose bytes are taken away as they come: what was taken cannot be rewritten."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._taken = 0  # bytes
        self._place = 0

    def write(self, content: Any) -> int:
        content = bytes(content)
        if self._place == 0 and content[_MPEG_HEADER:] and not any(content[_MPEG_HEADER:]):
            # The frame in which an MP3 file sums itself up at the end: players stumble over it.
            self._taken = self._place = len(content)
            return len(content)
        start = self._place - self._taken
        self._place += len(content)
        late = content[max(0, -start) :]  # its beginning may be taken already
        start = max(0, start)
        if late:
            self._waiting[start : start + len(late)] = late
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._place, self._taken + len(self._waiting))[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def take(self) -> bytes:
        """The bytes that were written since they were last taken."""
        content = bytes(self._waiting)
        self._taken += len(content)
        self._waiting.clear()
        return content
