"""Recordings in and out: any file that libsndfile reads becomes mono float32 at one rate."""

import contextlib
import logging
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile
import soxr

from myxtts.atomic import write_output
from myxtts.audio.bounds import LOUDEST, AudioInfo, excess, implausibility
from myxtts.errors import UserError
from myxtts.files import NotRegularError, open_regular
from myxtts.monitoring.timers import DECODE, READ, stage

logger = logging.getLogger(__name__)

MISSING = "missing recording"
NOT_REGULAR = "not a regular file"
UNREADABLE = "unreadable recording"
IMPLAUSIBLE = "implausible header"
TOO_LONG_TO_READ = "too long to be read"
EMPTY = "empty recording"
TRUNCATED = "truncated recording"
NOT_A_NUMBER = "not-a-number samples"
TOO_LOUD = "samples far beyond full scale"
SILENT = "silent recording"
TOO_SHORT = "too short"

SILENCE_PEAK = 10.0 ** (-60.0 / 20.0)
MIN_SAMPLES = 1024  # one analysis window
# Programs that write to a pipe cannot know the length and promise (almost) the largest there is.
_UNKNOWN_DATA_BYTES = 0x7FFFF000
_LARGEST_OGG_PAGE = 65307
_MOST_WAV_CHUNKS = 1000  # before the samples; real files have a handful
_BLOCK_VALUES = 1 << 18  # decoded at a time, over all channels
_DISCARDED = bytearray(1 << 20)


class AudioError(UserError):
    """One recording that cannot be used: `path`, a short `reason` to count by, and what to do."""

    def __init__(self, path: str | os.PathLike[str], reason: str, detail: str):
        # All arguments reach Exception, so that the error survives the way back from a worker.
        super().__init__(path, reason, detail)
        self.path = Path(path)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}: {self.detail}"


def read_info(path: str | os.PathLike[str]) -> AudioInfo:
    """Read a recording's header, without decoding it."""
    with _open(path) as sound:
        return _info(sound)


def examine_audio(path: str | os.PathLike[str]) -> AudioInfo:
    """Read a recording's header, and its samples where these could be something else than audio."""
    with _open(path) as sound:
        if sound.subtype in ("FLOAT", "DOUBLE"):
            for _ in _blocks(sound, path):
                pass
        return _info(sound)


@contextlib.contextmanager
def open_blocks(
    path: str | os.PathLike[str],
) -> Iterator[tuple[AudioInfo, Iterator[np.ndarray]]]:
    """Open a recording of any length: its header, and float32 blocks [frames, channels].

    It takes the memory of one block, which the next block overwrites.
    """
    with _open(path, may_be_long=True) as sound:
        yield _info(sound), _blocks(sound, path)


def read_audio(path: str | os.PathLike[str], sample_rate: int) -> np.ndarray:
    """Decode a recording, average its channels and resample it: float32 [samples]."""
    with stage(READ):
        _read_through(path)
    with stage(DECODE):
        return _read_audio(path, sample_rate)


def _read_audio(path: str | os.PathLike[str], sample_rate: int) -> np.ndarray:
    with _open(path) as sound:
        samples, source_rate = _decode(sound, path), sound.samplerate
    resampled = resample(samples, source_rate, sample_rate)
    if len(resampled) == 0:
        raise AudioError(path, TOO_SHORT, f"nothing is left of it at {sample_rate} Hz; remove it")
    return resampled


def resample(samples: np.ndarray, from_rate: int, to_rate: int) -> np.ndarray:
    """Samples at another rate, as many as `resampled_length` says."""
    if from_rate == to_rate:
        return samples
    length = resampled_length(len(samples), from_rate, to_rate)
    if length == 0:
        return samples[:0]
    resampled = soxr.resample(samples, from_rate, to_rate, quality="HQ")
    if len(resampled) < length:
        return np.pad(resampled, (0, length - len(resampled)))
    return resampled[:length]


def resampled_length(frames: int, from_rate: int, to_rate: int) -> int:
    """Predict how many samples `read_audio` returns: the exact ratio, halves rounded up."""
    return (2 * frames * to_rate + from_rate) // (2 * from_rate)


