"""Uploads of sound: written to the disk as they come, and decoded under limits."""

import asyncio
import contextlib
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.errors import UserError
from myxtts.serving.uploads import run_limited

_PROGRAM = "myxtts.serving.studio.transcoder"
_DRAFT = re.compile(r"\.[0-9a-f]{16}\.(upload|flac)")
_SECONDS, _MEMORY, _MOST_BYTES = 900, 1 << 30, 6 << 30
_SHORTEST_SECONDS = 0.5
_SPARE_BYTES = 1 << 30  # of the disk, which stay free
_AT_A_TIME = 2  # decoders


class Receiver:
    """Takes uploads, and decodes a few at a time."""

    def __init__(self) -> None:
        self._decoders = asyncio.Semaphore(_AT_A_TIME)

    @contextlib.asynccontextmanager
    async def received(
        self, folder: Path, content: AsyncIterator[bytes], most_bytes: int | None = None
    ) -> AsyncIterator[tuple[Path, float]]:
        """A recording as FLAC in a folder, and its seconds; it is gone afterwards unless moved."""
        with atomic.explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _check_space(folder)
            upload, decoded = (new_draft(folder, kind) for kind in ("upload", "flac"))
            try:
                await _write(upload, content, most_bytes)
                limits = (decoded, _SHORTEST_SECONDS, _SECONDS, _MEMORY, _MOST_BYTES)
                async with self._decoders:
                    seconds = float(await run_limited(_PROGRAM, upload, limits, _SECONDS))
                yield decoded, seconds
            finally:
                upload.unlink(missing_ok=True)
                decoded.unlink(missing_ok=True)


async def _write(path: Path, content: AsyncIterator[bytes], most_bytes: int | None) -> None:
    size = 0
    with open(path, "wb") as file:
        async for part in content:
            size += len(part)
            if most_bytes is not None and size > most_bytes:
                message = f"the recording has more than {most_bytes >> 20} MB: record less at once"
                raise HTTPException(413, message, {"Connection": "close"})
            await asyncio.to_thread(file.write, part)


def new_draft(folder: Path, kind: str) -> Path:
    """A hidden name in a folder, which `remove_drafts` knows."""
    return folder / f".{secrets.token_hex(8)}.{kind}"


def remove_drafts(folders: Iterable[Path]) -> None:
    """Remove what a server left that was killed while it received something."""
    for folder in folders:
        for path in folder.glob(".*"):
            if _DRAFT.fullmatch(path.name):
                with atomic.explained(path):
                    path.unlink(missing_ok=True)


def _check_space(folder: Path) -> None:
    if shutil.disk_usage(folder).free < _SPARE_BYTES:
        raise UserError("there is less than 1 GB left on the disk: free some space there")
