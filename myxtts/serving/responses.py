"""An answer that is sent while it is being spoken, and ends when its client leaves."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from myxtts.audio.streaming import StreamEncoder
from myxtts.inference.speech import Speech
from myxtts.inference.times import find_times
from myxtts.serving import errors
from myxtts.serving.service import SpeechStream

MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
SSE = "text/event-stream"


class SpokenResponse(StreamingResponse):
    """Sends parts as they come. `held` is closed at the end, however that comes about."""

    def __init__(
        self,
        parts: AsyncIterator[bytes],
        media_type: str,
        headers: dict[str, str],
        held: contextlib.AsyncExitStack,
    ):
        super().__init__(parts, media_type=media_type, headers=headers)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self.stream_response(send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._held.aclose()


async def first_piece(stream: SpeechStream, request: Request) -> Speech | None:
    """The first speech of a text, if there is any, unless the client leaves before."""
    first = asyncio.ensure_future(anext(stream, None))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({first, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            raise errors.ClientLeftError
        return first.result()
    finally:
        for task in (first, leaving):
            task.cancel()
        await asyncio.gather(first, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def speech_of(first: Speech | None, stream: SpeechStream) -> AsyncIterator[Speech]:
    """All of a text, the first piece of which was read before."""
    if first is not None:
        yield first
        async for speech in stream:
            yield speech


async def audio_parts(speech: AsyncIterator[Speech], name: str, rate: int) -> AsyncIterator[bytes]:
    """The bytes of a file, as they are ready."""
    encoder = StreamEncoder(name, rate)
    try:
        async for one in speech:
            if part := await asyncio.to_thread(encoder.encode, one.samples):
                yield part
        yield await asyncio.to_thread(encoder.encode, np.zeros(0, np.float32), True)
    finally:
        encoder.close()


async def sse_parts(
    speech: AsyncIterator[Speech], name: str, stream: SpeechStream, timed: bool
) -> AsyncIterator[bytes]:
    """The same as events, with the times of words if wanted, and at the end how much it was."""
    encoder = StreamEncoder(name, stream.spec.sample_rate)
    usage, seconds = {"input_tokens": 0, "output_tokens": 0}, 0.0
    try:
        async for one in speech:
            if timed and (found := list(words(one, stream, seconds))):
                yield _event({"type": "speech.audio.words", "words": found})
            seconds += one.seconds
            usage["input_tokens"] += len(one.tokens)
            usage["output_tokens"] += len(one.mel)
            if part := await asyncio.to_thread(encoder.encode, one.samples):
                yield _delta(part)
        if part := await asyncio.to_thread(encoder.encode, np.zeros(0, np.float32), True):
            yield _delta(part)
        usage["total_tokens"] = sum(usage.values())
        yield _event({"type": "speech.audio.done", "usage": usage})
    except Exception as error:  # the answer has begun: what is wrong can only be an event of it
        yield _event({"type": "error", **errors.describe(error)[1]})
    finally:
        encoder.close()


def words(speech: Speech, stream: SpeechStream, start: float) -> Iterator[dict[str, Any]]:
    """The words of speech that begins at so many seconds."""
    for sentence in find_times(speech.spoken, stream.spec):
        for word in sentence.words:
            first, last = start + word.start, start + word.end
            yield {"word": word.text, "start_time": round(first, 4), "end_time": round(last, 4)}


def _delta(part: bytes) -> bytes:
    return _event({"type": "speech.audio.delta", "audio": base64.b64encode(part).decode()})


def _event(content: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