def check_audible(
    samples: np.ndarray, path: str | os.PathLike[str], min_samples: int = MIN_SAMPLES
) -> None:
    """Raise where there is nothing to learn from: shorter than a window, or below -60 dBFS."""
    if len(samples) < min_samples:
        raise AudioError(
            path, TOO_SHORT, f"{len(samples)} samples, at least {min_samples} are needed; remove it"
        )
    if max(samples.max(), -samples.min()) < SILENCE_PEAK:
        raise AudioError(path, SILENT, "no sample is louder than -60 dBFS; record it again")


def write_wav(path: str | os.PathLike[str], samples: np.ndarray, sample_rate: int) -> None:
    """Write mono 16-bit PCM, whole or not at all."""
    path = Path(path)
    pcm = _to_pcm16(np.asarray(samples), path)
    # Encoded in memory: libsndfile does not report why a write failed.
    wav = BytesIO()
    soundfile.write(wav, pcm, sample_rate, subtype="PCM_16", format="WAV")
    write_output(path, wav.getvalue())


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A recording that is only read forward.

    soundfile seeks after every read, which makes a decoder of MP3 start over from there: read in
    blocks, a file would have other samples than read at once.
    """

    def seekable(self) -> bool:
        return False


def _open(path: str | os.PathLike[str], *, may_be_long: bool = False) -> soundfile.SoundFile:
    """Open a recording that exists, is whole as far as its format shows, and has samples."""
    size = _check_file(path)
    try:
        sound = _Forward(os.fspath(path))
    except (soundfile.SoundFileError, TypeError) as error:
        # TypeError: a name ending in .raw, for which libsndfile wants the format from us.
        detail = f"libsndfile cannot open it ({error}); convert it to WAV or FLAC"
        raise AudioError(path, UNREADABLE, detail) from error
    try:
        # FLAC compresses what its subtype calls PCM.
        coding = "FLAC" if sound.format == "FLAC" else sound.subtype
        _check_header(_info(sound), coding, size, path, may_be_long)
    except AudioError:
        sound.close()
        raise
    return sound


def _check_file(path: str | os.PathLike[str]) -> int:
    """The size of a recording, if it is a regular file and was not cut off."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            missing_end = _missing_end(file, size)
    except FileNotFoundError:
        raise AudioError(path, MISSING, "no such file; check the metadata's paths") from None
    except NotRegularError as error:
        detail = f"{error.strerror}; put the recording itself there"
        raise AudioError(path, NOT_REGULAR, detail) from None
    except OSError as error:
        raise AudioError(path, UNREADABLE, f"{error.strerror}; check the file") from error
    if size == 0:
        raise AudioError(path, EMPTY, "the file has no bytes; copy it again")
    if missing_end:
        raise AudioError(path, TRUNCATED, f"{missing_end}; copy it again")
    return size


def _check_header(
    info: AudioInfo, coding: str, size: int, path: str | os.PathLike[str], may_be_long: bool
) -> None:
    """Raise where a header claims what cannot be, or what is too long to be read at once."""
    if info.frames <= 0:
        raise AudioError(path, EMPTY, "the file holds a header and no samples; copy it again")
    if fault := implausibility(info, coding, size):
        raise AudioError(path, IMPLAUSIBLE, f"{fault}; export it anew from its source")
    if not may_be_long and (fault := excess(info)):
        remedy = "cut it into sentences (`myxtts data slice`)"
        raise AudioError(path, TOO_LONG_TO_READ, f"{fault}; {remedy}")


def _info(sound: soundfile.SoundFile) -> AudioInfo:
    return AudioInfo(sound.samplerate, sound.channels, sound.frames)


def _read_through(path: str | os.PathLike[str]) -> None:
    """Have the disk deliver a file, so that decoding it takes none of the disk's time.

    It costs a copy of the bytes, 30 microseconds for a sentence. Opening the file reports what is
    wrong with it.
    """
    try:
        with open_regular(path) as file:
            while file.readinto(_DISCARDED):
                pass
    except OSError:
        return


