"""The history of a run: a file with one JSON object per line, each with a checksum of its own."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from myxtts.errors import UserError

HISTORY = "history.jsonl"
VALIDATED = "val/"
_CHECK = "check"


class Line(NamedTuple):
    """A line as it is in the file, and its values without the checksum."""

    text: bytes
    values: dict[str, Any]


@dataclass
class Trail:
    """How many lines a history has, and a checksum of them all in their order.

    Times are not part of it: runs that learn the same have the same trail.
    """

    lines: int = 0
    check: str = "00000000"

    def add(self, values: Mapping[str, Any]) -> None:
        lasting = {name: value for name, value in values.items() if not name.endswith("_ms")}
        self.lines, self.check = self.lines + 1, _checksum(lasting, int(self.check, 16))

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def trail_of(lines: Sequence[Line]) -> Trail:
    """The trail of steps and validations; the lines of evaluations come at no certain place."""
    trail = Trail()
    for line in without_evaluations(lines):
        trail.add(line.values)
    return trail


def without_evaluations(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if not is_of_evaluation(line.values)]


def validation_of(values: Mapping[str, Any]) -> tuple[int, frozenset[str]] | None:
    """The step and the names of a line that a validation wrote; None for one of a step."""
    names = frozenset(name for name in values if name.startswith(VALIDATED))
    return (values["step"], names) if names else None


def is_of_evaluation(values: Mapping[str, Any]) -> bool:
    """Whether an evaluation wrote a line: those come some steps late, sooner or later."""
    return validation_of(values) is not None and f"{VALIDATED}loss" not in values


def begins_with(lines: Sequence[Line], trail: Mapping[str, Any]) -> bool:
    """Whether a history begins with the lines that a trail was made of."""
    own = without_evaluations(lines)
    return trail_of(own[: trail["lines"]]).facts() == trail


def encode_line(values: Mapping[str, Any]) -> Line:
    """A line with its checksum: the CRC-32 of its canonical JSON."""
    text = json.dumps({**values, _CHECK: _checksum(values)}) + "\n"
    return Line(text.encode(), dict(values))


def read_lines(path: Path) -> list[Line]:
    """The whole lines of a history; a last one that a kill has torn is dropped.

    Lines of earlier versions have no checksum. They come before all that have one.
    """
    texts = path.read_bytes().splitlines(keepends=True)
    if texts and not texts[-1].endswith(b"\n"):
        del texts[-1]
    lines, is_required = [], False
    for number, text in enumerate(texts, 1):
        try:
            values = json.loads(text)
            check = values.pop(_CHECK, None)
            if type(values["step"]) is not int:
                raise TypeError("a step is a whole number")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path, number, text) from error
        is_required = is_required or check is not None
        if is_required and check != _checksum(values):
            raise _damaged(path, number, text)
        lines.append(Line(text, values))
    return lines


def _damaged(path: Path, number: int, text: bytes) -> UserError:
    start = text.decode("utf-8", "replace").strip()[:80]
    return UserError(
        f"{path}, line {number}, is damaged or not a history of a run: {start!r}; restore the "
        "file from a copy, or delete that line, and run the same command again"
    )


def _checksum(values: Mapping[str, Any], start: int = 0) -> str:
    return f"{zlib.crc32(json.dumps(values, sort_keys=True).encode(), start):08x}"
