"""Small text files from untrusted sources, bounded in size and depth."""

import hashlib
import json
import os
import re
import reprlib
from pathlib import Path
from typing import Any

MOST_JSON_BYTES = 1 << 24  # a card of 100,000 speakers takes 5 MB
MOST_YAML_BYTES = 1 << 18  # all settings with their comments take 20 kB
_SEAL = re.compile(r"^# sha256 ([0-9a-f]{64})\n?\Z", re.MULTILINE)
_LONGEST_SHOWN, _MOST_BITS = 200, 512


class DocumentError(ValueError):
    """Why a document cannot be read, without its name."""


def read_document(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """The bytes of a file that is not larger than a document can be; OSError where it has none."""
    with open(Path(path), "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise DocumentError(f"it is larger than {most_bytes:,} bytes, which no such file is")
    return content


def parse_json(text: str | bytes) -> Any:
    """The value that JSON stands for; DocumentError for what is none or is nested too deeply."""
    try:
        value = json.loads(text)
        json.dumps(value)  # what can be read must not be too deep to be written
        return value
    except ValueError as error:  # UnicodeDecodeError too
        raise DocumentError(f"it is not JSON ({error})") from error
    except RecursionError as error:
        raise DocumentError("it is nested too deeply") from error


def sealed_text(text: str) -> str:
    """Lines of text with a last one, a comment of YAML, that is the sha256 of all before it."""
    return f"{text}# sha256 {_sha256(text)}\n"


def check_sealed_text(text: str) -> None:
    """Raise DocumentError where the last line is a sha256, and not that of all before it."""
    seal = _SEAL.search(text)
    if seal and _sha256(text[: seal.start()]) != seal[1]:
        raise DocumentError(
            "it is not what its checksum was made of: restore it, or remove its last line if you "
            "have changed it yourself"
        )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def shown(value: Any) -> str:
    """A value from a file as an error may show it: short, and never expensive to write."""
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _LONGEST_SHOWN
        self.maxlevel = 3

    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() > _MOST_BITS:  # Python raises for thousands of digits
            return f"a whole number of {value.bit_length():,} bits"
        return super().repr_int(value, level)


_SHORT = _Short()