def _missing_end(file: BinaryIO, size: int) -> str:
    """Say what shows that a WAV or Ogg file was cut off, or nothing: libsndfile plays the rest."""
    magic = file.read(12)
    if magic[:4] == b"RIFF" and magic[8:] == b"WAVE":
        return _missing_end_of_wav(file, size)
    if magic[:4] == b"OggS":
        return _missing_end_of_ogg(file, size)
    return ""


def _missing_end_of_wav(file: BinaryIO, size: int) -> str:
    for _ in range(_MOST_WAV_CHUNKS):
        chunk = file.read(8)
        if len(chunk) < 8:
            break
        chunk_bytes = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"data":
            promised = file.tell() + chunk_bytes
            is_cut = chunk_bytes < _UNKNOWN_DATA_BYTES and promised > size
            return f"its header promises {promised} bytes, there are {size}" if is_cut else ""
        file.seek(chunk_bytes + chunk_bytes % 2, os.SEEK_CUR)
    return ""


def _missing_end_of_ogg(file: BinaryIO, size: int) -> str:
    """Find the last page: it must be whole, and flagged as the end of the stream."""
    file.seek(max(0, size - _LARGEST_OGG_PAGE))
    tail = file.read()
    page = tail[max(0, tail.rfind(b"OggS")) :]
    if len(page) < 27 or len(page) < 27 + page[26] + sum(page[27 : 27 + page[26]]):
        return "its last page is incomplete"
    return "" if page[5] & 4 else "its last page does not end the stream"


def _decode(sound: soundfile.SoundFile, path: str | os.PathLike[str]) -> np.ndarray:
    """All samples, channels averaged: float32 [frames]."""
    samples = np.empty(sound.frames, np.float32)
    done = 0
    for block in _blocks(sound, path):
        samples[done : done + len(block)] = (
            block.mean(axis=1) if sound.channels > 1 else block[:, 0]
        )
        done += len(block)
    return samples


def _blocks(sound: soundfile.SoundFile, path: str | os.PathLike[str]) -> Iterator[np.ndarray]:
    """All samples in blocks [frames, channels] of one buffer; raises where they are not audio."""
    rows = min(sound.frames, _BLOCK_VALUES // sound.channels)
    done, buffer = 0, np.empty((rows, sound.channels), np.float32)
    while done < sound.frames:
        wanted = min(len(buffer), sound.frames - done)
        try:
            block = sound.read(wanted, out=buffer[:wanted])
        except soundfile.SoundFileError as error:
            detail = f"decoding fails ({error}); copy it again"
            raise AudioError(path, UNREADABLE, detail) from error
        _check_loudness(block, path)
        done += len(block)
        yield block
        if len(block) < wanted:
            break
    if done < sound.frames:
        detail = f"its header promises {sound.frames} samples, there are {done}; copy it again"
        raise AudioError(path, TRUNCATED, detail)


def _check_loudness(block: np.ndarray, path: str | os.PathLike[str]) -> None:
    """Raise where samples are no numbers, or none of audio."""
    # Only float formats can hold such, but checking costs 1 % of decoding: check them all.
    peak = max(block.max(), -block.min()) if block.size else 0.0
    if not np.isfinite(peak):
        raise AudioError(
            path, NOT_A_NUMBER, "it holds NaN or infinite values; export it anew from its source"
        )
    if peak > LOUDEST:
        raise AudioError(
            path, TOO_LOUD, f"{peak:.3g} where full scale is 1; scale it to the range of -1 to 1"
        )


def _to_pcm16(samples: np.ndarray, path: Path) -> np.ndarray:
    if not np.isfinite(samples).all():
        raise AudioError(path, NOT_A_NUMBER, "NaN and infinite samples are not written as audio")
    scaled = np.round(samples * 32768.0)
    pcm = np.clip(scaled, -32768, 32767)
    clipped = np.count_nonzero(np.abs(scaled - pcm) > 1)  # +1.0 itself is one step too many
    if clipped:
        logger.warning("%s: %d of %d samples were clipped", path, clipped, len(samples))
    return pcm.astype(np.int16)
