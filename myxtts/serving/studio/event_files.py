"""What a run has written for TensorBoard, read without TensorFlow: curves and spoken samples."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SAMPLES = ("sample/audio", "evaluation/audio")
_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4
_LARGEST = 64 << 20  # of a record


@dataclass
class EventFile:
    """An event file as far as it was read: where its recordings are."""

    path: Path
    offset: int = 0
    clips: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Read what was added since."""
        for start, size, event in _records(self.path, self.offset):
            self.offset = start + size + _TAIL_BYTES
            for value in event.summary.value:
                if value.tag in SAMPLES:
                    self.clips[value.tag, event.step] = start, size

    def wav(self, tag: str, step: int) -> bytes:
        """One recording."""
        start, size = self.clips[tag, step]
        with open(self.path, "rb") as file:
            file.seek(start)
            event = _parse(file.read(size))
        for value in event.summary.value:
            if value.tag == tag:
                return bytes(value.tensor.string_val[0])
        raise KeyError(tag)


class EventFiles:
    """The event files of a run's folder; nothing where TensorBoard is not installed."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._files: dict[Path, EventFile] = {}

    def samples(self) -> dict[tuple[str, int], EventFile]:
        """Recordings by tag and step; those of a later process replace those of an earlier one."""
        try:
            import tensorboard  # noqa: F401
        except ModuleNotFoundError:
            return {}
        found: dict[tuple[str, int], EventFile] = {}
        for path in sorted(self._folder.glob("**/events.out.tfevents.*")):
            one = self._files.setdefault(path, EventFile(path))
            one.refresh()
            found |= dict.fromkeys(one.clips, one)
        return found


def _records(path: Path, offset: int) -> Iterator[tuple[int, int, Any]]:
    """Every whole record behind an offset: where it begins, its size, and what it says."""
    with open(path, "rb") as file:
        file.seek(offset)
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, _ = _HEAD.unpack(head)
            if size > _LARGEST:
                return
            start = file.tell()
            content = file.read(size + _TAIL_BYTES)
            if len(content) < size + _TAIL_BYTES:  # it is being written
                return
            yield start, size, _parse(content[:size])


def _parse(content: bytes) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event

    event = Event()
    event.ParseFromString(content)
    return event
