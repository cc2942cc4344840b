"""A listing: where metadata come from, and what they list."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from myxtts.data.corpus.recordings import Locator
from myxtts.data.corpus.table_columns import MetadataRow
from myxtts.data.corpus.utterance import CorpusError
from myxtts.files import open_regular


@dataclass(frozen=True)
class Source:
    """Where metadata may be found: in a file, or among the recordings if `path` is empty."""

    path: str
    locator: Locator

    @cached_property
    def text(self) -> str:
        return read_text(self.path)


@dataclass(frozen=True)
class Listing:
    """What one source of metadata lists, and how it was understood."""

    name: str
    understood: str
    locator: Locator
    rows: Iterable[MetadataRow]


def read_text(path: str) -> str:
    """Read UTF-8 with or without a byte order mark, or say where it is none."""
    try:
        with open_regular(path) as file:
            data = file.read(1 << 16)
            # Look before reading on: a recording given by mistake may be huge.
            if b"\0" not in data:
                data += file.read()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}") from error
    if (at := data.find(b"\0")) >= 0:
        raise CorpusError(
            f"{path}: line {_line_of(data, at)} holds a NUL byte, so this is not UTF-8 text. Name "
            "the metadata file rather than a recording, or save it as UTF-8 if it is UTF-16"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: line {_line_of(data, error.start)} is not UTF-8 (byte "
            f"0x{data[error.start]:02x}). Convert the file, for instance with "
            "iconv -f WINDOWS-1252 -t UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_file_or_special(path: str) -> bool:
    """Whether there is something other than a directory; reading it tells what is wrong with it."""
    return os.path.exists(path) and not os.path.isdir(path)


def on_one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def _line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1
