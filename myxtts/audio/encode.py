"""Speech as a file of a common format, with tags where the format has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import soundfile

from myxtts.audio.io import resample

_BLOCK = 1 << 16  # samples: libsndfile overflows its stack on more of Vorbis at once


@dataclass(frozen=True, slots=True)
class Format:
    """A format as libsndfile names it, its ending, and the only rates that it takes, if any."""

    container: str
    coding: str
    ending: str
    rates: tuple[int, ...] = ()


# libsndfile has no AAC, and so no m4b.
FORMATS = {
    "wav": Format("WAV", "PCM_16", ".wav"),
    "flac": Format("FLAC", "PCM_16", ".flac"),
    "opus": Format("OGG", "OPUS", ".opus", (8000, 12000, 16000, 24000, 48000)),
    "vorbis": Format("OGG", "VORBIS", ".ogg"),
    "mp3": Format(
        "MP3",
        "MPEG_LAYER_III",
        ".mp3",
        (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000),
    ),
}
TAGS = ("title", "artist", "album", "tracknumber")


def encode_audio(
    samples: np.ndarray, sample_rate: int, name: str, tags: Mapping[str, str] | None = None
) -> bytes:
    """Encode mono samples; a format that lacks their rate gets the next higher one."""
    form = FORMATS[name]
    rate = sample_rate
    if form.rates and rate not in form.rates:
        rate = min((one for one in form.rates if one > rate), default=form.rates[-1])
        samples = resample(np.ascontiguousarray(samples, np.float32), sample_rate, rate)
    # Encoded in memory: libsndfile does not report why a write failed.
    file = BytesIO()
    kind = {"format": form.container, "subtype": form.coding}
    with soundfile.SoundFile(file, "w", rate, 1, **kind) as sound:
        for tag in TAGS:
            if value := (tags or {}).get(tag):
                setattr(sound, tag, value)
        for start in range(0, len(samples), _BLOCK):
            sound.write(np.clip(samples[start : start + _BLOCK], -1.0, 1.0))
    return file.getvalue()
