"""Keeping BLAS from spreading small products over all cores, where workers share them already."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def single_threaded_blas() -> AbstractContextManager:
    """Within this context NumPy's products use one thread: theirs fight over cores by spinning."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
