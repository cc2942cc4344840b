"""The application: all routes over one service, behind the gate."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

import myxtts
from myxtts.serving import catalog, errors, schemas, speech
from myxtts.serving.clones import Clones
from myxtts.serving.gate import Gate
from myxtts.serving.limits import Limits
from myxtts.serving.metrics import Metrics
from myxtts.serving.service import SpeechService
from myxtts.serving.voices import Voices

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
# The page has its script and its style in itself, and asks nobody else for anything.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
_POLICY += "connect-src 'self'; media-src 'self' blob:; img-src data:; base-uri 'none'; "
_POLICY += "form-action 'none'; frame-ancestors 'none'"
_PAGE_HEADERS = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}

# Starts something next to the routes, such as another server, for as long as they are served.
Beside = Callable[[SpeechService], contextlib.AbstractAsyncContextManager[Any]]


def build_app(
    voices: Voices,
    clones: Clones,
    limits: Limits,
    api_key: str | None = None,
    hosts: Sequence[str] | None = None,
    beside: Beside | None = None,
    studio: Path | None = None,
) -> FastAPI:
    """The application over voices, of which the first is loaded before it is ready.

    `hosts` are the names, besides those of this machine, that requests may address; None is any.
    With the folder of a `studio` it has that too, in place of the page.
    """
    metrics = Metrics()
    service = SpeechService(voices, clones, limits, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(service.queue.close)
            async with voices.use(voices.served[0]):
                pass
            if beside is not None:
                await stack.enter_async_context(beside(service))
            if studio is not None:
                await stack.enter_async_context(app.state.studio.voices.watching())
            app.state.is_ready = True
            yield
            app.state.is_ready = False

    app = FastAPI(
        title="MyXTTS",
        version=myxtts.__version__,
        description="Speech as OpenAI's API offers it, by voices of MyXTTS.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # an answer would repeat the host that the client has named
    )
    app.state.is_ready, app.state.service = False, service
    errors.install(app)
    app.include_router(speech.build_router(service))
    app.include_router(catalog.build_router(service))
    if studio is not None:
        from myxtts.serving.studio.studio import install as install_studio

        app.state.studio = install_studio(app, service, studio)
    _add_status(app, metrics)
    app.add_middleware(Gate, limits=limits, metrics=metrics, api_key=api_key, hosts=hosts)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _add_status(app: FastAPI, metrics: Metrics) -> None:
    folder = files("myxtts.serving")
    for path, name in (("/", "page.html"), ("/docs", "docs.html")):
        page = folder.joinpath(name).read_text(encoding="utf-8")
        answer = HTMLResponse(page, headers=_PAGE_HEADERS)
        app.get(path, response_class=HTMLResponse, include_in_schema=False)(_returning(answer))

    @app.get("/health", tags=["status"])
    async def get_health() -> schemas.Health:
        """Whether the server runs."""
        return schemas.Health(version=myxtts.__version__)

    @app.get("/ready", tags=["status"], responses={503: {"model": schemas.Readiness}})
    async def get_ready(response: Response) -> schemas.Readiness:
        """Whether it speaks: its first voice is loaded, and it is not about to stop."""
        if not app.state.is_ready:
            response.status_code = 503
        return schemas.Readiness(status="ready" if app.state.is_ready else "loading")

    @app.get(
        "/metrics",
        tags=["status"],
        response_class=PlainTextResponse,
        responses=schemas.problems(401, 403),
    )
    async def get_metrics() -> Response:
        """Counts and times for Prometheus."""
        return Response(metrics.text(), media_type=_PROMETHEUS)


def _returning(answer: Response) -> Callable[[], Any]:
    async def show_page() -> Response:
        return answer

    return show_page


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document. Wrong requests are answered with 400, as OpenAI does, never 422."""
    if not app.openapi_schema:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in found["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
