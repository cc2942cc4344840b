"""A real server on a free port, in a thread, with voices that need no training."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from myxtts.inference.synthesizer import Synthesizer
from myxtts.serving import wyoming
from myxtts.serving.app import build_app
from myxtts.serving.clones import Clones
from myxtts.serving.limits import Limits
from myxtts.serving.server import Server, make_config
from myxtts.serving.service import SpeechService
from myxtts.serving.voices import Served, Voices
from tests.helpers.fake_voice import FakeModel, fake_voice

SECONDS = 30  # for which anything is waited for
LANGUAGES = ("en", "fa")


class HeldModel(FakeModel):
    """Says nothing until it is let go; `asked` is set when it is first asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = threading.Event(), threading.Event()

    def synthesize(self, *said: Any) -> Any:
        self.asked.set()
        assert self.go.wait(SECONDS)
        return super().synthesize(*said)


@dataclass(frozen=True)
class Running:
    url: str
    port: int
    service: SpeechService
    wyoming: tuple[str, int]
    loaded: list[str]


def fake_synthesizer(model: FakeModel | None = None) -> Synthesizer:
    """A voice of NumPy alone, spoken by Griffin-Lim."""
    voice = fake_voice(LANGUAGES, model)
    voice.engine = "onnx"
    return Synthesizer(voice)


def served(*names: str) -> list[Served]:
    return [Served(name, Path(name), ("anna", "ben"), LANGUAGES, "onnx") for name in names]


@contextlib.contextmanager
def running(
    clones: Path,
    names: tuple[str, ...] = ("lj", "vctk"),
    model: FakeModel | None = None,
    hosts: tuple[str, ...] | None = None,
    api_key: str | None = None,
    studio: Path | None = None,
    **limits: int,
) -> Iterator[Running]:
    """Serve voices of some names until the `with` ends, with a studio if its folder is named."""
    loaded: list[str] = []
    address: list[tuple[str, int]] = []

    def load(path: str) -> Synthesizer:
        loaded.append(Path(path).name)
        return fake_synthesizer(model)

    @contextlib.asynccontextmanager
    async def beside(service: SpeechService):
        async with wyoming.serving("127.0.0.1", 0, service) as found:
            address.append(found)
            yield

    chosen = Limits(**limits)
    started = threading.Event()
    sock = socket.create_server(("127.0.0.1", 0))
    voices = Voices(served(*names), load, chosen.max_loaded)
    kept = Clones(clones, chosen.max_clones)
    app = build_app(voices, kept, chosen, api_key, hosts, beside, studio)
    server = Server(make_config(app, chosen), started.set)
    thread = threading.Thread(target=partial(asyncio.run, server.serve([sock])), daemon=True)
    thread.start()
    try:
        assert started.wait(SECONDS)
        port = sock.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        yield Running(url, port, app.state.service, address[0], loaded)
    finally:
        if model is not None and isinstance(model, HeldModel):
            model.go.set()
        server.should_exit = True
        thread.join(SECONDS)
        sock.close()
        assert not thread.is_alive()
