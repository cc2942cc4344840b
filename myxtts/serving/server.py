"""The server itself: sockets, signals, and what it says when it starts."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from myxtts.errors import UserError
from myxtts.serving import wyoming
from myxtts.serving.app import build_app
from myxtts.serving.clones import Clones
from myxtts.serving.limits import HEADER_SECONDS, SHUTDOWN_SECONDS, Limits
from myxtts.serving.settings import ServerSettings, is_loopback
from myxtts.serving.voices import Load, Voices, read_served

if TYPE_CHECKING:
    from myxtts.serving.studio.corpora import Corpora

logger = logging.getLogger(__name__)

_KEEP_ALIVE_SECONDS = 30
_LARGEST_HEAD = 32 << 10  # bytes
# Each turn of the loop accepts so many at most. A connection that is too many is closed some turns
# later: with those that may stay, they are fewer than the 1,024 files that a process usually has.
_ACCEPTED_AT_ONCE = 64
_WAITING = 1024  # connections that the system keeps until they are accepted


def serve(settings: ServerSettings, load: Load, started: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `started` is told the address once speech can be asked for."""
    limits = settings.limits
    voices = Voices(read_served(settings.voices), load, limits.max_loaded)
    sock = _listen(settings.host, settings.port)
    beside = partial(wyoming.serving, *settings.wyoming) if settings.wyoming else None
    app = build_app(
        voices,
        Clones(settings.clones, limits.max_clones),
        limits,
        settings.api_key,
        settings.hosts if settings.hosts or is_loopback(settings.host) else None,
        beside,
        settings.studio,
    )
    if settings.demo:
        begin_demo(app.state.studio.corpora)
    with contextlib.closing(sock):
        server = Server(make_config(app, limits), partial(started, _address(sock)))
        asyncio.run(server.serve([sock]))


def begin_demo(corpora: "Corpora") -> None:
    """Have the built-in corpus made in a studio without any, unless an earlier start does so."""
    if corpora.all():
        return
    try:
        corpora.make_demo()
    except HTTPException as error:
        logger.info("the built-in corpus is not begun: %s", error.detail)


class Server(uvicorn.Server):
    """Calls a function when it is ready."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]):
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(_WAITING)  # asyncio lets no more wait than it accepts at once
        if self.started and not self.should_exit:
            self._tell()


def make_config(app: Any, limits: Limits) -> uvicorn.Config:
    """How uvicorn serves an app: quietly, and with limits on connections and heads."""
    return uvicorn.Config(
        app,
        http=partial(GuardedProtocol, limits.max_connections),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        backlog=_ACCEPTED_AT_ONCE,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=_LARGEST_HEAD,
    )


class GuardedProtocol(H11Protocol):
    """Closes connections that are too many, or whose request does not arrive."""

    def __init__(self, most_connections: int, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._most_connections = most_connections
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most_connections:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Give a request that has begun some seconds to have its head complete."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _listen(host: str, port: int) -> socket.socket:
    """A socket on an address; taken before the voices are loaded, so that what is wrong shows."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(_WAITING)
        except OSError:
            sock.close()
            raise
    except (OSError, OverflowError) as error:
        raise UserError(
            f"cannot listen on {host}, port {port} ({error}): choose others with --host and --port"
        ) from error
    return sock


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
