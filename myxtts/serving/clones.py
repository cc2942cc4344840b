"""Voices cloned from recordings: each is a folder with the recording and who agreed to its use.

A folder is named by an id that the server makes. Nothing that a client sends becomes part of a
path: its names are only ever content.
"""

import json
import logging
import re
import secrets
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from myxtts import atomic
from myxtts.audio.io import write_wav
from myxtts.errors import UserError
from myxtts.serving.fields import FieldError
from myxtts.text.scripts import is_plain

logger = logging.getLogger(__name__)

LONGEST_NAME, LONGEST_CONSENT = 64, 2000
SHORTEST_CONSENT = 10
_ID = re.compile(r"voice_[0-9a-f]{24}")
_CARD, REFERENCE = "voice.json", "reference.wav"


@dataclass(frozen=True, slots=True)
class Clone:
    """A cloned voice: which voice speaks as it, and the statement of consent."""

    id: str
    name: str
    voice: str
    consent: str
    created: int


class NameTakenError(UserError):
    """Another voice has that name."""


class UnknownCloneError(UserError):
    """A cloned voice that is not there."""


class Clones:
    """The cloned voices in a folder. Only one server may use the folder."""

    def __init__(self, folder: Path, most: int):
        self._folder, self._most = folder, most
        self._lock = threading.Lock()
        self._clones = {clone.id: clone for clone in _read_all(folder)}
        self._embeddings: dict[str, tuple[weakref.ref[object], np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self._clones)

    def all(self) -> list[Clone]:
        return sorted(list(self._clones.values()), key=lambda clone: (clone.created, clone.id))

    def find(self, name: str) -> Clone | None:
        """The clone of an id or of a name."""
        # Copied at once: other threads add and remove some.
        named = (clone for clone in list(self._clones.values()) if clone.name == name)
        return self._clones.get(name) or next(named, None)

    def check(self, name: str, consent: str) -> tuple[str, str]:
        """A name and a consent that a new clone may have, tidied."""
        name, consent = " ".join(name.split()), consent.strip()
        if not 0 < len(name) <= LONGEST_NAME or not is_plain(name):
            raise FieldError(f"a name has 1 to {LONGEST_NAME} printable characters", "name")
        if not SHORTEST_CONSENT <= len(consent) <= LONGEST_CONSENT or not is_plain(consent):
            raise FieldError(
                "the consent is a sentence in which the speaker agrees, such as 'I, Ada Example, "
                f"agree that my voice is cloned' ({SHORTEST_CONSENT} to {LONGEST_CONSENT} "
                "characters)",
                "consent",
            )
        if self.find(name):
            raise NameTakenError(f"there is a voice called {name!r} already: delete it first")
        if len(self._clones) >= self._most:
            raise UserError(f"there are {self._most} cloned voices, the most allowed: delete one")
        return name, consent

    def add(self, name: str, voice: str, consent: str, samples: np.ndarray, rate: int) -> Clone:
        """Store a recording [samples] as the voice of that name."""
        with self._lock:
            name, consent = self.check(name, consent)
            made = f"voice_{secrets.token_hex(12)}", name, voice, consent, int(time.time())
            clone = Clone(*made)
            target = self._folder / clone.id
            with atomic.explained(target):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                with atomic.new_folder(target) as draft:
                    write_wav(draft / REFERENCE, samples, rate)
                    card = json.dumps(asdict(clone), ensure_ascii=False, indent=1)
                    (draft / _CARD).write_text(card + "\n", encoding="utf-8")
            self._clones[clone.id] = clone
        return clone

    def remove(self, clone: Clone) -> None:
        """Delete the recording, the consent and the name."""
        with self._lock:
            if self._clones.pop(clone.id, None) is None:
                return
            self._embeddings.pop(clone.id, None)
            folder = self._folder / clone.id
            with atomic.explained(folder):
                shutil.rmtree(folder)

    def embedding(
        self, clone: Clone, voice: object, embed: Callable[[Path], np.ndarray]
    ) -> np.ndarray:
        """The speaker embedding of a clone, made when a loaded voice first asks for it.

        A voice that has taken the place of another one never gets an embedding by that one.
        """
        by, found = self._embeddings.get(clone.id, (None, None))
        if found is None or by is None or by() is not voice:
            found = embed(self._folder / clone.id / REFERENCE)
            if clone.id in self._clones:
                self._embeddings[clone.id] = weakref.ref(voice), found
        return found


def _read_all(folder: Path) -> list[Clone]:
    """Read what is there; a folder that is no clone is left alone, and told of."""
    found = []
    for one in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not _ID.fullmatch(one.name):
            continue
        try:
            card = json.loads((one / _CARD).read_text(encoding="utf-8"))
            clone = Clone(**card)
            if clone.id != one.name or not (one / REFERENCE).is_file():
                raise ValueError("its card and its files do not agree")
        except (OSError, ValueError, TypeError) as error:
            logger.warning("%s is no cloned voice (%s): remove it, or copy it anew", one, error)
            continue
        found.append(clone)
    return found
