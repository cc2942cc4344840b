"""The workers of a run on a Ray cluster: Ray finds places for them, and new ones when one dies."""

import contextlib
import logging
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import myxtts
from myxtts.cluster.presence import LOST
from myxtts.cluster.ray_connection import connected, last_line, resolve_address
from myxtts.errors import UserError
from myxtts.workflows.gang import (
    INTERRUPTED,
    supervise,
    without_option,
    words_of_starts,
    worker_environment,
)
from myxtts.workflows.ray_node import NodeWorker, Order, Place

logger = logging.getLogger(__name__)

# How long a cluster gets to make room: nodes that were preempted may come back.
PLACE_SECONDS = 300.0
ANSWER_SECONDS = 120.0
# A node may die while it is asked; one that lacks the package fails every time.
_ATTEMPTS = 3
_PROMPT_SECONDS = 5.0
_KILLED = -int(signal.SIGKILL)


def train_on_cluster(address: str, workers: str, words: Sequence[str], folder: Path) -> int:
    """Run a command that trains as so many workers of a Ray cluster; return its exit code."""
    count = _read_count(workers)
    own = without_option(without_option(words, "--cluster"), "--workers")
    starts = words_of_starts(own, folder)
    with connected(address, with_gpus=True) as ray:
        gang = RayGang(ray, resolve_address(address), count, folder)
        try:
            return supervise(lambda: gang.start(["-m", "myxtts.cli.main", *next(starts)]), folder)
        finally:
            gang.leave()


def _read_count(workers: str) -> int:
    if not workers:
        raise UserError("--cluster needs the number of workers, as in --cluster auto --workers 4")
    if not workers.isdecimal() or not int(workers):
        raise UserError(
            f"with --cluster, --workers is a number from 1 on, not {workers}: Ray chooses the hosts"
        )
    return int(workers)


