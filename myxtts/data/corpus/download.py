"""Public corpora, fetched whole or not at all: resumable, verified, then unpacked in one step."""

import bz2
import contextlib
import fcntl
import gzip
import hashlib
import http.client
import io
import logging
import lzma
import os
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from myxtts.errors import UserError
from myxtts.monitoring.progress import StageProgress

logger = logging.getLogger(__name__)

LJSPEECH_URL = "https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2"
LJSPEECH_SHA256 = "be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5"
LJSPEECH_CLIPS = 13_100

# stage ("download" or "unpack"), done, total or 0 if the server does not tell

_BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)
_CHUNK = 1 << 20
_ATTEMPTS = 5
_WAIT_SECONDS = 2.0  # before the second attempt, doubled for each further one
_TIMEOUT_SECONDS = 60.0
_UNPACKED_RATIO = 1.5  # of unpacked to packed bytes: 1.38 for LJSpeech, and some room
_MOST_CLIP_BYTES = 512 * 1024  # LJSpeech has 290 kB a clip on average, and 445 kB at most


class DownloadError(UserError):
    """A corpus that could not be fetched: what happened, what is kept, and what to do."""


class _Interrupted(Exception):
    """The connection broke; what arrived is kept and another attempt may go on from there."""


def download_ljspeech(
    target: str | os.PathLike,
    url: str = LJSPEECH_URL,
    sha256: str = LJSPEECH_SHA256,
    progress: StageProgress | None = None,
    expected_clips: int = LJSPEECH_CLIPS,
) -> Path:
    """Fetch LJSpeech into the directory `target`, which appears only when it is complete."""
    target = Path(os.path.abspath(os.path.expanduser(target)))
    if _fault(target, expected_clips) == "":
        logger.info("%s is already complete", target)
        return target
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DownloadError(
            f"{target} is there and is not LJSpeech ({_fault(target, expected_clips)}). "
            "Name another directory, or remove this one"
        )
    report = progress or (lambda stage, done, total: None)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        archive = target.parent / (url.rstrip("/").rpartition("/")[2] or "archive")
        with _only_one(archive.with_name(archive.name + ".part")) as part:
            if not archive.exists():
                _fetch(url, part, report)
            _verify(archive if archive.exists() else Path(part.name), sha256, url)
            if not archive.exists():
                os.replace(part.name, archive)
            _unpack(archive, target, expected_clips, report)
            archive.unlink()
    except OSError as error:
        place = error.filename or target
        raise DownloadError(f"{place}: {error.strerror or error}; what arrived is kept") from error
    return target


@contextlib.contextmanager
def _only_one(part: Path) -> Iterator[BinaryIO]:
    """Open the partial file for this process alone; an empty one is not left behind."""
    with open(part, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(f"{part}: another download is under way; wait for it") from None
        try:
            yield file
        finally:
            with contextlib.suppress(FileNotFoundError):
                if part.stat().st_size == 0:
                    part.unlink()


def _fetch(url: str, part: BinaryIO, report: StageProgress) -> None:
    """Download into `part` from where it ends, with a few attempts."""
    wait = _WAIT_SECONDS
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _fetch_rest(url, part, report)
        except _Interrupted as error:
            logger.warning("%s: %s (attempt %d of %d)", url, error, attempt, _ATTEMPTS)
            if attempt == _ATTEMPTS:
                raise DownloadError(
                    f"{url}: {error}. {_size(part):,} bytes are kept in {part.name}: check the "
                    "network and run the same command again, it resumes from there"
                ) from error
        time.sleep(wait)
        wait *= 2


def _fetch_rest(url: str, part: BinaryIO, report: StageProgress) -> None:
    """Make one request for the bytes that are missing."""
    start = _size(part)
    headers = {"User-Agent": "myxtts", **({"Range": f"bytes={start}-"} if start else {})}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            if start and not _continues(response, start):
                logger.info("the server cannot resume; starting over")
                part.truncate(0)
                start = 0
            length = _promised(response)
            total = start + length if length else 0
            _check_space(part, length, total)
            _copy(response, part, total, report)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:
            return  # there is nothing beyond what we have; the checksum will tell
        if error.code >= 500:
            raise _Interrupted(f"the server answers {error.code} {error.reason}") from error
        raise DownloadError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (ValueError, http.client.InvalidURL) as error:  # where a redirect leads to
        raise DownloadError(f"{url}: the server's answer is not valid: {error}") from error
    except _BROKEN as error:
        raise _Interrupted(f"the connection broke: {getattr(error, 'reason', error)}") from error


def _promised(response: http.client.HTTPResponse) -> int:
    """The length that the server names; 0 where it names none that is a number."""
    length = response.headers.get("Content-Length") or ""
    return int(length) if length.isascii() and length.isdigit() and len(length) < 19 else 0


def _continues(response: http.client.HTTPResponse, start: int) -> bool:
    content_range = response.headers.get("Content-Range", "")
    return response.status == 206 and content_range.startswith(f"bytes {start}-")


def _check_space(part: BinaryIO, missing: int, total: int) -> None:
    """Refuse before the first byte what the disk cannot hold, packed and unpacked."""
    needed = missing + int(total * _UNPACKED_RATIO)
    folder = os.path.dirname(part.name)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{folder}: {needed / 1e9:.1f} GB are needed for the archive and what is in it, and "
            f"{free / 1e9:.1f} GB are free. Make room, or name a directory on another disk"
        )


