"""The replicas of a model: what each computes of a batch is added up over all of them.

Every replica is a process with one device and plain variables of its own. TensorFlow's
MultiWorkerMirroredStrategy connects the processes and adds up tensors; nothing else of it is used.
All replicas apply the same sums to the same variables, so they stay equal to the bit, and a
checkpoint of one of them is a checkpoint of the run.
"""

import contextlib
import hashlib
import json
import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.cluster.presence import Presence, WorkerLost
from myxtts.cluster.rendezvous import Worker
from myxtts.cluster.sums import pack, tree_sum, unpack
from myxtts.errors import UserError
from myxtts.monitoring.heartbeat import doing

logger = logging.getLogger(__name__)

# What each worker says of itself in every step: whether it was asked to end, how long it waited
# for its batch and how long it computed, in milliseconds.
REPORT = ("asked to end", "data_ms", "compute_ms")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
CONNECT_SECONDS = 300  # all workers have met before


class Replicas:
    """One replica: the sums over all are its own values. `Gang` is several."""

    rank, count = 0, 1

    @property
    def is_chief(self) -> bool:
        """Whether this one writes checkpoints, logs, validates and exports."""
        return self.rank == 0

    def name(self, rank: int) -> str:
        """A worker as messages name it."""
        return f"worker {rank}"

    def sum(self, tensors: Sequence[tf.Tensor], is_exact: bool = False) -> list[tf.Tensor]:
        """The sum of each tensor over all replicas, which all get; callable in a graph.

        An exact sum is `tree_sum` over the ranks: where the replicas have added up their own parts
        in the same way, its bits do not depend on their number.
        """
        return list(tensors)

    def exchange(self, values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The sum of a vector over all replicas, and what each said of itself [replicas, 3]."""
        return values, tf.zeros([1, len(REPORT)])

    def note(self, data_ms: float, is_asked_to_end: bool) -> None:
        """Say something of this worker in its next step."""

    def note_computed(self, milliseconds: tf.Tensor) -> None:
        """Say in the next step how long this one computed; called in a graph."""
        return  # AutoGraph warns of a body that is a docstring alone

    def barrier(self) -> None:
        """Wait for all others."""

    def of_chief(self, number: int) -> int:
        """The chief's number, on every replica."""
        return number

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Raise where another replica has other facts than the chief, naming them."""

    @contextlib.contextmanager
    def chief_first(self) -> Iterator[None]:
        """Let the chief do something before the others do: they find its files."""
        yield

    def at_step(self, step: int) -> None:
        """Let the others know how far this worker is."""


@contextlib.contextmanager
def joined(worker: Worker | None, folder: Path, timeout: float) -> Iterator[Replicas]:
    """Connect this worker with the others of a run; alone where there is no other."""
    if worker is None:
        yield ALONE
        return
    presence = Presence(folder, worker)
    with presence.watching():
        gang = Gang(worker, presence, timeout)
        with gang.explaining():
            yield gang


class Gang(Replicas):
    """The replicas of several workers; this process is one of them.

    A step that waits for the others longer than `timeout` seconds gives up. Where only the chief
    works and the others wait, there is no limit, as long as it shows signs of life.
    """

    def __init__(self, worker: Worker, presence: Presence, timeout: float):
        self.worker, self.rank, self.count = worker, worker.rank, worker.count
        self.presence = presence
        logger.info(
            "%s of %d, by %s: waiting for the others",
            worker.name(worker.rank),
            worker.count,
            worker.source,
        )
        self.presence.wait_for_all()
        logger.info("connecting; this worker ends where that takes more than %d s", CONNECT_SECONDS)
        _use_one_gpu(worker.local_rank)
        self._strategy = _connect(worker)
        self._limited = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)
        self._report = tf.Variable(tf.zeros([len(REPORT)]), trainable=False)

    def name(self, rank: int) -> str:
        return self.worker.name(rank)

    def sum(
        self, tensors: Sequence[tf.Tensor], is_exact: bool = False, is_limited: bool = True
    ) -> list[tf.Tensor]:
        options = self._limited if is_limited else None

        def add_up(*values: tf.Tensor) -> list[tf.Tensor]:
            # Tensors of this replica's own device: the strategy looks for it in their names.
            own = [tf.identity(value) for value in values]
            context = tf.distribute.get_replica_context()
            if not is_exact:
                return context.all_reduce(tf.distribute.ReduceOp.SUM, own, options)
            rows = context.all_gather(pack(own)[None], axis=0, options=options)
            return unpack(tree_sum(rows, self.count), own)

        return self._strategy.run(add_up, args=tuple(tensors))

    def exchange(self, values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        place = tf.one_hot(self.rank, self.count)[:, None]
        reports = tf.reshape(place * self._report[None, :], [-1])
        (both,) = self.sum([tf.concat([values, reports], axis=0)])
        size = tf.shape(values)[0]
        return both[:size], tf.reshape(both[size:], [self.count, len(REPORT)])

    def note(self, data_ms: float, is_asked_to_end: bool) -> None:
        self._report[:2].assign([float(is_asked_to_end), data_ms])

    def note_computed(self, milliseconds: tf.Tensor) -> None:
        self._report[2].assign(milliseconds)

    def barrier(self) -> None:
        self._sum_of(np.zeros(1, np.int64))

    def of_chief(self, number: int) -> int:
        return int(self._sum_of(np.array([number if self.is_chief else 0]))[0])

    def check_same(self, facts: Mapping[str, Any]) -> None:
        table = np.zeros([self.count, len(facts)], np.int64)
        table[self.rank] = [_hash(fact) for fact in facts.values()]
        table = self._sum_of(table)
        differing = {
            rank: [name for name, same in zip(facts, row == table[0], strict=True) if not same]
            for rank, row in enumerate(table)
        }
        lines = [
            f"{self.worker.name(rank)} differs from {self.worker.name(0)} in: {', '.join(names)}"
            for rank, names in differing.items()
            if names
        ]
        if lines:
            raise UserError("the workers do not train the same:\n  " + "\n  ".join(lines))

    @contextlib.contextmanager
    def chief_first(self) -> Iterator[None]:
        if not self.is_chief:
            with doing("waiting for the chief"):
                self.barrier()
        yield
        if self.is_chief:
            self.barrier()

    def at_step(self, step: int) -> None:
        self.presence.step = step

    @contextlib.contextmanager
    def explaining(self) -> Iterator[None]:
        """Turn the errors of a connection into one that says which worker is missing."""
        try:
            yield
        except (
            tf.errors.UnavailableError,
            tf.errors.DeadlineExceededError,
            tf.errors.AbortedError,
            tf.errors.CancelledError,
            tf.errors.InternalError,
        ) as error:
            if "ollective" not in str(error):
                raise
            self.presence.look()
            behind = "; ".join(self.presence.describe(rank) for rank in self.presence.slowest())
            raise WorkerLost(
                f"{self.worker.name(self.rank)} lost the others"
                + (f" (behind: {behind})" if behind else "")
                + ": start all workers again, and they resume from the last checkpoint"
            ) from error

    def _sum_of(self, array: np.ndarray) -> np.ndarray:
        """The sum of an array over all replicas, however long that takes."""
        add_up = tf.function(lambda value: self.sum([value], is_limited=False))
        return add_up(tf.constant(array))[0].numpy()


ALONE = Replicas()


def _connect(worker: Worker) -> tf.distribute.Strategy:
    """Connect this process with all others; waits for them."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(worker.addresses)}),
        task_type="worker",
        task_id=worker.rank,
        num_accelerators={"GPU": len(tf.config.get_visible_devices("GPU"))},
        rpc_layer="grpc",
    )
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    with _ending_after(CONNECT_SECONDS):
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
    # TensorFlow takes SIGTERM for itself, and would swallow it.
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return strategy


@contextlib.contextmanager
def _ending_after(seconds: int) -> Iterator[None]:
    """Let the system end this process where the block takes longer.

    TensorFlow keeps all of Python waiting while it connects: where a worker dies in that moment,
    no thread of ours could notice.
    """
    handler = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


def _use_one_gpu(place: int) -> None:
    """A worker has one device: of several GPUs it takes that of its place on this host."""
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return
    own = devices[place % len(devices)]
    tf.config.set_visible_devices(own, "GPU")
    tf.config.experimental.set_memory_growth(own, True)  # connecting opens it: then it is too late


def _hash(fact: Any) -> int:
    """63 bits of anything that JSON can write."""
    text = json.dumps(fact, sort_keys=True, default=str).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
