"""Recordings that clients send: decoded by a process of its own, with little memory and time.

A decoder that crashes, hangs or grows takes nothing but that process with it.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from myxtts.errors import UserError

RATE = 24000  # at which recordings are kept
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 120.0
_SECONDS = 20  # for which a decoder may run
_MEMORY = 1 << 30  # bytes of addresses, most of which are libraries
_PROGRAM = "myxtts.serving.decoder"
_NAME = "upload"
# The library that multiplies matrices would reserve memory for each core.
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Uploads:
    """Decodes recordings, a few at a time."""

    def __init__(self, at_a_time: int = 2):
        self._slots = asyncio.Semaphore(at_a_time)

    async def decode(self, content: bytes) -> np.ndarray:
        """The samples [samples] of a recording at `RATE`, mono; a UserError says what is wrong."""
        async with self._slots:
            with tempfile.TemporaryDirectory(prefix="myxtts-upload-") as folder:
                path = Path(folder) / _NAME
                await asyncio.to_thread(path.write_bytes, content)
                return np.frombuffer(await _decode(path), np.float32)


async def _decode(path: Path) -> bytes:
    limits = (RATE, LONGEST_SECONDS, SHORTEST_SECONDS, _SECONDS, _MEMORY)
    return await run_limited(_PROGRAM, path, limits, _SECONDS)


async def run_limited(program: str, path: Path, limits: Sequence[object], seconds: float) -> bytes:
    """What a program prints that decodes a file; a UserError says what is wrong with that."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", program, str(path), *map(str, limits)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    try:
        async with asyncio.timeout(seconds):
            output, said = await process.communicate()
    except TimeoutError:
        raise UserError(f"decoding the recording takes more than {seconds:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == UserError.exit_code:
        reason = said.decode("utf-8", "replace").strip()
        reason = reason.replace(f"{path}: ", "").replace(str(path), "it")
        raise UserError(f"the recording cannot be used: {reason[:300]}")
    if process.returncode:
        raise UserError("the recording cannot be decoded: send it as WAV or FLAC")
    return output


def _environment() -> dict[str, str]:
    """That of the server, without its secrets."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    return {**kept, **_THREADS}
