"""A Ray cluster on this machine, small enough for a busy one."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OBJECT_STORE_BYTES = 80_000_000


def start_cluster() -> Any:
    """A cluster of one node with two cores, whose processes can import the tests."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with _tests_on_the_path():
        node = {"include_dashboard": False, **options(2)}
        return Cluster(initialize_head=True, head_node_args=node)


def add_node(cluster: Any, cores: int) -> Any:
    """Another node, whose processes can import the tests too."""
    with _tests_on_the_path():
        return cluster.add_node(**options(cores))


@contextlib.contextmanager
def _tests_on_the_path() -> Iterator[None]:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def options(cores: int) -> dict[str, int]:
    """Of another node."""
    return {"num_cpus": cores, "object_store_memory": OBJECT_STORE_BYTES}
