"""What is exported, to what, and where to; the command line reads this without NumPy."""

from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UserError

TARGETS = ("onnx", "piper", "sherpa", "saved-model", "litert")
FLOAT32, FLOAT16, INT8 = WEIGHTS = ("float32", "float16", "int8")


@dataclass(frozen=True)
class ExportSettings:
    """What is exported, and what its card says of it."""

    voice: str
    output: Path
    vocoder: str = "auto"
    weights: str = FLOAT32
    licence: str = ""
    data: str = ""
    language: str | None = None
    words: Path | None = None


def check_free(path: Path) -> None:
    """Raise where something is in the way: an export replaces nothing."""
    if path.exists():
        raise UserError(f"{path} is there already: remove it, or choose another place with -o")
