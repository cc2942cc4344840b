"""What a shard holds: its index in memory and on disk, with a checksum of its own."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy

from myxtts.data.store.errors import REMEDY, CacheError
from myxtts.files import NotRegularError, read_regular


class Strings(Sequence[str]):
    """Many strings in one blob, decoded where they are asked for: a million cost milliseconds."""

    def __init__(self, blob: bytes, starts: np.ndarray, ends: np.ndarray):
        self.blob, self.starts, self.ends = blob, starts, ends

    @classmethod
    def pack(cls, texts: Sequence[str]) -> "Strings":
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(text) for text in encoded], np.int64)
        ends = np.cumsum(lengths)
        return cls(b"".join(encoded), ends - lengths, ends)

    @classmethod
    def concatenate(cls, parts: Sequence["Strings"]) -> "Strings":
        offsets = np.cumsum([0] + [len(part.blob) for part in parts])[:-1].tolist()
        empty = np.zeros(0, np.int64)
        starts = [part.starts + at for part, at in zip(parts, offsets, strict=True)]
        ends = [part.ends + at for part, at in zip(parts, offsets, strict=True)]
        blob = b"".join(part.blob for part in parts)
        return cls(blob, np.concatenate([empty, *starts]), np.concatenate([empty, *ends]))

    def select(self, chosen: np.ndarray) -> "Strings":
        """Keep some, in the given order, by a mask or by positions; the blob is shared."""
        starts, ends = self.starts[chosen], self.ends[chosen]
        return Strings(self.blob, starts, ends)

    def __len__(self) -> int:
        return len(self.ends)

    # It has no slices: `select` shares the blob.
    def __getitem__(self, position: int) -> str:  # type: ignore[override]
        return self.blob[self.starts[position] : self.ends[position]].decode()

    def __iter__(self) -> Iterator[str]:
        return (text.decode() for text in self.encoded())

    def encoded(self) -> list[bytes]:
        """All of them as they are stored, in UTF-8."""
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.blob[start:end] for start, end in pairs]


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """What a shard holds: parallel arrays over its utterances."""

    name: str
    generation: int
    rows: int
    sizes: dict[str, int]
    ids: Strings
    notes: dict[str, Strings]
    keys: np.ndarray
    signatures: np.ndarray
    contents: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    checksums: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


ARRAYS = ("keys", "signatures", "contents", "starts", "lengths", "checksums")


def encode_index(index: ShardIndex) -> bytes:
    """Arrays and strings as safetensors, followed by a checksum of all that."""
    arrays = {name: getattr(index, name) for name in ARRAYS}
    for name, strings in {"ids": index.ids, **_prefixed(index.notes)}.items():
        arrays[f"{name}.bytes"] = np.frombuffer(strings.blob, np.uint8)
        arrays[f"{name}.lengths"] = strings.ends - strings.starts
    header = {field: getattr(index, field) for field in ("name", "generation", "rows", "sizes")}
    content = safetensors.numpy.save(arrays, {"shard": json.dumps(header, sort_keys=True)})
    return content + zlib.crc32(content).to_bytes(4, "little")


def decode_index(path: Path) -> ShardIndex:
    try:
        data = read_regular(path)
    except NotRegularError as error:
        raise CacheError(f"{path}: {error.strerror}{REMEDY}") from None
    return parse_index(data, path)


def parse_index(data: bytes, path: Path) -> ShardIndex:
    """Check and read the bytes of an index; the path is where they are, or will be."""
    content = data[:-4]
    if len(data) < 16 or zlib.crc32(content) != int.from_bytes(data[-4:], "little"):
        raise CacheError(f"{path} is damaged{REMEDY}")
    arrays = safetensors.numpy.load(content)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["shard"])
    if header["name"] != path.stem:
        raise CacheError(f"{path} describes another shard, {header['name']}{REMEDY}")
    notes = [key[5:-6] for key in arrays if key.startswith("note.") and key.endswith(".bytes")]
    return ShardIndex(
        ids=_strings(arrays, "ids"),
        notes={note: _strings(arrays, f"note.{note}") for note in sorted(notes)},
        **header | {name: arrays[name] for name in ARRAYS},
    )


def _prefixed(notes: dict[str, Strings]) -> dict[str, Strings]:
    return {f"note.{key}": strings for key, strings in notes.items()}


def _strings(arrays: dict[str, np.ndarray], name: str) -> Strings:
    ends = np.cumsum(arrays[f"{name}.lengths"])
    return Strings(arrays[f"{name}.bytes"].tobytes(), ends - arrays[f"{name}.lengths"], ends)
