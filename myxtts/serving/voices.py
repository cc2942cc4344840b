"""The voices that a server speaks with: what they are called, and which of them are loaded."""

import asyncio
import contextlib
import gc
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.checkpoints.exported import holds_export
from myxtts.checkpoints.voices import KERAS, ONNX, read_names
from myxtts.inference.synthesizer import Synthesizer
from myxtts.resources import default_voice

logger = logging.getLogger(__name__)

Load = Callable[[str], Synthesizer]

# Names that clients of OpenAI send: they stand for the voices that there are, in turn.
BUILT_IN = (
    *("alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer"),
    *("verse", "marin", "cedar"),
)
MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
_INSIDE_RUN = "voice"


@dataclass(frozen=True, slots=True)
class Served:
    """A voice by the name that clients know, and where it is."""

    name: str
    path: Path
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    engine: str


@dataclass(frozen=True, slots=True)
class Speaker:
    """Somebody whom a client can ask for: a voice, and who of its speakers."""

    id: str
    voice: Served
    speaker: str | None = None


def read_served(paths: Sequence[str | Path]) -> list[Served]:
    """Read who speaks in the voices of some folders, each under a name of its own.

    Where none is named, it is the voice inside the package.
    """
    found: list[Served] = []
    for path in paths or [default_voice()]:
        folder = Path(path).expanduser().absolute()
        speakers, languages = read_names(folder)
        name = name_of(folder)
        taken = sum(one.name == name or one.name.startswith(f"{name}-") for one in found)
        engine = ONNX if holds_export(folder) else KERAS
        name = f"{name}-{taken + 1}" if taken else name
        found.append(Served(name, folder, speakers, languages, engine))
    return found


def name_of(folder: Path) -> str:
    """What the voice in a folder is called: as its run, where it is inside one."""
    return folder.parent.name if folder.name == _INSIDE_RUN else folder.name


class Voices:
    """The voices of a server: loaded when they are needed, the least recently used unloaded."""

    def __init__(self, served: Sequence[Served], load: Load, most_loaded: int):
        self.served = tuple(served)
        self._by_name = {one.name: one for one in served}
        self._load, self._most_loaded = load, most_loaded
        self._loaded: dict[str, Synthesizer] = {}  # the most recently used is the last
        self._uses: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()  # how often each was replaced
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()

    @property
    def num_loaded(self) -> int:
        return len(self._loaded)

    def speakers(self) -> list[Speaker]:
        """Everybody who can be asked for: a voice with several speakers is there as each."""
        found = []
        for one in self.served:
            found.append(Speaker(one.name, one))
            if len(one.speakers) > 1:
                found += [Speaker(f"{one.name}/{name}", one, name) for name in one.speakers]
        return found

    def find(self, voice: str, model: str) -> Speaker | None:
        """Whom a client means by a voice, if anybody; a model may be the name of a voice too."""
        known = {one.id: one for one in self.speakers()}
        own = self._by_name.get(model)
        if own is not None and voice in own.speakers:
            return Speaker(f"{own.name}/{voice}", own, voice)
        if voice in known:
            return known[voice]
        if voice in BUILT_IN:
            choice = [one for one in known.values() if one.speaker or len(one.voice.speakers) == 1]
            if own is not None:
                choice = [one for one in choice if one.voice is own]
            return choice[BUILT_IN.index(voice) % len(choice)]
        return None

    def named(self, name: str) -> Served | None:
        return self._by_name.get(name)

    def replace(self, served: Sequence[Served], changed: Sequence[str] = ()) -> None:
        """Serve other voices from now on; those that have `changed` are loaded anew when needed."""
        self.served = tuple(served)
        before, self._by_name = self._by_name, {one.name: one for one in served}
        for name in {*before, *self._by_name}:
            if name in changed or before.get(name) != self._by_name.get(name):
                self._versions[name] += 1  # whoever loads it now loads it again
                self._loaded.pop(name, None)

    @contextlib.asynccontextmanager
    async def use(self, served: Served) -> AsyncIterator[Synthesizer]:
        """A voice that stays loaded until the `with` ends."""
        name = served.name
        self._uses[name] += 1
        try:
            while name not in self._loaded:  # it may have been replaced meanwhile
                await self._ensure(served)
            synthesizer = self._loaded[name] = self._loaded.pop(name)
            yield synthesizer
        finally:
            self._uses[name] -= 1
            self._unload_others()

    async def _ensure(self, served: Served) -> None:
        """Load a voice once, however many wait for it, and however many of these leave."""
        name = served.name
        if name not in self._loading:
            self._loading[name] = asyncio.create_task(self._load_one(served))
            self._loading[name].add_done_callback(_tell_of_failure)
        await asyncio.shield(self._loading[name])

    async def _load_one(self, served: Served) -> None:
        name = served.name
        try:
            async with self._one_at_a_time:
                logger.info("loading the voice %s", name)
                version, now = self._versions[name], self._by_name.get(name, served)
                loaded = await asyncio.to_thread(self._load, str(now.path))
                if version == self._versions[name]:
                    self._loaded[name] = loaded
                    self._unload_others()
        finally:
            del self._loading[name]

    def _unload_others(self) -> None:
        unused = [name for name in self._loaded if not self._uses[name]]
        for name in unused[: max(0, len(self._loaded) - self._most_loaded)]:
            logger.info("unloading the voice %s", name)
            del self._loaded[name]
            gc.collect()  # graphs of TensorFlow refer to themselves


def _tell_of_failure(loading: asyncio.Task[None]) -> None:
    """Whoever waited may have left."""
    if not loading.cancelled() and (error := loading.exception()) is not None:
        logger.info("a voice could not be loaded: %s", error)
