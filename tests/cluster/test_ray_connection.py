"""Which Ray cluster is meant, and what is said where it is none."""

import socket
import sys

import pytest

from myxtts.cluster import ray_connection
from myxtts.cluster.ray_connection import connected, last_line, resolve_address
from myxtts.errors import UserError


@pytest.mark.parametrize("address", ["", "somewhere", "host:", ":6379", "http://host:8265", "a:b"])
def test_an_address_that_is_none_is_rejected(address, monkeypatch):
    monkeypatch.setattr(ray_connection, "import_ray", lambda: FakeRay)
    with pytest.raises(UserError, match=r"write auto, HOST:PORT or ray://HOST:PORT"):
        connected(address).__enter__()


class FakeRay:
    """Not connected, and never to be."""

    is_initialized = staticmethod(lambda: False)


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_where_nothing_listens_there_is_no_cluster(prefix, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"{prefix}127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(ray_connection, "import_ray", lambda: FakeRay)
    with pytest.raises(UserError, match=f"there is no Ray cluster at {address} .*refused"):
        connected(address).__enter__()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[cluster\]'"):
        connected("auto").__enter__()


def test_auto_is_the_address_of_the_environment_or_this_machine(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert resolve_address("auto") == "local"
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert resolve_address("auto") == "head:6379"
    assert resolve_address("other:1") == "other:1"


def test_of_a_page_long_error_the_last_line_is_shown():
    assert last_line(RuntimeError("a\n  b\n")) == "b"
    assert last_line(RuntimeError()) == "RuntimeError"
