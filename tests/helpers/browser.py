"""A headless Chromium for tests, driven by its DevTools protocol through a pair of pipes."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60
_FLAGS = (
    "--headless",
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and answers on 4.
_START = """
import os, sys
for given, wanted in ((int(sys.argv[1]), 3), (int(sys.argv[2]), 4)):
    os.dup2(given, wanted)
    os.close(given)
os.execv(sys.argv[3], sys.argv[3:])
"""


def browser_path() -> str:
    """Return the path of a browser, or skip the calling test and say which ones would do."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH")


class Browser:
    """A browser with an empty profile of its own, until the `with` ends."""

    def __init__(self, *flags: str):
        self._flags = flags

    def __enter__(self) -> Self:
        path = browser_path()
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        (theirs_in, self._out), (self._in, theirs_out) = _pipe(), _pipe()
        self._stderr = open(Path(self._folder.name) / "stderr", "w+")
        command = [
            path,
            *_FLAGS,
            *self._flags,
            f"--user-data-dir={self._folder.name}/profile",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._received, self._last_id = b"", 0
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # ends it
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._in)
        self._stderr.close()
        self._folder.cleanup()

    def open(self, path: Path | str, width: int = 1200, dark: bool = False) -> "Tab":
        """Open a file or an address in a new tab of that width; return when it has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        url = path if isinstance(path, str) else path.resolve().as_uri()
        tab.load("Page.navigate", url=url)
        return tab

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come before it are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        text = memoryview(json.dumps(message).encode() + b"\0")
        with contextlib.suppress(BrokenPipeError):  # reading says what happened
            while text:
                text = text[os.write(self._out, text) :]
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._last_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self._in, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError(f"the browser does not answer; it said: {self._said()}")
            self._received += chunk
        text, _, self._received = self._received.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read()[-2000:]


class Tab:
    """An open page."""

    def __init__(self, browser: Browser, target: str, session: str):
        self._browser, self._target, self._session = browser, target, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def events(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all events of a kind so far."""
        return [
            event["params"]
            for event in self._browser.events
            if event["method"] == method and event.get("sessionId") == self._session
        ]

    def load(self, method: str, **params: Any) -> None:
        """Have the page loaded, or loaded again by `Page.reload`, and wait until it is."""
        before = len(self.events("Page.loadEventFired"))
        self.call(method, **params)
        while len(self.events("Page.loadEventFired")) == before:
            self._browser._receive(time.monotonic() + SECONDS)
        self.settle()

    @property
    def problems(self) -> list[str]:
        """What the console, the script and the log had to say: nothing, on a good page."""
        self.settle()
        said = [
            " ".join(str(part.get("value", part.get("description"))) for part in event["args"])
            for event in self.events("Runtime.consoleAPICalled")
        ]
        thrown = [
            event["exceptionDetails"].get("exception", {}).get("description", "exception")
            for event in self.events("Runtime.exceptionThrown")
        ]
        return said + thrown + [event["entry"]["text"] for event in self.events("Log.entryAdded")]

    @property
    def requests(self) -> list[str]:
        """The addresses of everything that was asked for, the page itself first."""
        self.settle()
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def settle(self) -> None:
        """Wait for two frames, in which what was asked for is drawn."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
        )

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width: int, height: int = 800) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.settle()

    def move_mouse(self, x: float, y: float) -> None:
        """Move the mouse to a place in the viewport."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def tap(self, x: float, y: float) -> None:
        """Touch a place in the viewport with a finger."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def click(self, selector: str) -> None:
        """Click on the middle of an element, after scrolling to it."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        button = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **button)
        self.settle()

    def press(self, key: str) -> None:
        """Press a key that writes nothing, such as ArrowRight."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)
        self.settle()

    def screenshot(self, path: Path) -> Path:
        """Save a picture of the viewport as PNG."""
        answer = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are none of those that the browser expects."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high
