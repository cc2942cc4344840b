"""The routes that speak."""

import base64
import contextlib
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from myxtts.inference.speech import Speech
from myxtts.serving import schemas
from myxtts.serving.errors import UnknownFormatError
from myxtts.serving.fields import FieldError
from myxtts.serving.responses import (
    MEDIA_TYPES,
    SSE,
    SpokenResponse,
    audio_parts,
    first_piece,
    speech_of,
    sse_parts,
    words,
)
from myxtts.serving.schemas import problems
from myxtts.serving.service import SpeechService

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_SPOKEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the speech, as it is spoken",
        "content": {**dict.fromkeys(MEDIA_TYPES.values(), _BINARY), SSE: _BINARY},
    }
}
_UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


def build_router(service: SpeechService) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(tags=["speech"])

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=_SPOKEN | problems(400, 401, 403, 404, 408, 413, 429, 503),
    )
    async def create_speech(body: schemas.SpeechRequest, request: Request) -> Response:
        """Say a text, and send it while it is being spoken."""
        form = _check_format(body.response_format)
        if body.timestamps and body.stream_format != "sse":
            raise FieldError(
                "timestamps come as events: ask for stream_format sse, or POST to "
                "/v1/audio/captioned_speech",
                "timestamps",
            )
        async with contextlib.AsyncExitStack() as held:
            stream = await held.enter_async_context(service.speak(body.order()))
            speech = speech_of(await first_piece(stream, request), stream)
            if body.stream_format == "sse":
                parts, media = sse_parts(speech, form, stream, body.timestamps), SSE
            else:
                rate = stream.spec.sample_rate
                parts, media = audio_parts(speech, form, rate), MEDIA_TYPES[form]
            headers = {**_UNBUFFERED, **_warnings(body)}
            return SpokenResponse(parts, media, headers, held.pop_all())
        raise AssertionError  # the stack swallows nothing

    @router.post(
        "/v1/audio/captioned_speech",
        responses=problems(400, 401, 403, 404, 408, 413, 429, 503),
    )
    async def create_captioned_speech(
        body: schemas.CaptionedRequest, request: Request, response: Response
    ) -> schemas.CaptionedSpeech:
        """Say a text, and send it whole, with the times of its words in seconds."""
        form = _check_format(body.response_format)
        found: list[dict[str, Any]] = []
        seconds, pieces = 0.0, []
        async with service.speak(body.order()) as stream:
            piece: Speech | None
            while piece := await first_piece(stream, request):
                found += words(piece, stream, seconds)
                seconds += piece.seconds
                pieces.append(piece)
            parts = audio_parts(_each(pieces), form, stream.spec.sample_rate)
            audio = b"".join([part async for part in parts])
        response.headers.update(_warnings(body))
        return schemas.CaptionedSpeech(
            audio=base64.b64encode(audio).decode(),
            audio_format=form,
            timestamps=[schemas.Word(**word) for word in found],
        )

    return router


async def _each(pieces: list[Speech]) -> Any:
    for piece in pieces:
        yield piece


def _check_format(name: str) -> str:
    if name not in MEDIA_TYPES:
        raise UnknownFormatError(
            f"{name} is not encoded here, as libsndfile has no encoder for it: ask for "
            f"{', '.join(MEDIA_TYPES)}"
        )
    return name


def _warnings(body: schemas.SpokenText) -> dict[str, str]:
    """Headers that tell what was ignored. Nothing that a client sent is in them."""
    if not body.instructions:
        return {}
    return {"X-MyXTTS-Warning": "instructions were ignored: use style, or SSML"}