class RayGang:
    """The places of a run's workers in a cluster; where it has GPUs, each worker gets one."""

    def __init__(self, ray: Any, address: str, count: int, folder: Path):
        self._ray, self.address, self.count = ray, address, count
        self.folder = folder.expanduser().absolute()
        # Once and for all: a run does not go on without GPUs because their nodes have gone.
        self._needs = {"CPU": 1, **({"GPU": 1} if ray.cluster_resources().get("GPU") else {})}
        self._group: Any = None
        self._actors: list[Any] = []

    def start(self, arguments: Sequence[str]) -> "list[RemoteWorker]":
        """Find places for all workers and start them there, with these arguments of Python."""
        places = self._find_places()
        addresses = [f"{place.host}:{place.port}" for _, place in places]
        hosts = Counter(place.host for _, place in places)
        started = []
        for rank, (actor, place) in enumerate(places):
            order = Order(
                arguments=tuple(arguments),
                folder=os.getcwd(),
                environment=_own_settings() | worker_environment(addresses, rank),
                threads=max(1, place.cores // hosts[place.host]),
                keeps_all_output=rank == 0,
            )
            actor.start.remote(order)
            started.append(RemoteWorker(self._ray, actor, f"worker {rank} ({addresses[rank]})"))
        logger.info("Ray placed %d workers: %s", self.count, ", ".join(addresses))
        return started

    def leave(self) -> None:
        """Give back every place; what still runs there is killed."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            for actor in self._actors:
                self._ray.kill(actor)
            if self._group is not None:
                self._ray.util.remove_placement_group(self._group)
        self._actors, self._group = [], None

    def _find_places(self) -> list[tuple[Any, Place]]:
        """The actors of all workers and where they are, those of one host next to each other."""
        for _ in range(_ATTEMPTS):
            self.leave()
            self._reserve()
            self._actors = [self._make_actor(number) for number in range(self.count)]
            try:
                places = self._ask_for_places()
                return sorted(zip(self._actors, places, strict=True), key=lambda one: one[1].host)
            except self._ray.exceptions.RayError as error:
                problem = last_line(error)
                logger.warning("a node of the cluster cannot run a worker: %s", problem)
        raise UserError(
            f"the Ray cluster at {self.address} cannot run {self.count} workers ({problem}): every "
            f"node needs myxtts {myxtts.__version__}"
        )

    def _reserve(self) -> None:
        """Have the cluster set resources for every worker aside, all or none."""
        # GPUs of one host are connected best; workers without GPUs would share its cores.
        strategy = "PACK" if "GPU" in self._needs else "SPREAD"
        bundles = [dict(self._needs) for _ in range(self.count)]
        self._group = self._ray.util.placement_group(bundles, strategy=strategy)
        if self._is_placed(_PROMPT_SECONDS):
            return
        logger.warning(
            "the Ray cluster at %s has room for %d of %d workers: waiting up to %.0f s for more",
            *(self.address, self._room(), self.count, PLACE_SECONDS),
        )
        if not self._is_placed(PLACE_SECONDS):
            needs = " and ".join(f"{number} {name}" for name, number in self._needs.items())
            raise UserError(
                f"the Ray cluster at {self.address} has room for {self._room()} of {self.count} "
                f"workers, each of which needs {needs}: add nodes, end what else runs there, or "
                "ask for fewer --workers; a run resumes with any number that divides its "
                "micro-batches"
            )

    def _is_placed(self, seconds: float) -> bool:
        """Wait for the reserved resources, in steps between which Ctrl-C is answered."""
        until = time.monotonic() + seconds
        while not self._group.wait(1):
            if time.monotonic() > until:
                return False
        return True

    def _room(self) -> int:
        """About how many workers fit into what nobody uses now."""
        free = self._ray.available_resources()
        return min(int(free.get(name, 0) // number) for name, number in self._needs.items())

    def _make_actor(self, number: int) -> Any:
        strategies = self._ray.util.scheduling_strategies
        where = strategies.PlacementGroupSchedulingStrategy(self._group, number)
        options = {"num_cpus": 1, "num_gpus": self._needs.get("GPU", 0), "max_restarts": 0}
        # One call waits for news while another sends a signal.
        remote = self._ray.remote(max_concurrency=4, **options)(NodeWorker)
        return remote.options(scheduling_strategy=where).remote()

    def _ask_for_places(self) -> list[Place]:
        with _marker(self.folder) as marker:
            seen = (myxtts.__version__, os.getcwd(), str(marker))
            asked = [actor.describe.remote(*seen) for actor in self._actors]
            places: list[Place] = self._ray.get(asked, timeout=ANSWER_SECONDS)
        problems = {f"  {place.host}: {one}" for place in places for one in place.problems}
        if problems:
            raise UserError(
                "these nodes of the cluster cannot train:\n"
                + "\n".join(sorted(problems))
                + f"\nEvery node needs myxtts {myxtts.__version__}, and the run folder, the corpus "
                "and its cache under the same paths on a file system that all of them share"
            )
        return places


class RemoteWorker:
    """A worker on some node, as `gang.supervise` sees it."""

    def __init__(self, ray: Any, actor: Any, name: str):
        self._ray, self._actor, self.name = ray, actor, name
        self._code: int | None = None
        self._signals: list[int] = []
        self._news = actor.news.remote()

    def poll(self) -> int | None:
        """The exit code, or None while it runs; shows what it has printed since."""
        if self._code is not None:
            return self._code
        # Not in the signal's handler, which may interrupt Ray anywhere.
        while self._signals:
            self._actor.send_signal.remote(self._signals.pop(0))
        while self._code is None and self._ray.wait([self._news], timeout=0)[0]:
            self._hear()
        return self._code

    def send_signal(self, number: int) -> None:
        self._signals.append(number)

    def kill(self) -> None:
        """End the actor, and with it the worker, whether or not its node still answers."""
        if self._code is None:
            self._ray.kill(self._actor)
            self._code = _KILLED

    def _hear(self) -> None:
        try:
            news = self._ray.get(self._news)
        except self._ray.exceptions.RayError as error:
            logger.warning("%s is gone, or its node: %s", self.name, last_line(error))
            self._code = _KILLED
            return
        for is_error, line in news.lines:
            stream = sys.stderr if is_error else sys.stdout
            stream.write(line)
            stream.flush()
        self._code = news.code
        if self._code is None:
            self._news = self._actor.news.remote()
        elif self._code not in (0, INTERRUPTED, LOST) and news.last_lines:
            said = "".join(f"\n  {line.rstrip()}" for line in news.last_lines)
            logger.warning("%s ended with exit code %d:%s", self.name, self._code, said)


def _own_settings() -> dict[str, str]:
    """The variables that settle something of MyXTTS, which workers on this machine would have."""
    return {name: x for name, x in os.environ.items() if name.startswith("MYXTTS_")}


@contextlib.contextmanager
def _marker(folder: Path) -> Iterator[Path]:
    """A file that only those can see who share the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / f".node-check-{secrets.token_hex(8)}"
    marker.touch()
    try:
        yield marker
    finally:
        marker.unlink(missing_ok=True)
