"""Errors as OpenAI's clients read them: {"error": {message, type, param, code}}."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from myxtts.errors import UserError
from myxtts.serving.clones import NameTakenError, UnknownCloneError
from myxtts.serving.fields import field_of
from myxtts.serving.queue import QueueFullError, StoppedError
from myxtts.serving.service import TooLongError, UnknownModelError, UnknownVoiceError
from myxtts.text.errors import TextError

logger = logging.getLogger(__name__)

_GONE = 499  # no status that anybody receives
INVALID, SERVER, BUSY = "invalid_request_error", "server_error", "rate_limit_error"
_LONGEST = 1000


class ClientLeftError(Exception):
    """Nobody reads the answer any more."""


class UnknownFormatError(UserError):
    """A format that speech cannot be written in here."""


# The status of an error that a client can fix, the parameter and the code.
_KINDS: tuple[tuple[type[Exception], int, str | None, str | None], ...] = (
    (UnknownModelError, 404, "model", "model_not_found"),
    (UnknownVoiceError, 400, "voice", "voice_not_found"),
    (UnknownFormatError, 400, "response_format", "format_not_supported"),
    (TooLongError, 400, "input", "string_above_max_length"),
    (NameTakenError, 409, "name", "name_taken"),
    (UnknownCloneError, 404, "id", "voice_not_found"),
    (TextError, 400, "input", None),
    (UserError, 400, None, None),
)


def describe(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the body of an answer that reports an error."""
    if isinstance(error, QueueFullError):
        return 429, body(str(error), BUSY, code="queue_full")
    if isinstance(error, StoppedError):
        return 503, body(str(error), SERVER, code="stopping")
    for kind, status, param, code in _KINDS:
        if isinstance(error, kind):
            named = param or (field_of(error) if isinstance(error, UserError) else None)
            return status, body(str(error), INVALID, named, code)
    logger.error("a request failed", exc_info=error)
    return 500, body("the server failed: its log says how", SERVER)


def body(
    message: str, kind: str = INVALID, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """What is wrong, in OpenAI's shape."""
    message = message.encode("utf-8", "replace").decode()[:_LONGEST]
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(error: Exception) -> JSONResponse:
    """An error as an answer."""
    status, content = describe(error)
    headers = {}
    if isinstance(error, QueueFullError):
        headers["Retry-After"] = str(error.retry_after)
    return JSONResponse(content, status, headers)


def install(app: FastAPI) -> None:
    """Have an app answer every error in this shape."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(_invalid(error), 400)

    @app.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> JSONResponse:
        content = body(str(error.detail), INVALID if error.status_code < 500 else SERVER)
        return JSONResponse(content, error.status_code, error.headers)

    @app.exception_handler(ClientLeftError)
    async def left(request: Request, error: ClientLeftError) -> Response:
        return Response(status_code=_GONE)

    for kind in (UserError, QueueFullError, StoppedError, Exception):
        app.exception_handler(kind)(_handle)


def _invalid(error: RequestValidationError) -> dict[str, Any]:
    """What is wrong with the first such field: of several kinds, as that which fits it best."""
    first, *others = error.errors()
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "it cannot be read")
        return body(f"the body is no JSON: {reason}", INVALID, None, first["type"])
    field = first["loc"][:2]
    same = [first, *(one for one in others if one["loc"][:2] == field)]
    best = max(same, key=lambda one: len(one["loc"]))
    param = str(field[1]).encode("utf-8", "replace").decode()[:100] if len(field) > 1 else None
    message = f"{param}: {best['msg']}" if param else best["msg"]
    return body(message, INVALID, param, best["type"])


async def _handle(request: Request, error: Exception) -> JSONResponse:
    return answer(error)
