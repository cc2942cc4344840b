"""Files inside the package: the voice that speaks where none is named."""

from importlib.resources import files
from pathlib import Path

NAME = "default_voice"


def default_voice() -> Path:
    """The folder of the export that the package has."""
    return Path(str(files("myxtts").joinpath(NAME)))
