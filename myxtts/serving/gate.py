"""What every request passes first: who sends it, how large it is, and how long it takes."""

import asyncio
import contextlib
import hmac
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from myxtts.serving import errors
from myxtts.serving.limits import BODY_SECONDS, STALL_SECONDS, Limits
from myxtts.serving.metrics import Metrics

OPEN_PATHS = ("/", "/health", "/ready", "/docs", "/openapi.json", "/studio")
# Pages without anything of the user's, whose scripts a browser asks for without a key.
_OPEN_FOLDER = "/studio/static/"
# Recordings of hours, which only the studio takes; it writes them to the disk as they come.
STUDIO_API, _RECORDING_BYTES, _RECORDING_SECONDS = "/studio/api/", 2 << 30, 1800
# How much of a body that is too large is read before its connection is closed, and for how long.
_MOST_DISCARDED, _DISCARD_SECONDS = 64 << 20, 5.0
_SAFE = ("GET", "HEAD", "OPTIONS")
_CLOSE = {"Connection": "close"}
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Gate:
    """Answers what may not pass, and ends what takes too long.

    Browsers send the pages' requests of any site to this machine. Names of hosts and origins are
    therefore compared, so that no page but our own is answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        api_key: str | None = None,
        hosts: Sequence[str] | None = None,
    ):
        self._app, self._limits, self._metrics = app, limits, metrics
        self._key = api_key.encode() if api_key else None
        self._hosts = {*_LOCAL_NAMES, *hosts} if hosts is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        try:
            refused = self._refuse(scope)
            if refused is None:
                body = _Body(receive, *self._body_limits(scope))
                async with asyncio.timeout(self._limits.max_seconds):
                    await self._app(scope, body, answer)
            else:
                await refused(scope, receive, answer)
        except TimeoutError:
            await answer.fail(408, "the request took too long", scope)
        finally:
            path = getattr(scope.get("route"), "path", None)
            self._metrics.requests.add(path=path or "other", status=str(answer.status))

    def _refuse(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if self._hosts is not None and _without_port(headers.get("host", "")) not in self._hosts:
            message = "this server does not answer to that name: start it with --allow-host"
            return JSONResponse(errors.body(message, code="wrong_host"), 403)
        origin = headers.get("origin")
        is_foreign = origin is not None and not is_own_origin(origin, headers.get("host"))
        if is_foreign and scope["method"] not in _SAFE:
            message = "pages of other origins may not use this server"
            return JSONResponse(errors.body(message, code="wrong_origin"), 403)
        is_open = scope["path"] in OPEN_PATHS or scope["path"].startswith(_OPEN_FOLDER)
        if self._key and not is_open and not self._knows(headers):
            message = "the API key is missing or wrong: send it as Authorization: Bearer KEY"
            content = errors.body(message, code="invalid_api_key")
            return JSONResponse(content, 401, {"WWW-Authenticate": "Bearer"})
        return None

    def _knows(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        assert self._key is not None
        return scheme.lower() == "bearer" and hmac.compare_digest(
            key.strip().encode("latin-1"), self._key
        )

    def _body_limits(self, scope: Scope) -> tuple[int, float]:
        """The most bytes of a request's body, and the most seconds that it may take."""
        if scope["method"] == "PUT" and scope["path"].startswith(STUDIO_API):
            return _RECORDING_BYTES, _RECORDING_SECONDS
        content = Headers(scope=scope).get("content-type", "")
        is_upload = content.lower().startswith("multipart/form-data")
        spare = 64 << 10  # for the other fields
        most = self._limits.upload_bytes + spare if is_upload else self._limits.json_bytes
        return most, BODY_SECONDS


class _Answer:
    """Sends an answer, unless its client takes nothing of it for long; knows its status."""

    def __init__(self, send: Send):
        self._send = send
        self.status = 499  # where the client has left before

    @property
    def has_begun(self) -> bool:
        return self.status != 499

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        async with asyncio.timeout(STALL_SECONDS):
            await self._send(message)

    async def fail(self, status: int, message: str, scope: Scope) -> None:
        """Answer with an error, or cut off an answer that has begun."""
        if self.has_begun:
            raise ConnectionAbortedError(message)
        answer = JSONResponse(errors.body(message), status, _CLOSE)

        async def nothing() -> Message:
            return {"type": "http.disconnect"}

        await answer(scope, nothing, self)


class _Body:
    """Receives a request's body, no more of it and no slower than is allowed."""

    def __init__(self, receive: Receive, most: int, seconds: float):
        self._receive, self._left = receive, most
        self._is_whole = False
        self._until = asyncio.get_running_loop().time() + seconds

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the request came too slowly", _CLOSE) from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            await self._discard_rest(message)
            raise HTTPException(413, "the request is larger than is allowed", _CLOSE)
        self._is_whole = not message.get("more_body", False)
        return message

    async def _discard_rest(self, message: Message) -> None:
        """Take what still comes: who is cut off while sending does not read why."""
        left = _MOST_DISCARDED
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while message.get("more_body", False) and left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))


def is_own_origin(origin: str, host: str | None) -> bool:
    """Whether a page of an origin comes from the host that is asked."""
    try:
        return urlsplit(origin).netloc == host
    except ValueError:  # such as a bracket that is never closed
        return False


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()
