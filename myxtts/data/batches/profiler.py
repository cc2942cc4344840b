"""The hooks through which a profiler of the user's own hears of the cache."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

from myxtts.monitoring.monitor import PerformanceMonitor, get_performance_monitor

logger = logging.getLogger(__name__)

HOOKS = ("record_cache_hit", "record_cache_miss", "record_cache_error", "profile_operation")


class SilentProfiler:
    """Has every hook and does nothing."""

    def record_cache_hit(self) -> None:
        pass

    def record_cache_miss(self) -> None:
        pass

    def record_cache_error(self) -> None:
        pass

    def profile_operation(self, name: str) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


class GuardedProfiler:
    """Calls the hooks of a user's profiler until one raises; from then on it does nothing.

    The first error is logged as a warning, and no error reaches the data engine.
    """

    def __init__(self, profiler: Any):
        self._profiler, self._name = profiler, type(profiler).__name__

    def record_cache_hit(self) -> None:
        self._call("record_cache_hit", lambda: self._profiler.record_cache_hit())

    def record_cache_miss(self) -> None:
        self._call("record_cache_miss", lambda: self._profiler.record_cache_miss())

    def record_cache_error(self) -> None:
        self._call("record_cache_error", lambda: self._profiler.record_cache_error())

    @contextlib.contextmanager
    def profile_operation(self, name: str) -> Iterator[None]:
        """Time an operation; an error of the operation itself is raised as it is."""
        hook, stack = "profile_operation", contextlib.ExitStack()
        self._call(hook, lambda: stack.enter_context(self._profiler.profile_operation(name)))
        try:
            yield
        except BaseException as error:
            # Whatever `__exit__` answers, what the operation raised stays an error.
            found = (type(error), error, error.__traceback__)
            self._call(hook, lambda: stack.__exit__(*found), expected=error)
            raise
        self._call(hook, stack.close)

    def _call(
        self, hook: str, call: Callable[[], Any], expected: BaseException | None = None
    ) -> None:
        try:
            call()
        except Exception as error:
            if error is expected:
                return
            logger.warning(
                "the profiler %s raised %s: %s in %s and is not used any more",
                self._name,
                type(error).__name__,
                error,
                hook,
            )
            self._profiler = SilentProfiler()


def usable_profiler(profiler: Any) -> Any:
    """Return a profiler whose hooks never raise: the given one, guarded, the process's own where
    there is none, or one that does nothing where it lacks a hook."""
    if profiler is None:
        return get_performance_monitor()
    if type(profiler) is PerformanceMonitor:
        return profiler
    lacking = [hook for hook in HOOKS if not callable(getattr(profiler, hook, None))]
    if lacking:
        logger.warning(
            "the profiler %s lacks %s and is not used", type(profiler).__name__, ", ".join(lacking)
        )
        return SilentProfiler()
    return GuardedProfiler(profiler)
