"""The stages of a workflow: each is announced when it begins, and timed."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

# Called with a line for the user while a workflow runs; the commands print it.
Announce = Callable[[str], None]


class Stages:
    """Measures the seconds of each stage, and announces its start."""

    def __init__(self, announce: Announce | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.announce = announce

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        if self.announce:
            self.announce(f"== {name}")
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began

    def describe(self) -> str:
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        return f"seconds: {stages}; {sum(self.seconds.values()):.1f} in all"
