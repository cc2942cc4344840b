"""One BLAS thread while workers share the cores, and the old number afterwards."""

import threading

import numpy as np  # noqa: F401  (loads the library whose threads are counted)
from threadpoolctl import threadpool_info

from myxtts.audio.threads import single_threaded_blas


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_contexts_that_overlap_restore_the_number_of_threads_last():
    before = blas_threads()
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_any_thread_may_ask_for_it():
    """A cache is filled in the background, after other threads have set the limit."""

    def ask() -> None:
        with single_threaded_blas():
            seen.append(blas_threads())

    seen = []
    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert seen == [{1}, {1}]
