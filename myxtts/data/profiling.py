"""The hooks through which a profiler of the user's own hears of the cache."""

import contextlib
import logging
from typing import Any

from myxtts.monitoring.monitor import get_performance_monitor

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


def usable_profiler(profiler: Any) -> Any:
    """Return the profiler itself, the process's own where there is none, or one that does nothing
    where it lacks a hook."""
    if profiler is None:
        return get_performance_monitor()
    lacking = [hook for hook in HOOKS if not callable(getattr(profiler, hook, None))]
    if lacking:
        logger.warning(
            "the profiler %s lacks %s and is not used", type(profiler).__name__, ", ".join(lacking)
        )
        return SilentProfiler()
    return profiler
