"""Functions in new processes: TensorFlow reads some settings once, and memory is never clean."""

import logging
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from myxtts.errors import UserError


def run_together(function: Callable, arguments: Sequence[tuple]) -> list[Any]:
    """Call a function with each of several arguments at once, each in a new process."""
    context = multiprocessing.get_context("spawn")
    is_verbose = logging.getLogger("myxtts").isEnabledFor(logging.INFO)
    pool = ProcessPoolExecutor(len(arguments), context, None if is_verbose else _be_silent)
    try:
        jobs = [pool.submit(function, *one) for one in arguments]
        return [job.result() for job in jobs]
    except BrokenProcessPool as error:
        raise UserError(
            "a process that measures was killed, as the kernel does where memory runs out: try a "
            "smaller --batch-size or more --micro-batches (--verbose shows its last words)"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_apart(function: Callable, *arguments: Any) -> Any:
    """Call a function in a new process."""
    return run_together(function, [arguments])[0]


def _be_silent() -> None:
    """TensorFlow writes to stderr before its log level is set; errors come back as exceptions."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
