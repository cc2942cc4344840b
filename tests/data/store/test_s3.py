"""The same against a real S3 API on this machine, where there is one."""

import importlib.util
import threading

import numpy as np
import pytest

from tests.helpers.s3_server import BUCKET, find_server, s3_server

if not any(importlib.util.find_spec(name) for name in ("s3fs", "obstore")):
    pytest.skip("no client of S3: neither s3fs nor obstore", allow_module_level=True)
if find_server() is None:
    pytest.skip("no server of S3: pipx install 'moto[server]'", allow_module_level=True)

from myxtts.data.store import remote as remotes
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.remote import MissingObject, Remote
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.view import ColumnData, StoreView

COLUMNS = (Column("mel", "float16", 80),)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def client(server, monkeypatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    _forget_clients()


def _forget_clients() -> None:
    """Clients are kept by fsspec, with the credentials that they were made with."""
    kind = remotes._file_system("s3", "s3://x").__class__
    kind.clear_instance_cache()


def fill(tmp_path, name: str) -> tuple[MirroredStore, np.ndarray]:
    store = MirroredStore(tmp_path / "maker", COLUMNS, {}, remote=Remote(f"s3://{BUCKET}/{name}"))
    store.create()
    mels = np.random.default_rng(0).normal(size=(3, 40, 80)).astype(np.float16)
    for number, mel in enumerate(mels):
        store.write_shard([Row(str(number), 0, 0, {"mel": mel})], [(str(number), 0)])
    return store, mels


def mirrored(tmp_path, name: str) -> MirroredStore:
    store = MirroredStore(tmp_path / "mirror", COLUMNS, {}, remote=Remote(f"s3://{BUCKET}/{name}"))
    store.pull(store.remote.objects())
    return store


def read(store: MirroredStore) -> dict[str, np.ndarray]:
    view = StoreView(store)
    data, starts = ColumnData(view, COLUMNS[0]).array, view.starts(COLUMNS[0]).tolist()
    return {name: data[at : at + 40] for name, at in zip(view.ids, starts, strict=True)}


def test_what_is_uploaded_is_read_elsewhere_and_only_once(server, tmp_path):
    _, mels = fill(tmp_path, "round")
    store = mirrored(tmp_path, "round")
    found = read(store)
    for number, mel in enumerate(mels):
        np.testing.assert_array_equal(found[str(number)], mel)
    before = server.requests()
    read(store)
    assert server.requests() == before
    index = store.shards()[0]
    rows = store.read_rows(index, np.array([0]))
    np.testing.assert_array_equal(rows[0]["mel"], mels[int(index.ids[0])])
    assert store.verify() == []


def test_a_shard_is_dropped(server, tmp_path):
    store, _ = fill(tmp_path, "drop")
    store.drop(store.shards()[0].name)
    assert sorted(name.partition(".")[2] for name in store.remote.objects()) == [
        *("index", "index", "json", "mel", "mel")
    ]


def test_a_flipped_bit_is_named(server, tmp_path):
    store, _ = fill(tmp_path, "flip")
    name = f"{store.shards()[0].name}.mel"
    content = bytearray(store.remote.read(name))
    content[1000] ^= 4
    store.remote.write(name, bytes(content))
    with pytest.raises(CacheError, match=f"s3://{BUCKET}/flip/{name}: damaged utterances"):
        read(mirrored(tmp_path, "flip"))


def test_a_bucket_that_does_not_exist_is_named(tmp_path):
    store = MirroredStore(tmp_path / "none", COLUMNS, {}, remote=Remote("s3://no-such-bucket/lj"))
    with pytest.raises(MissingObject, match="s3://no-such-bucket/lj.*Check the name of the bucket"):
        store.create()
    with pytest.raises(MissingObject, match="s3://no-such-bucket/lj.*Check the name of the bucket"):
        store.pull(store.remote.objects())
    assert not store.folder.exists()


def test_a_server_that_is_not_there_ends_a_command_soon(monkeypatch):
    monkeypatch.setattr(remotes, "FIRST_PATIENCE", 1.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    _forget_clients()
    with pytest.raises(CacheError, match="cannot list s3://bucket/lj: no answer for"):
        Remote("s3://bucket/lj").objects()


def test_a_server_that_stops_answering_for_a_while_delays(server, tmp_path):
    _, mels = fill(tmp_path, "pause")
    store = mirrored(tmp_path, "pause")
    server.pause()
    timer = threading.Timer(1.5, server.resume)
    timer.start()
    try:
        found = read(store)
    finally:
        timer.join()
    np.testing.assert_array_equal(found["2"], mels[2])
