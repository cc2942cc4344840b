"""Processes that share out work, end at once when they are not wanted, and never outlive us."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Protocol, TypeVar

from myxtts.audio.threads import single_threaded_blas
from myxtts.config.config import DataConfig
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mmap import keep_freed_memory
from myxtts.monitoring.cores import available_cores

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)

# Starting a process costs about as much as this many shards of a small corpus.
FEW_TASKS = 4


def worker_count(data: DataConfig) -> int:
    """As many workers as are configured, but no more than there are cores."""
    return min(data.num_workers, available_cores())


class Task(Protocol[Made]):
    """Something to do, by whichever process."""

    def __call__(self) -> Made: ...

    def effort(self) -> float:
        """How long it takes, compared with others."""


class Pool(Protocol):
    """Whoever does tasks: processes of this machine, or a cluster."""

    def run(self, tasks: Sequence[Task[Result]]) -> Generator[Result, None, None]:
        """Yield results as they come; leaving early ends what is under way."""


class Workers:
    """A pool of processes, started when there is enough to share out; 0 means all cores."""

    def __init__(self, count: int = 0):
        self.count = min(count or available_cores(), available_cores())
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def run(self, tasks: Sequence[Callable[[], Result]]) -> Generator[Result, None, None]:
        """Yield results as they come; leaving early ends the processes at once."""
        if self.count <= 1 or len(tasks) < FEW_TASKS:
            with single_threaded_blas():
                for task in tasks:
                    yield task()
            return
        finished = False
        try:
            yield from self._share_out(tasks)
            finished = True
        except BrokenProcessPool as error:
            raise CacheError(
                "a worker process died, perhaps for want of memory; what was finished is kept: "
                "run the same command again, with a smaller --num-workers"
            ) from error
        finally:
            if not finished:
                self.stop()

    def stop(self) -> None:
        """End the workers at once; whatever they were writing has a temporary name."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)

    def _share_out(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[Result]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, initializer=_start_worker)
        # One task ahead of the workers: what was not started is not waited for on Ctrl-C.
        waiting, running = list(reversed(tasks)), set[Future]()
        while waiting or running:
            while waiting and len(running) < self.count + 1:
                with _deaf_to_ctrl_c(), _without_main():
                    running.add(self._pool.submit(waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


# A context that is not held would be left again as soon as it is garbage.
_held = contextlib.ExitStack()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started here inherit it: Ctrl-C is for us, and they are ended by us."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes need this package only, not the user's script, which may run unguarded."""
    main = sys.modules["__main__"]
    file, spec = main.__dict__.pop("__file__", None), main.__spec__
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


def _start_worker() -> None:
    keep_freed_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _held.enter_context(single_threaded_blas())


def _end_with_parent() -> None:
    """End this worker when the process that wanted its work was killed: nobody else would."""
    if parent := multiprocessing.parent_process():
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
