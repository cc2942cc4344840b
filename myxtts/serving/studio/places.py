"""The folder of a studio: what is in it, and by which names a browser may ask for it.

A name from a request never becomes part of a path: it is compared with the names that are there.
New names are made here, of plain letters.
"""

import contextlib
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, read_document
from myxtts.errors import UserError
from myxtts.text.scripts import is_plain

CORPORA, RECORDINGS, RUNS, VOICES = "corpora", "recordings", "runs", "voices"
CLONES, JOBS, COMPARISONS, EXPORTS = "clones", "jobs", "comparisons", "exports"
TAKES = "takes"
CARD = "studio.json"  # what the studio knows of a corpus, a run or a comparison
LONGEST_TITLE = 60
_LONGEST_NAME = 40
_WHAT = {
    CORPORA: "corpus",
    RUNS: "training run",
    JOBS: "job",
    COMPARISONS: "comparison",
    EXPORTS: "export",
    TAKES: "recording",
}


class Places:
    """Where everything of a studio is; the folders are made when it is opened."""

    def __init__(self, folder: Path):
        self.folder = folder.expanduser().absolute()
        parts = (CORPORA, RECORDINGS, TAKES, RUNS, VOICES, CLONES, JOBS, COMPARISONS, EXPORTS)
        with atomic.explained(self.folder):
            for part in parts:
                (self.folder / part).mkdir(parents=True, exist_ok=True)

    def of(self, kind: str) -> Path:
        return self.folder / kind

    def names(self, kind: str) -> list[str]:
        """The folders of a kind, in the order of their names."""
        return sorted(
            one.name
            for one in self.of(kind).iterdir()
            if not one.name.startswith(".") and one.is_dir()
        )

    def find(self, kind: str, name: str) -> Path:
        """The folder of that name, which must be there."""
        if name not in self.names(kind):
            raise HTTPException(404, f"there is no {_WHAT[kind]} of that name")
        return self.of(kind) / name

    def make(self, kind: str, title: str, *others: str) -> Path:
        """A new folder with a name that resembles a title, in none of the `others` either."""
        stem = plain_name(title) or _WHAT[kind].replace(" ", "-")
        taken = {name.casefold() for one in (kind, *others) for name in self.names(one)}
        number, name = 1, stem
        while True:
            if name not in taken:
                with atomic.explained(self.of(kind) / name), contextlib.suppress(FileExistsError):
                    (self.of(kind) / name).mkdir()
                    return self.of(kind) / name
            number += 1
            name = f"{stem}-{number}"

    @contextlib.contextmanager
    def making(self, kind: str, title: str, *others: str) -> Iterator[Path]:
        """A new folder, as `make` names it, that is there afterwards if nothing was refused."""
        folder = self.make(kind, title, *others)
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def plain_name(text: str) -> str:
    """The letters and digits of ASCII in a text, with dashes between its words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST_NAME].strip("-")


def check_title(text: str) -> str:
    """A title that can be shown, tidied."""
    title = " ".join(text.split())
    if not 0 < len(title) <= LONGEST_TITLE or not is_plain(title):
        raise UserError(f"a name has 1 to {LONGEST_TITLE} printable characters")
    return title


def read_card(folder: Path, name: str = CARD) -> dict[str, Any]:
    """What is written of a folder; nothing where that is missing or damaged."""
    try:
        found = parse_json(read_document(folder / name, MOST_JSON_BYTES))
    except (OSError, DocumentError):
        return {}
    return found if isinstance(found, dict) else {}


def write_card(folder: Path, values: dict[str, Any], name: str = CARD) -> None:
    """Write that anew."""
    content = json.dumps(values, ensure_ascii=False, indent=1) + "\n"
    with atomic.explained(folder / name):
        atomic.write(folder / name, content.encode(), alone=True)
