"""Tasks on a Ray cluster, which is started for the cores of this machine or joined."""

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from myxtts.audio.threads import single_threaded_blas
from myxtts.cluster.ray_connection import AUTO, connect, import_ray, last_line, resolve_address
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mmap import keep_freed_memory
from myxtts.data.store.workers import Task

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

PROBE_SECONDS = 120.0
WARN_SECONDS = 30.0
_Said = list[tuple[str, str]]


class RayWorkers:
    """The cores of a cluster; `auto` joins the one that RAY_ADDRESS names, or starts one here."""

    def __init__(self, address: str = AUTO):
        self.address = resolve_address(address)
        self._ray: Any = None
        self._is_ours = False  # the connection, and the cluster itself where it is local

    def __enter__(self) -> "RayWorkers":
        self._ray = import_ray()
        self._connect()
        return self

    def __exit__(self, *error: object) -> None:
        self._disconnect()

    def run(self, tasks: Sequence[Task[Result]]) -> Generator[Result, None, None]:
        """Yield results as they come, the longest tasks begun first; leaving early ends them."""
        self._connect()
        remote = self._ray.remote(num_cpus=1, max_retries=3)(_run_task)
        waiting = sorted(tasks, key=lambda task: task.effort())
        running: list[Any] = []
        cores = self.cores
        finished = False
        try:
            while waiting or running:
                while waiting and len(running) < 2 * max(1, cores):
                    running.append(remote.remote(waiting.pop()))
                done, running = self._ray.wait(running, timeout=WARN_SECONDS)
                for one in done:
                    yield self._result(one)
                before, cores = cores, self.cores
                if cores < before or not cores:
                    said = "%d of %d cores of the cluster are left: what was lost is made again"
                    logger.warning(said, cores, before)
            finished = True
        finally:
            # Tasks end with whoever wanted them. Not by `ray.cancel`: in Ray 2.60 that aborts this
            # process where a task ends at the same moment.
            if not finished:
                self._disconnect()

    @property
    def cores(self) -> int:
        """The cores of all nodes that are alive."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def run_on_every_node(self, call: Callable[[], Result]) -> "dict[str, Result | str]":
        """What a function returns on each node that has cores, or why it could not run there."""
        remote = self._ray.remote(num_cpus=0, max_retries=0)(_call)
        asked = {}
        for node in self._ray.nodes():
            if node["Alive"] and node["Resources"].get("CPU"):
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                    node["NodeID"], soft=False
                )
                asked[node["NodeID"], name] = remote.options(scheduling_strategy=strategy).remote(
                    call
                )
        return {name: self._answer(one) for (_, name), one in asked.items()}

    def _answer(self, asked: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(asked, timeout=PROBE_SECONDS)
        except errors.GetTimeoutError:
            return f"it did not answer within {PROBE_SECONDS:.0f} s"
        except errors.RayError as error:
            return f"myxtts cannot be run there ({last_line(error)})"

    def _result(self, finished: Any) -> Any:
        errors = self._ray.exceptions
        try:
            result, said = self._ray.get(finished)
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayError as error:
            raise CacheError(
                f"the cluster could not make a shard ({last_line(error)}); what was finished is "
                "kept: run the same command again"
            ) from error
        for name, message in said:
            logging.getLogger(name).warning("%s", message)
        return result

    def _connect(self) -> None:
        if not self._ray.is_initialized():
            connect(self._ray, self.address)
            self._is_ours = True

    def _disconnect(self) -> None:
        """Leave a cluster that was joined, which stays, or end the one that was started here.

        Of a connection that others had made, tasks under way go on to the end of their shards.
        """
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False


def _run_task(task: Task[Result]) -> tuple[Result, _Said]:
    """What a node does: a task, on one core; its warnings come back with the result."""
    keep_freed_memory()
    with _collected_warnings() as said, single_threaded_blas():
        return task(), said


def _call(function: Callable[[], Result]) -> Result:
    return function()


@contextlib.contextmanager
def _collected_warnings() -> Iterator[_Said]:
    said: _Said = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append((record.name, record.getMessage()))  # type: ignore
    package = logging.getLogger("myxtts")
    package.addHandler(handler)
    try:
        yield said
    finally:
        package.removeHandler(handler)
