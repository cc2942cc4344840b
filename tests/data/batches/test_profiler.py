"""A profiler of the user's own: what it hears, and what happens when it raises."""

import contextlib
import logging

import pytest

from myxtts.data.batches.profiler import usable_profiler


class Profiler:
    """Notes what it is told; the hook named `broken` raises."""

    def __init__(self, broken: str = ""):
        self.broken = broken
        self.heard: list[str] = []

    def record_cache_hit(self):
        self._hear("record_cache_hit")

    def record_cache_miss(self):
        self._hear("record_cache_miss")

    def record_cache_error(self):
        self._hear("record_cache_error")

    @contextlib.contextmanager
    def profile_operation(self, name):
        self._hear("profile_operation")
        try:
            yield
        finally:
            self._hear("leave")

    def _hear(self, what: str):
        self.heard.append(what)
        if what == self.broken:
            raise RuntimeError("no room for figures")


def use(profiler) -> int:
    """Call every hook twice, and count the operations that were done."""
    done = 0
    for _ in range(2):
        with profiler.profile_operation("open_cache"):
            done += 1
        profiler.record_cache_hit()
        profiler.record_cache_miss()
        profiler.record_cache_error()
    return done


def test_a_sound_profiler_hears_everything():
    own = Profiler()
    assert use(usable_profiler(own)) == 2
    once = ["profile_operation", "leave"]
    once += ["record_cache_hit", "record_cache_miss", "record_cache_error"]
    assert own.heard == 2 * once


@pytest.mark.parametrize(
    "broken", ["profile_operation", "leave", "record_cache_hit", "record_cache_error"]
)
def test_a_profiler_that_raises_is_reported_once_and_replaced(broken, caplog):
    own = Profiler(broken)
    with caplog.at_level(logging.WARNING):
        assert use(usable_profiler(own)) == 2
    (message,) = caplog.messages
    hook = "profile_operation" if broken == "leave" else broken
    assert message == (
        f"the profiler Profiler raised RuntimeError: no room for figures in {hook} "
        "and is not used any more"
    )
    assert own.heard.count(broken) == 1 and own.heard[-1] == broken


@pytest.mark.parametrize("broken", ["", "leave"])
def test_an_error_of_the_profiled_operation_stays_that_error(broken):
    with (
        pytest.raises(KeyError, match="'mel'"),
        usable_profiler(Profiler(broken)).profile_operation("open_cache"),
    ):
        raise KeyError("mel")


def test_a_profiler_cannot_hide_an_error_of_the_operation():
    class Forgiving(Profiler):
        def profile_operation(self, name):
            return contextlib.suppress(KeyError)

    with pytest.raises(KeyError), usable_profiler(Forgiving()).profile_operation("open_cache"):
        raise KeyError("mel")