def _copy(response: BinaryIO, part: BinaryIO, total: int, report: StageProgress) -> None:
    done = _size(part)
    while chunk := response.read(_CHUNK):
        part.write(chunk)
        done += len(chunk)
        report("download", done, total)
    part.flush()
    # http.client ends a short body silently when it is read in chunks.
    if done < total:
        raise _Interrupted(f"the connection ended after {done:,} of {total:,} bytes")


def _size(part: BinaryIO) -> int:
    part.flush()
    return os.fstat(part.fileno()).st_size


def _verify(archive: Path, sha256: str, url: str) -> None:
    with open(archive, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        archive.unlink()
        raise DownloadError(
            f"{url}: the archive's sha256 is {found} instead of {sha256}. It was removed; run the "
            "command again, and if this repeats, do not use that address"
        )


def _unpack(archive: Path, target: Path, expected_clips: int, report: StageProgress) -> None:
    """Unpack next to the target, check, and rename: the target is complete or absent."""
    staging = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(staging, ignore_errors=True)  # of a run that was killed
    try:
        staging.mkdir()
        _extract(archive, staging, expected_clips, report)
        corpus = next((path.parent for path in sorted(staging.glob("*/metadata.csv"))), staging)
        if fault := _fault(corpus, expected_clips):
            raise DownloadError(f"{archive}: what it holds is not LJSpeech: {fault}")
        if target.exists():
            target.rmdir()
        os.rename(corpus, target)
    except DownloadError:
        archive.unlink()  # it will not get better; a full disk, in contrast, may
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _extract(archive: Path, staging: Path, expected_clips: int, report: StageProgress) -> None:
    try:
        # A stream is read once from end to end; seeking in bz2 would unpack it again and again.
        with (
            _unpacked(archive) as file,
            _Bounded(file, archive, expected_clips) as bounded,
            tarfile.open(fileobj=bounded, mode="r|") as members,
        ):
            for count, member in enumerate(members, 1):
                if not (member.isfile() or member.isdir()):
                    raise DownloadError(f"{archive}: {member.name} is neither file nor directory")
                members.extract(member, staging, filter="data")
                report("unpack", count, max(count, expected_clips))
    except tarfile.FilterError as error:
        raise DownloadError(f"{archive}: an unsafe member was refused: {error}") from error
    except RecursionError as error:
        raise DownloadError(f"{archive}: its folders are nested too deeply") from error
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DownloadError(f"{archive}: it cannot be unpacked: {error}") from error
    except OSError as error:
        if error.errno is not None:  # a disk's; those of what is packed wrongly have no number
            raise
        raise DownloadError(f"{archive}: it cannot be unpacked: {error}") from error


class _Bounded(io.RawIOBase):
    """A tar that raises where it is larger than so many clips: some kilobytes of an archive can
    unpack to any number of gigabytes."""

    def __init__(self, file: BinaryIO, archive: Path, clips: int):
        self.file, self.archive, self.clips = file, archive, clips
        self.most = self.left = clips * _MOST_CLIP_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise DownloadError(
                f"{self.archive}: it unpacks to more than {self.most / 1e6:,.1f} MB, which is more "
                f"than {self.clips:,} clips of LJSpeech take. It was removed; do not use that "
                "address"
            )
        return data


def _unpacked(archive: Path) -> BinaryIO:
    """Open an archive as its tar; tarfile itself unpacks whole chunks, whatever they grow to."""
    with open(archive, "rb") as file:
        start = file.read(6)
    openers: dict = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open}
    known = (opener for magic, opener in openers.items() if start.startswith(magic))
    return next(known, open)(archive, "rb")


def _fault(corpus: Path, expected_clips: int) -> str:
    """Say what a directory lacks to be the corpus, or nothing."""
    metadata = corpus / "metadata.csv"
    if not metadata.is_file():
        return "it has no metadata.csv"
    with open(metadata, "rb") as file:
        lines = sum(bool(line.strip()) for line in file)
    clips = sum(path.suffix == ".wav" for path in (corpus / "wavs").glob("*"))
    if (lines, clips) != (expected_clips, expected_clips):
        return (
            f"{lines:,} lines in metadata.csv and {clips:,} recordings in wavs/ instead of "
            f"{expected_clips:,} each"
        )
    return ""
