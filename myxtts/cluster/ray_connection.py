"""A connection with a Ray cluster, which is joined, or started for the cores of this machine."""

import contextlib
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores

AUTO, LOCAL, CLIENT = "auto", "local", "ray://"
CONNECT_SECONDS = 10.0
# Data go through the file system, so next to nothing is stored in it; less than 75 MB is refused.
_OBJECT_STORE_BYTES = 100_000_000


def resolve_address(address: str) -> str:
    """Where a cluster is; `auto` is the one that RAY_ADDRESS names, or else one to start here."""
    return (os.environ.get("RAY_ADDRESS") or LOCAL) if address == AUTO else address


@contextlib.contextmanager
def connected(address: str = AUTO, *, with_gpus: bool = False) -> Iterator[Any]:
    """The module `ray`, connected; a cluster that was started is shut down, a joined one stays."""
    ray: Any = import_ray()
    if ray.is_initialized():
        yield ray
        return
    connect(ray, resolve_address(address), with_gpus)
    try:
        yield ray
    finally:
        ray.shutdown()


def last_line(error: BaseException) -> str:
    """What an error says in the end: those of Ray may be a page long."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


def import_ray() -> ModuleType:
    """Ray, or an error that names the extra."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # It is reachable, or we would not try: 40 s each, of which there would be twenty.
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "2")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise UserError(
            f"--cluster needs Ray ({error}): install it with pip install 'myxtts[cluster]'"
        ) from error
    return ray


def connect(ray: Any, address: str, with_gpus: bool = False) -> None:
    """Start a cluster on this machine, with its GPUs or without, or join one; no chatter."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options |= {"num_cpus": available_cores(), "include_dashboard": False}
        options["num_gpus"] = None if with_gpus else 0  # None: Ray counts them
        options["object_store_memory"] = _OBJECT_STORE_BYTES
        options["_node_ip_address"] = "127.0.0.1"  # nothing of it is to be reached from elsewhere
    else:
        _check_reachable(address)
    try:
        with _own_sigterm(), warnings.catch_warnings(action="ignore"):
            ray.init(address, **options)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise UserError(
            f"cannot {'start' if address == LOCAL else 'join'} a Ray cluster at {address}: "
            f"{last_line(error)}. HOST:PORT is joined from one of its nodes, ray://HOST:PORT from "
            "anywhere; both need the cluster's versions of Ray and Python"
        ) from error


def _check_reachable(address: str) -> None:
    """Ask for a connection, because Ray itself would wait for minutes."""
    host, _, port = address.removeprefix(CLIENT).partition("/")[0].rpartition(":")
    if not host or not port.isdecimal() or "://" in host:
        raise UserError(f"--cluster {address}: write auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"there is no Ray cluster at {address} ({error}): start one there with "
            "`ray start --head`, or name another address"
        ) from error


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Undo what Ray does to the handler of a signal that is none of its business."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
