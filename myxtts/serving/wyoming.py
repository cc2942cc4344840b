"""The same voices over the Wyoming protocol, which Home Assistant speaks."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice, TtsVoiceSpeaker
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

import myxtts
from myxtts.audio.streaming import to_pcm16
from myxtts.errors import UserError
from myxtts.inference.sentences import SENTENCE, cut_sentences
from myxtts.inference.synthesizer import PAUSE_SECONDS
from myxtts.serving.limits import BODY_SECONDS, STALL_SECONDS
from myxtts.serving.queue import QueueFullError, StoppedError
from myxtts.serving.service import Order, SpeechService, TooLongError
from myxtts.serving.voices import BUILT_IN, MODELS

logger = logging.getLogger(__name__)

_ATTRIBUTION = Attribution(name="MyXTTS", url="")
_CHUNK_SAMPLES = 2048
_LARGEST_LINE = 64 << 10  # bytes of a header
_LARGEST_PAYLOAD = 64 << 10  # nothing that is said here has one
_IDLE_SECONDS = 600
# What follows a mark decides whether it ends a sentence.
_AHEAD = 10  # characters
_MOST_HELD = 1000  # characters without the end of a sentence
_MOST_EVENTS = 256  # that are read ahead


class _ProtocolError(Exception):
    """What no client of this protocol sends."""


@contextlib.asynccontextmanager
async def serving(host: str, port: int, service: SpeechService) -> AsyncIterator[tuple[str, int]]:
    """Listen while the `with` lasts; yields the address."""
    open_connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(open_connections) >= service.limits.max_connections:
            writer.transport.abort()
            return
        open_connections.add(task)
        try:
            await _Connection(reader, writer, service).run()
        finally:
            open_connections.discard(task)
            writer.close()

    try:
        server = await asyncio.start_server(connected, host, port, limit=_LARGEST_LINE)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen for Wyoming on {host}, port {port} ({error})") from error
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for task in list(open_connections):
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)


class _Connection:
    """One client: what it asks is answered in order, until it leaves."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: SpeechService
    ):
        self._reader, self._writer, self._service = reader, writer, service
        self._events: asyncio.Queue[Event] = asyncio.Queue(_MOST_EVENTS)
        self._streamed: _StreamedText | None = None

    async def run(self) -> None:
        """Read on while answering, so that it is noticed when the client leaves."""
        tasks = {asyncio.create_task(self._read_all()), asyncio.create_task(self._answer_all())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(ended, _EXPECTED):
                    logger.info("a Wyoming connection ends: %s", ended)
                elif isinstance(ended, Exception):
                    logger.error("a Wyoming connection failed", exc_info=ended)

    async def _read_all(self) -> None:
        while event := await _read_event(self._reader, self._service.limits.json_bytes):
            await self._events.put(event)

    async def _answer_all(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self._answer(event)
            except (UserError, QueueFullError, StoppedError) as error:
                self._streamed = None
                await self._send(Error(str(error), type(error).__name__).event())

    async def _answer(self, event: Event) -> None:
        if Describe.is_type(event.type):
            await self._send(describe(self._service).event())
        elif SynthesizeStart.is_type(event.type):
            with _understood():
                asked = SynthesizeStart.from_event(event)
            self._streamed = _StreamedText(self._order(asked, ""), self._service.limits.max_text)
        elif SynthesizeChunk.is_type(event.type) and self._streamed:
            with _understood():
                text = _as_text(SynthesizeChunk.from_event(event).text)
            await self._speak_part(self._streamed.add(text))
        elif Synthesize.is_type(event.type) and not self._streamed:
            # Within a streamed text it is the whole once more, for servers that do not stream.
            with _understood():
                whole = Synthesize.from_event(event)
            await self._speak(self._order(whole, _as_text(whole.text)), is_first=True)
            await self._send(AudioStop().event())
        elif SynthesizeStop.is_type(event.type) and self._streamed:
            await self._speak_part(self._streamed.rest())
            if self._streamed.has_sounded:
                await self._send(AudioStop().event())
            self._streamed = None
            await self._send(SynthesizeStopped().event())

    def _order(self, asked: Synthesize | SynthesizeStart, text: str) -> Order:
        voice = asked.voice or SynthesizeVoice()
        named = (voice.name, voice.language, voice.speaker)
        if not all(one is None or isinstance(one, str) for one in named):
            raise _ProtocolError("a voice is described by texts")
        speaking = (one for one in self._service.voices.served if voice.language in one.languages)
        served = next(speaking, None)
        name = voice.name or (served.name if served else BUILT_IN[0])
        how = voice.speaker, voice.language
        return Order(text, name, MODELS[0], *how, is_ssml=asked.text_format == "ssml")

    async def _speak_part(self, order: Order | None) -> None:
        streamed = self._streamed
        assert streamed is not None
        if order is not None:
            await self._speak(order, is_first=not streamed.has_sounded)
            streamed.has_sounded = True

    async def _speak(self, order: Order, is_first: bool) -> None:
        """Send the speech of a text, and a pause before it if it goes on from another."""
        async with self._service.speak(order) as stream:
            rate, is_begun = stream.spec.sample_rate, False
            async for speech in stream:
                if not is_begun and is_first:
                    await self._send(AudioStart(rate, 2, 1).event())
                elif not is_begun:
                    await self._send_audio(bytes(2 * round(PAUSE_SECONDS[SENTENCE] * rate)), rate)
                is_begun = True
                await self._send_audio(to_pcm16(speech.samples), rate)

    async def _send_audio(self, audio: bytes, rate: int) -> None:
        for start in range(0, len(audio), 2 * _CHUNK_SAMPLES):
            part = audio[start : start + 2 * _CHUNK_SAMPLES]
            await self._send(AudioChunk(rate, 2, 1, part).event())

    async def _send(self, event: Event) -> None:
        async with asyncio.timeout(STALL_SECONDS):
            await async_write_event(event, self._writer)


class _StreamedText:
    """A text that comes in chunks; whole sentences are spoken as soon as they are known."""

    def __init__(self, order: Order, most: int):
        self._order, self._left, self._held = order, most, ""
        self.has_sounded = False

    def add(self, text: str) -> Order | None:
        """Take a chunk, and return what can be spoken now, if anything."""
        self._left -= len(text)
        if self._left < 0:
            raise TooLongError("the text is longer than is allowed")
        self._held += text
        if self._order.is_ssml:
            return None
        done = 0
        for part in cut_sentences(self._held, self._order.language or "en"):
            if len(self._held) - done - len(part) < _AHEAD:
                break
            done += len(part)
        if not done and len(self._held) > _MOST_HELD:
            done = self._held.rfind(" ") + 1 or len(self._held)
        said, self._held = self._held[:done], self._held[done:]
        return self._order_of(said)

    def rest(self) -> Order | None:
        """What is left when nothing more comes."""
        return self._order_of(self._held)

    def _order_of(self, text: str) -> Order | None:
        if not any(letter.isalnum() for letter in text):
            return None
        return replace(self._order, text=text, is_cut_short=not self.has_sounded)


def describe(service: SpeechService) -> Info:
    """All voices, as Home Assistant lists them."""
    own = [
        _voice(one.name, f"{one.name} ({one.engine})", one.languages, one.speakers)
        for one in service.voices.served
    ]
    clones = [
        _voice(one.name, f"{one.name}, cloned with {served.name}", served.languages, ())
        for one in service.clones.all()
        if (served := service.voices.named(one.voice))
    ]
    program = TtsProgram(
        name="myxtts",
        description="Voices of MyXTTS",
        attribution=_ATTRIBUTION,
        installed=True,
        version=myxtts.__version__,
        voices=[*own, *clones],
        supports_synthesize_streaming=True,
    )
    return Info(tts=[program])


def _voice(name: str, about: str, languages: Sequence[str], speakers: Sequence[str]) -> TtsVoice:
    return TtsVoice(
        name=name,
        description=about,
        attribution=_ATTRIBUTION,
        installed=True,
        version=myxtts.__version__,
        languages=list(languages),
        speakers=[TtsVoiceSpeaker(one) for one in speakers] if len(speakers) > 1 else None,
    )


async def _read_event(reader: asyncio.StreamReader, most_bytes: int) -> Event | None:
    """Read an event that is not too large; None where the client has left."""
    async with asyncio.timeout(_IDLE_SECONDS):
        line = await reader.readline()
    if not line.endswith(b"\n"):
        return None
    head = _as_object(line)
    async with asyncio.timeout(BODY_SECONDS):
        data = {**_as_object(head.get("data") or {})}
        if length := _length(head, "data_length", most_bytes):
            data |= _as_object(await reader.readexactly(length))
        if length := _length(head, "payload_length", _LARGEST_PAYLOAD):
            await reader.readexactly(length)
    return Event(_as_text(head.get("type")), data)


def _length(head: dict[str, Any], name: str, most: int) -> int:
    length = head.get(name) or 0
    if type(length) is not int or not 0 <= length <= most:
        raise _ProtocolError(f"{name} is no number from 0 to {most}")
    return length


def _as_object(found: Any) -> dict[str, Any]:
    if isinstance(found, bytes):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError) as error:
            raise _ProtocolError(f"an event is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _ProtocolError("an event is no object")
    return found


def _as_text(found: Any) -> str:
    if not isinstance(found, str):
        raise _ProtocolError("a text is no text")
    # A lone half of a pair is in no text that can be read or sent.
    return found.encode("utf-8", "replace").decode()


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Around the reading of an event's fields, none of which the library checks."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _ProtocolError(f"an event lacks what it needs: {error!r}") from error


_EXPECTED = (_ProtocolError, OSError, EOFError, TimeoutError, ValueError)
