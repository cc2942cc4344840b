"""The voices of a studio: those that the server was started with, and those in its folder."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.checkpoints import CheckpointError, holds_voice
from myxtts.checkpoints.exported import holds_export
from myxtts.config.io import load_config
from myxtts.errors import UserError
from myxtts.serving.clones import REFERENCE
from myxtts.serving.service import SpeechService
from myxtts.serving.studio.comparisons import Side
from myxtts.serving.studio.places import CLONES, RUNS, VOICES, Places
from myxtts.serving.voices import Served, read_served

logger = logging.getLogger(__name__)

_Stamp = tuple[int, int]

_VOICE, _VOCODER = "voice", "stage2/vocoder"  # in the folder of a run
_LOOK_SECONDS = 5.0  # between two looks at the folder, also when nobody has the page open
_CARDS = ("voice.json", "export.json")


class StudioVoices:
    """Keeps what the server speaks with up to date with the folder."""

    def __init__(self, places: Places, service: SpeechService):
        self._places, self._service = places, service
        self._first = service.voices.served
        self._seen: dict[Path, tuple[_Stamp, Served]] = {}
        self._styles: dict[Path, tuple[_Stamp, int]] = {}
        self._found: list[Served] = list(self._first)
        self._changed: set[str] = set()  # which the server has not been told of yet
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read which voices there are now, and serve them. Only on the event loop."""
        self._read_folder()
        self._publish()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Serve what comes into the folder, until the `with` ends."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await asyncio.to_thread(self._read_folder)
            except OSError as error:
                logger.warning("the voices of the studio cannot be read: %s", error)
            else:
                self._publish()

    def _publish(self) -> None:
        with self._lock:
            found, changed = self._found, sorted(self._changed)
            self._changed = set()
        self._service.voices.replace(found, changed)

    def _read_folder(self) -> None:
        """Read which voices there are, on whatever thread."""
        with self._lock:
            found = list(self._first)
            taken = {one.name for one in found}
            for folder in self._folders():
                served, is_new = self._read(folder)
                if served is None or served.name in taken:
                    continue
                taken.add(served.name)
                found.append(served)
                if is_new:
                    self._changed.add(served.name)
            self._found = found

    def all(self) -> list[dict[str, Any]]:
        """Everybody who can speak, and what may be chosen of them."""
        self.refresh()
        voices = self._service.voices
        own = [self._facts(one.id, one.id, one.voice, one.speaker) for one in voices.speakers()]
        clones = [
            {**self._facts(one.id, one.name, served, None), "is_clone": True}
            for one in self._service.clones.all()
            if (served := voices.named(one.voice))
        ]
        return own + clones

    def side(self, id: str) -> Side:
        """Whom a comparison means by an id."""
        self.refresh()
        voices = self._service.voices
        for one in voices.speakers():
            if one.id == id:
                return Side(id, id, one.voice.path, one.speaker)
        clone = self._service.clones.find(id)
        if clone and (served := voices.named(clone.voice)):
            reference = self._places.of(CLONES) / clone.id / REFERENCE
            return Side(clone.id, clone.name, served.path, reference=reference)
        raise HTTPException(404, "there is no voice of that name")

    def served(self, name: str) -> Served:
        self.refresh()
        found = self._service.voices.named(name)
        if found is None:
            raise HTTPException(404, "there is no voice of that name")
        return found

    def _facts(self, id: str, name: str, served: Served, speaker: str | None) -> dict[str, Any]:
        return {
            "id": id,
            "name": name,
            "voice": served.name,
            "speaker": speaker,
            "languages": list(served.languages),
            "style_tokens": self._style_tokens(served.path),
            "is_exported": holds_export(served.path),
            "is_clone": False,
        }

    def _folders(self) -> list[Path]:
        """Folders that hold a voice: copies and exports, and what runs have written."""
        kept = [self._places.of(VOICES) / name for name in self._places.names(VOICES)]
        runs = [self._places.of(RUNS) / name / _VOICE for name in self._places.names(RUNS)]
        return [one for one in (*kept, *runs) if holds_voice(one) or holds_export(one)]

    def _read(self, folder: Path) -> tuple[Served | None, bool]:
        stamp = _stamp(folder)
        known = self._seen.get(folder)
        if known is None or known[0] != stamp:
            try:
                self._seen[folder] = (stamp, read_served([folder])[0])
            except (UserError, OSError):  # it is being replaced, or is no voice
                return (known[1] if known else None), False
            return self._seen[folder][1], known is not None
        return known[1], False

    def _style_tokens(self, folder: Path) -> int:
        """How many style tokens a voice has."""
        stamp = _stamp(folder)
        known = self._styles.get(folder)
        if known is None or known[0] != stamp:
            count = 0
            try:
                inside = folder if (folder / "config.yaml").is_file() else folder / _VOICE
                model = load_config(atomic.present(inside) / "config.yaml").model
                count = model.gst_num_style_tokens if model.use_gst else 0
            except (UserError, OSError, CheckpointError):
                pass
            known = self._styles[folder] = (stamp, count)
        return known[1]


def _stamp(folder: Path) -> _Stamp:
    """Another one whenever a voice, or the vocoder that its run has trained, is written anew."""
    voices = [one / card for one in (folder, folder / _VOICE) for card in _CARDS]
    run = folder.parent if folder.name == _VOICE else folder
    return _written(voices), _written([run / _VOCODER / "vocoder.json"])


def _written(paths: Iterable[Path]) -> int:
    """When the first of some files that is there was written."""
    for path in paths:
        with contextlib.suppress(OSError):
            return (atomic.present(path.parent) / path.name).stat().st_mtime_ns
    return 0
