"""What was recorded by the microphone and is neither kept nor discarded yet.

A take is on the disk as soon as its recording ends, so that a reload of the page loses none.
"""

import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.serving.studio.places import CORPORA, TAKES, Places, read_card, write_card
from myxtts.serving.studio.receiving import Receiver, remove_drafts

MOST = 50  # for a corpus, and for voices that are to be cloned
MOST_BYTES = 128 << 20  # of an upload: 20 minutes and more
_DAYS = 30  # for which a take waits
_SOUND = "take.flac"
_NAMES = ("text", "seconds", "created")


class Takes:
    """The takes in a studio's folder, each in a folder of its own."""

    def __init__(self, places: Places, receiver: Receiver):
        self._places, self._receiver = places, receiver
        remove_drafts([places.of(TAKES)])
        self._remove_old()

    def of(self, corpus: str | None) -> list[dict[str, Any]]:
        """The takes for a corpus, or for voices that are to be cloned; the oldest first."""
        found = (
            {"id": id, **card}
            for id, card in self._cards()
            if card.get("corpus") == corpus and (self._folder(id) / _SOUND).is_file()
        )
        return sorted(found, key=lambda one: (one["created"], one["id"]))

    async def add(
        self, corpus: str | None, text: str, content: AsyncIterator[bytes]
    ) -> dict[str, Any]:
        """Take a recording, to be kept or discarded later."""
        if corpus is not None:
            self._places.find(CORPORA, corpus)
        if len(self.of(corpus)) >= MOST:
            message = f"{MOST} recordings wait to be kept or discarded: decide on some of them"
            raise HTTPException(409, message)
        async with self._receiver.received(self._places.of(TAKES), content, MOST_BYTES) as found:
            sound, seconds = found
            id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
            card = {"corpus": corpus, "text": text, "seconds": seconds, "created": time.time()}
            with atomic.new_folder(self._places.of(TAKES) / id) as draft:
                sound.rename(draft / _SOUND)
                write_card(draft, card)
        return {"id": id, **card}

    def sound(self, id: str) -> Path:
        """The recording of a take."""
        path = self._places.find(TAKES, id) / _SOUND
        if not path.is_file():
            raise HTTPException(404, "there is no recording of that name")
        return path

    def remove(self, id: str) -> None:
        """Discard a take, or forget one that is kept."""
        folder = self._places.find(TAKES, id)
        with atomic.explained(folder), contextlib.suppress(FileNotFoundError):
            atomic.remove_folder(folder)

    def forget(self, corpus: str) -> None:
        """Discard the takes of a corpus that is deleted."""
        for id, card in self._cards():
            if card.get("corpus") == corpus:
                self.remove(id)

    def _remove_old(self) -> None:
        """Discard what has waited for long, what is damaged, and whose corpus is not there."""
        corpora, oldest = self._places.names(CORPORA), time.time() - _DAYS * 86400
        whole = {
            id
            for id, card in self._cards()
            if card["created"] >= oldest and card.get("corpus") in (None, *corpora)
        }
        for id in self._places.names(TAKES):
            if id not in whole:
                self.remove(id)

    def _cards(self) -> list[tuple[str, dict[str, Any]]]:
        found = ((id, read_card(self._folder(id))) for id in self._places.names(TAKES))
        return [(id, card) for id, card in found if all(name in card for name in _NAMES)]

    def _folder(self, id: str) -> Path:
        return self._places.of(TAKES) / id
