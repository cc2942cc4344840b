"""Ctrl-C: at any moment, in a terminal or in the background, it ends a program with exit code 130.

Python's own handler raises KeyboardInterrupt wherever the main thread is. An import of native code
may drop that exception, and a process that a script starts in the background has no handler at all.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from types import FrameType
from typing import Any

INTERRUPTED = 130
_AGAIN_S = 0.05
_IMPORT = "<frozen importlib._bootstrap>"


class _Handler:
    """Answers SIGINT; `base` is the frame of the program, above which imports count."""

    def __init__(self, base: FrameType):
        self.base = base
        self.terminal: int | None = None  # where to print, while nothing needs cleaning up
        self._timer: threading.Timer | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.terminal is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            with contextlib.suppress(OSError):
                os.write(self.terminal, b"interrupted\n")
            os._exit(INTERRUPTED)
        if self._is_importing(frame):
            self.ask_again()
            return
        raise KeyboardInterrupt

    def ask_again(self) -> None:
        """Send the signal again in a moment, when the import that would drop it may be over."""
        self._timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _is_importing(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self.base:
            if frame.f_code.co_filename == _IMPORT:
                return True
            frame = frame.f_back
        return False


_handler: _Handler | None = None


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt where it cannot be lost, whatever was set before."""
    global _handler
    if _handler is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _handler = _Handler(sys._getframe(2))
    before, unraisable = signal.signal(signal.SIGINT, _handler), sys.unraisablehook

    def resend_lost(lost: Any) -> None:
        """Python drops what is raised in a destructor or a callback: send the signal again."""
        if issubclass(lost.exc_type, KeyboardInterrupt) and _handler is not None:
            _handler.ask_again()
        else:
            unraisable(lost)

    sys.unraisablehook = resend_lost
    try:
        yield
    finally:
        _handler.stop()
        _handler = None
        sys.unraisablehook = unraisable
        if before is not None:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process on the spot, while nothing needs cleaning up."""
    handler = _handler
    if handler is None or handler.terminal is not None:
        yield
        return
    # A copy: TensorFlow is imported with stderr closed.
    handler.terminal = os.dup(2)
    try:
        yield
    finally:
        kept, handler.terminal = handler.terminal, None
        os.close(kept)


def run_program(module: str, function: str = "main", *arguments: Any) -> int:
    """Import a program and run it: Ctrl-C is answered from here on."""
    with handled():
        with ending_at_once():
            run = getattr(import_module(module), function)
        return run(*arguments)
