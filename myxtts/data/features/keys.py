"""How a store knows utterances, and whether what it holds still fits them."""

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.rejections import Rejection
from myxtts.data.store.shard_writer import hash64
from myxtts.data.store.view import StoreView
from myxtts.files import open_regular

# Which utterances a store lacks.
FindMissing = Callable[[Sequence[Utterance], StoreView], np.ndarray]

_CONTENT_BLOCK = 1 << 22


def keys_of(utterances: Sequence[Utterance]) -> np.ndarray:
    """The 64-bit keys under which stores know utterances."""
    return np.array([hash64(u.id) for u in utterances], np.uint64)


def missing_features(utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
    """Which utterances have no row in the store that fits their recording as it is now."""
    rows = view.find(keys_of(utterances))
    missing = rows < 0
    for i in np.flatnonzero(~missing).tolist():
        signature = source_signature(utterances[i].audio)
        if signature != int(view.signatures[rows[i]]):
            content = content_of(utterances[i].audio)
            missing[i] = content is None or content != int(view.contents[rows[i]])
    return missing


def missing_tokens(utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
    """Which utterances have no row in the store that fits their text."""
    rows = view.find(keys_of(utterances))
    wanted = np.array([text_signature(u) for u in utterances], np.uint64)
    missing = rows < 0
    found = ~missing
    missing[found] = view.signatures[rows[found]] != wanted[found]
    return missing


def rejections_of(utterances: Sequence[Utterance], view: StoreView) -> list[Rejection]:
    """The utterances that were tried and could not be stored, with the reasons of that time."""
    rows = view.find(keys_of(utterances))
    empty = np.flatnonzero((rows >= 0) & (view.lengths[rows] == 0)).tolist() if len(view) else []
    reasons = view.notes("reason") if empty else ()
    return [Rejection.parse(utterances[i].id, reasons[rows[i]]) for i in empty]


def source_signature(path: Path) -> int:
    """Changes whenever a recording is written; costs one stat."""
    try:
        stat = os.stat(path)
    except OSError:
        return 0
    return hash64(f"{stat.st_size}:{stat.st_mtime_ns}")


def content_of(path: Path) -> int | None:
    """Size and checksum of a recording: the same after a copy, which changes its time."""
    size = checksum = 0
    try:
        with open_regular(path) as file:
            while block := file.read(_CONTENT_BLOCK):
                size, checksum = size + len(block), zlib.crc32(block, checksum)
    except OSError:
        return None
    return (size & 0xFFFFFFFF) << 32 | checksum


def text_signature(utterance: Utterance) -> int:
    return hash64(f"{utterance.language}\n{utterance.speaker}\n{utterance.text}")
