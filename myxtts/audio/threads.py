"""Keeping BLAS from spreading small products over all cores, where workers share them already."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_guard = threading.Lock()
_holders = 0
_limit = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Within this context NumPy's products use one thread: more would fight over cores by spinning.

    The setting is the process's own, so contexts that overlap share it: the last to leave
    restores what the first one found.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _holders, _limit
    with _guard:
        if _holders == 0:
            _limit = _setter().submit(_limited).result()
        _holders += 1


def _leave() -> None:
    global _holders
    with _guard:
        _holders -= 1
        if _holders == 0:
            _setter().submit(_limit.restore_original_limits).result()


def _limited() -> Any:
    # Looked for each time: SciPy's own BLAS is loaded when it is first needed.
    return ThreadpoolController().limit(limits=1, user_api="blas")


@cache
def _setter() -> ThreadPoolExecutor:
    """The one thread that sets the limit: threadpoolctl works only in the first that does."""
    return ThreadPoolExecutor(1, thread_name_prefix="blas-limit")
