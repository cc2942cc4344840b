"""A shard on its way to the disk: it comes out whole or not at all."""

import contextlib
import hashlib
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from myxtts.atomic import naming, sync, unique_draft_of
from myxtts.data.store import mmap
from myxtts.data.store.errors import CacheError
from myxtts.data.store.shard_index import ShardIndex, Strings

# Utterances start on multiples of so many rows and are filled up with zeros, so that a batch is
# gathered in blocks of rows: a sixteenth of the indices, and larger pieces to copy.
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Column:
    """One array per utterance, [length] where width is 1 and [length, width] otherwise."""

    name: str
    dtype: str
    width: int = 1

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * self.width

    @property
    def unit(self) -> int:
        """Files are padded to this many bytes: whole blocks, and a whole number of pages."""
        return math.lcm(mmap.ALIGNMENT, BLOCK * self.row_bytes)

    def padded_bytes(self, rows: int) -> int:
        """The size of a file of so many rows; it ends with at least one block of zeros."""
        size = (rows + BLOCK) * self.row_bytes
        return size + -size % self.unit

    def blocks(self, array: np.ndarray, rows: int) -> np.ndarray:
        """An array as blocks of so many rows, a divisor of BLOCK; the last one is all zeros."""
        return array.reshape(-1, rows * self.width)


@dataclass(frozen=True, slots=True)
class Row:
    """What one utterance puts into a shard; `reason` says why it has no arrays."""

    id: str
    signature: int
    content: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    reason: str = ""


class ShardDraft:
    """A shard being written under temporary names; memory stays bounded by one utterance."""

    def __init__(self, folder: Path, columns: Sequence[Column], name: str, generation: int):
        self.folder, self.columns, self.name = folder, columns, name
        self.generation = generation
        self.rows: list[Row] = []
        self.lengths: list[int] = []
        self.checksums: list[list[int]] = []
        self.files: dict[str, BinaryIO] = {}
        self._targets = {one.name: folder / f"{name}.{one.name}" for one in columns}
        self._drafts = {one: unique_draft_of(path) for one, path in self._targets.items()}

    def __enter__(self) -> "ShardDraft":
        try:
            for column in self.columns:
                self.files[column.name] = open(self._drafts[column.name], "wb")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for name, file in self.files.items():
            with contextlib.suppress(OSError):  # closing flushes, which fails again on a full disk
                file.close()
            self._drafts[name].unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Append an utterance's arrays; only its names and numbers stay in memory."""
        length = 0 if row.reason else len(row.arrays[self.columns[0].name])
        crcs = [0] * len(self.columns)
        for number, column in enumerate(self.columns if not row.reason else ()):
            array = np.ascontiguousarray(row.arrays[column.name], column.dtype)
            expected = (length,) if column.width == 1 else (length, column.width)
            if array.shape != expected:
                raise ValueError(f"{row.id}: {column.name} is {array.shape}, not {expected}")
            data, filler = array.data.cast("B"), bytes(-length % BLOCK * column.row_bytes)
            crcs[number] = zlib.crc32(filler, zlib.crc32(data))
            with naming(self._targets[column.name]):
                self.files[column.name].write(data)
                self.files[column.name].write(filler)
        self.rows.append(Row(row.id, row.signature, row.content, {}, row.notes, row.reason))
        self.lengths.append(length)
        self.checksums.append(crcs)

    def write_columns(self) -> ShardIndex:
        """Pad, sync and rename the columns; return the index, which is to be written last."""
        index = self._index()
        for column in self.columns:
            file = self.files[column.name]
            # Real zeros, not a hole: mapping a hole of a full memory disk kills the process.
            with naming(self._targets[column.name]):
                file.write(bytes(index.sizes[column.name] - index.rows * column.row_bytes))
                file.flush()
                os.fsync(file.fileno())
                file.close()
        with undisturbed():
            for column in self.columns:
                os.replace(self._drafts[column.name], self._targets[column.name])
            sync(self.folder)  # or a power cut could keep the index and lose the columns
        return index

    def _index(self) -> ShardIndex:
        lengths = np.array(self.lengths, np.int32)
        starts, total = block_starts(lengths)
        notes = [{**row.notes, "reason": row.reason} for row in self.rows]
        return ShardIndex(
            name=self.name,
            generation=self.generation,
            rows=total,
            sizes={column.name: column.padded_bytes(total) for column in self.columns},
            ids=Strings.pack([row.id for row in self.rows]),
            notes={key: Strings.pack([note[key] for note in notes]) for key in sorted(notes[0])},
            keys=np.array([hash64(row.id) for row in self.rows], np.uint64),
            signatures=np.array([row.signature for row in self.rows], np.uint64),
            contents=np.array([row.content for row in self.rows], np.uint64),
            starts=starts,
            lengths=lengths,
            checksums=np.array(self.checksums, np.uint32).reshape(len(lengths), -1),
        )


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Explain that files which are just written were deleted by somebody else."""
    try:
        yield
    except FileNotFoundError as error:
        raise CacheError(
            f"{error.filename} was deleted by another process while it was written. Where "
            "several hosts write one cache, its file system must support flock between hosts"
        ) from error


def block_starts(lengths: np.ndarray) -> tuple[np.ndarray, int]:
    """Where utterances of so many rows start, each on a block, and where the last one ends."""
    ends = np.cumsum(in_blocks(lengths), dtype=np.int64)
    return np.concatenate([[0], ends])[:-1], int(ends[-1]) if len(ends) else 0


def in_blocks(lengths: np.ndarray) -> np.ndarray:
    """Lengths rounded up to whole blocks, in rows."""
    return -(-lengths // BLOCK) * BLOCK


def hash64(text: str) -> int:
    """A stable 64-bit hash of a string."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
