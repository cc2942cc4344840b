"""The headers of many recordings, read by a pool of threads, in order."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from myxtts.audio.bounds import AudioInfo
from myxtts.audio.io import AudioError, read_info
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.rejections import Rejection

_BLOCK = 64  # recordings that a thread takes at a time: one by one, the queue costs more than they


def inspect_recordings(
    utterances: Sequence[Utterance],
    workers: int = 8,
    progress: Callable[[int, int], None] | None = None,
    read: Callable[[Path], AudioInfo] = read_info,
) -> tuple[list[AudioInfo | None], list[Rejection]]:
    """Read the headers of all recordings; what cannot be read is None and a rejection.

    `read` may look at more than the header.
    """
    infos: list[AudioInfo | None] = []
    rejections: list[Rejection] = []
    headers = read_headers([utterance.audio for utterance in utterances], workers, read)
    for utterance, header in zip(utterances, headers, strict=True):
        if isinstance(header, AudioError):
            rejections.append(Rejection(utterance.id, header.reason, str(header)))
            infos.append(None)
        else:
            infos.append(header)
        if progress and (len(infos) % _BLOCK == 0 or len(infos) == len(utterances)):
            progress(len(infos), len(utterances))
    return infos, rejections


def read_headers(
    paths: Sequence[Path], workers: int = 8, read: Callable[[Path], AudioInfo] = read_info
) -> Iterator[AudioInfo | AudioError]:
    """Yield the header of each recording, or the error that reading it raised."""
    blocks = [paths[start : start + _BLOCK] for start in range(0, len(paths), _BLOCK)]
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for headers in pool.map(partial(_read_block, read), blocks):
            yield from headers


def _read_block(
    read: Callable[[Path], AudioInfo], paths: Sequence[Path]
) -> list[AudioInfo | AudioError]:
    return [_read_header(read, path) for path in paths]


def _read_header(read: Callable[[Path], AudioInfo], path: Path) -> AudioInfo | AudioError:
    try:
        return read(path)
    except AudioError as error:
        return error
