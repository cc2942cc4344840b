"""What both servers offer: find a voice, queue a text, and read its speech as it comes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from myxtts.errors import UserError
from myxtts.inference.errors import check_known
from myxtts.inference.script import plan_ssml
from myxtts.inference.speaking_options import (
    SpeakingOptions,
    embed_reference,
    find_language,
    look_up,
)
from myxtts.inference.speech import Speech
from myxtts.inference.synthesizer import Line, Synthesizer
from myxtts.serving.clones import Clone, Clones
from myxtts.serving.fields import FieldError, about
from myxtts.serving.limits import OPENING_LETTERS, Limits
from myxtts.serving.metrics import Metrics
from myxtts.serving.queue import Job, SpeechQueue
from myxtts.serving.voices import MODELS, Served, Voices


class UnknownVoiceError(UserError):
    """A voice that nobody has here."""


class UnknownModelError(UserError):
    """A model that nobody has here."""


class TooLongError(UserError):
    """A text with more characters than are allowed."""


@dataclass(frozen=True, slots=True)
class Order:
    """A text, who is to say it, and how."""

    text: str
    voice: str
    model: str = MODELS[0]
    speaker: str | None = None
    language: str | None = None
    speaking_rate: float = 1.0
    seed: int = 0
    style: tuple[float, ...] | None = None
    is_ssml: bool = False
    is_cut_short: bool = True  # its first line, so that it is heard soon


@dataclass(frozen=True, slots=True)
class _Who:
    """An order's voice: one that is served, with a speaker of it or a clone by it."""

    served: Served
    speaker: str | None = None
    clone: Clone | None = None


class SpeechService:
    """Speaks orders with the voices that are served, and with clones by them."""

    def __init__(self, voices: Voices, clones: Clones, limits: Limits, metrics: Metrics):
        self.voices, self.clones, self.limits, self.metrics = voices, clones, limits, metrics
        self.queue = SpeechQueue(limits.max_queue, limits.max_batch, metrics)
        metrics.watch("myxtts_queue", "requests that wait or are being spoken", self._queued)
        metrics.watch("myxtts_voices_loaded", "voices in memory", lambda: voices.num_loaded)

    def _queued(self) -> float:
        return len(self.queue)

    def check(self, order: Order) -> None:
        """Raise where an order cannot be followed, as far as that is known before the voice is."""
        who = self._find(order)
        if len(order.text) > self.limits.max_text:
            raise TooLongError(
                f"the text has {len(order.text):,} characters, and {self.limits.max_text:,} are "
                "the most allowed: send it in parts"
            )
        if not order.text.strip():
            raise FieldError("there is nothing to say: write some text", "input")
        if order.language is not None:
            check_known(order.language, who.served.languages, "language")

    @contextlib.asynccontextmanager
    async def speak(self, order: Order) -> AsyncIterator["SpeechStream"]:
        """Queue a text; whatever is not read of it when the `with` ends is not spoken."""
        self.check(order)
        who = self._find(order)
        async with self.voices.use(who.served) as synthesizer:
            stream = SpeechStream(synthesizer)
            plan = partial(self._plan, order, who, synthesizer)
            job = self.queue.submit(synthesizer, plan, stream.deliver, len(order.text))
            stream.job = job
            try:
                yield stream
            finally:
                job.cancel()

    async def embed(self, clone: Clone) -> None:
        """Embed the recording of a clone, which shows whether it can be."""
        served = self.voices.named(clone.voice)
        if served is None:
            raise UnknownVoiceError(f"there is no voice {clone.voice!r} here")
        async with self.voices.use(served) as synthesizer:
            await asyncio.to_thread(self._embedding, clone, synthesizer)

    def _find(self, order: Order) -> _Who:
        known = [one.name for one in self.voices.served]
        if order.model not in (*MODELS, *known):
            shown = ", ".join([*known, *MODELS])
            raise UnknownModelError(f"there is no model {order.model!r} here, but {shown}")
        found = self.voices.find(order.voice, order.model)
        clone = None if found else self.clones.find(order.voice)
        if clone and (served := self.voices.named(clone.voice)):
            return _Who(served, clone=clone)
        if found is None:
            raise UnknownVoiceError(
                f"there is no voice {order.voice[:100]!r} here: GET /v1/audio/voices has them all"
            )
        speaker = order.speaker or found.speaker
        if speaker is not None:
            check_known(speaker, found.voice.speakers, "speaker")
        return _Who(found.voice, speaker)

    def _plan(self, order: Order, who: _Who, synthesizer: Synthesizer) -> Iterator[Line]:
        options: dict[str, Any] = {
            "language": find_language(order.language, synthesizer.voice),
            "speaker": who.speaker,
            "speaking_rate": order.speaking_rate,
            "seed": order.seed,
            "style_weights": order.style,
        }
        if who.clone:
            options["embedding"] = self._embedding(who.clone, synthesizer)
        opening = OPENING_LETTERS if order.is_cut_short else None
        # What is wrong beyond this is the text, in which SSML may name speakers and languages too.
        look_up(SpeakingOptions(**options), synthesizer.voice)
        with about("input"):
            if order.is_ssml:
                return plan_ssml(synthesizer, order.text, opening, **options)
            return synthesizer.plan(order.text, opening, **options)

    def _embedding(self, clone: Clone, synthesizer: Synthesizer) -> np.ndarray:
        voice = synthesizer.voice
        return self.clones.embedding(clone, synthesizer, lambda path: embed_reference(path, voice))


class SpeechStream:
    """The speech of one text, sentence by sentence, for a reader on the event loop."""

    job: Job

    def __init__(self, synthesizer: Synthesizer):
        self.spec = synthesizer.spec
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[Speech | Exception | None] = asyncio.Queue()

    def deliver(self, piece: Speech | Exception | None) -> None:
        """Called by the thread that speaks."""
        # A loop that is closed has no reader any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    def __aiter__(self) -> "SpeechStream":
        return self

    async def __anext__(self) -> Speech:
        piece = await self._pieces.get()
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, Exception):
            raise piece
        self.job.was_read()
        return piece
