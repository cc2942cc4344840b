"""What a recording's header may claim, so that no file costs more memory than its bytes justify."""

from dataclasses import dataclass

LOWEST_RATE, HIGHEST_RATE = 1_000, 384_000  # Hz
MOST_CHANNELS = 32
LONGEST_SECONDS = 1_800
MOST_FRAMES = 2**27  # half a gigabyte once decoded; 46 minutes at 48 kHz

# Bytes of one sample in formats that do not compress.
SAMPLE_BYTES = {
    "PCM_S8": 1,
    "PCM_U8": 1,
    "PCM_16": 2,
    "PCM_24": 3,
    "PCM_32": 4,
    "FLOAT": 4,
    "DOUBLE": 8,
    "ULAW": 1,
    "ALAW": 1,
    "DPCM_8": 1,
    "DPCM_16": 2,
}
# Frames of one byte at most. Digital silence, the extreme, takes FLAC 340 and Vorbis 300; the
# slowest bit rate of MP3 is 24. Of speech it is 20 or less.
FRAMES_PER_BYTE = {"MPEG_LAYER_I": 32, "MPEG_LAYER_II": 32, "MPEG_LAYER_III": 32}
MOST_FRAMES_PER_BYTE = 512

# Float files may exceed full scale, which is 1; beyond this they hold something else than audio.
LOUDEST = 1e4


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What a recording's header says."""

    sample_rate: int
    channels: int
    frames: int

    @property
    def seconds(self) -> float:
        return self.frames / self.sample_rate


def implausibility(info: AudioInfo, coding: str, size: int) -> str:
    """Why a header cannot be true for a file of so many bytes, or nothing."""
    if not LOWEST_RATE <= info.sample_rate <= HIGHEST_RATE:
        return (
            f"its header says {info.sample_rate:,} Hz; sample rates are from {LOWEST_RATE:,} to "
            f"{HIGHEST_RATE:,} Hz"
        )
    if not 1 <= info.channels <= MOST_CHANNELS:
        return f"its header says {info.channels:,} channels; at most {MOST_CHANNELS} are read"
    if info.frames > most_frames(info.channels, coding, size):
        return (
            f"its header claims {info.frames:,} samples per channel, more than {size:,} bytes "
            f"can hold ({coding})"
        )
    return ""


def excess(info: AudioInfo) -> str:
    """By how much a recording is too long to be read at all, or nothing."""
    if info.seconds > LONGEST_SECONDS:
        return f"{info.seconds:,.0f} s, at most {LONGEST_SECONDS:,} s"
    if info.frames > MOST_FRAMES:
        return f"{info.frames:,} samples per channel, at most {MOST_FRAMES:,}"
    return ""


def most_frames(channels: int, coding: str, size: int) -> int:
    """How many frames a file of so many bytes may hold."""
    if coding in SAMPLE_BYTES:
        return size // (SAMPLE_BYTES[coding] * channels)
    return size * FRAMES_PER_BYTE.get(coding, MOST_FRAMES_PER_BYTE)
