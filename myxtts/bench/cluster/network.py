"""How long two workers of this machine take to add up tensors, as training does it."""

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from myxtts.bench.cluster.figures import Network
from myxtts.bench.cluster.processes import run_together
from myxtts.cluster.rendezvous import Worker, free_ports
from myxtts.monitoring.cores import available_cores

WORKERS = 2
ROUNDS = 15
Shapes = tuple[tuple[int, ...], ...]


def measure_network(shapes: Shapes) -> Network:
    """Add up nothing, one tensor as large as all gradients, and the gradients themselves."""
    addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(WORKERS))
    with tempfile.TemporaryDirectory(prefix="myxtts-simulate-") as folder:
        arguments = [
            (Worker(rank, addresses, "simulate", rank), Path(folder), shapes)
            for rank in range(WORKERS)
        ]
        nothing, one, all_of_them = run_together(_add_up, arguments)[0]
    return fit(nothing, one, all_of_them, gradient_bytes(shapes))


def gradient_bytes(shapes: Shapes) -> int:
    return 4 * sum(math.prod(shape) for shape in shapes)


def fit(nothing: float, one: float, gradients: float, size: int) -> Network:
    """The ring that takes as long between two workers as these sums took.

    Between two, a sum is two messages and as many bytes as it has.
    """
    moved = max(1e-9, one - nothing)
    latency = nothing / 2
    messages = max(1.0, (gradients - moved) / nothing)
    # The counts of a batch are added up before its gradients are computed.
    return Network(size / moved, latency, messages + 1)


def _add_up(worker: Worker, folder: Path, shapes: Shapes) -> tuple[float, float, float]:
    """One of the workers: the median seconds of each sum."""
    os.environ |= {
        "TF_NUM_INTRAOP_THREADS": str(max(1, available_cores() // WORKERS)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",  # one GPU cannot be two workers
    }
    import tensorflow as tf

    from myxtts.cluster.replicas import joined

    size = gradient_bytes(shapes) // 4
    with joined(worker, folder, 120.0) as replicas:
        sums = [
            _timed(lambda tensors: replicas.sum(tensors), tensors)
            for tensors in (
                [tf.zeros([1])],
                [tf.zeros([size])],
                [tf.zeros(shape) for shape in shapes],
            )
        ]
        replicas.barrier()
    return sums[0], sums[1], sums[2]


def _timed(add_up: Callable, tensors: list) -> float:
    import tensorflow as tf

    function = tf.function(lambda: add_up(tensors)[0])
    function().numpy()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        function().numpy()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
