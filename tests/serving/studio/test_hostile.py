"""Requests that nobody means well with: answered with 4xx, and nothing outside is touched."""

import contextlib
import http.client
import json

import httpx
import pytest

from myxtts.serving import gate
from myxtts.serving.studio import receiving
from tests.helpers.long_recording import make_recording
from tests.helpers.speech_server import running
from tests.helpers.studio_client import StudioClient

NAMES = ("..", "../..", "%2e%2e", "..%2f..%2fetc", "a%00b", "/etc/passwd", "~", ".", "jobs/../x")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def server(folder):
    with running(folder / "clones", studio=folder) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    return StudioClient(server.url)


@pytest.fixture(autouse=True)
def goes_on(client):
    yield
    assert client.get("overview").status_code == 200


def is_refused(answer):
    return 400 <= answer.status_code < 500 and set(answer.json()["error"]) == {
        *("message", "type", "param", "code")
    }


def ask(server, client, method, path):
    """The status of an answer to a path that is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, f"/studio/{path}", headers=client.headers)
        return connection.getresponse().status


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_paths_are_no_names(server, client, name):
    for kind in ("corpora", "runs", "comparisons", "jobs"):
        assert ask(server, client, "GET", f"api/{kind}/{name}") in (404, 405)
        assert ask(server, client, "DELETE", f"api/{kind}/{name}") in (404, 405)
    assert ask(server, client, "GET", f"api/corpora/{name}/clips") in (404, 405)
    assert ask(server, client, "GET", f"api/exports/{name}/archive") == 404
    assert ask(server, client, "GET", f"static/{name}") in (404, 405)


def test_titles_never_leave_the_folder(client, folder):
    before = set(folder.iterdir())
    for title in ("../../evil", "/etc", "..", "a/b", "con\x00", "\ud800", "x" * 5000, "   "):
        body = json.dumps({"title": title, "language": "en"}).encode("utf-8", "surrogatepass")
        headers = {**client.headers, "Content-Type": "application/json"}
        answer = httpx.post(
            f"{client.headers['Origin']}/studio/api/corpora", content=body, headers=headers
        )
        assert answer.status_code in (200, 400)
        if answer.status_code == 200:
            assert (folder / "corpora" / answer.json()["id"]).is_dir()
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    "changed",
    [
        {"X-Studio-Token": "wrong"},
        {"X-Studio-Token": ""},
        {"X-Studio-Token": "\xe9"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Host": "evil.example"},
    ],
)
def test_only_the_own_page_changes_anything(server, client, folder, changed):
    headers = {k: v for k, v in (client.headers | changed).items() if v is not None}
    headers = {k: v.encode("latin-1") for k, v in headers.items()}
    before = sorted((folder / "corpora").iterdir())
    made = {"title": "Stolen", "language": "en"}
    answer = httpx.post(f"{server.url}/studio/api/corpora", json=made, headers=headers)
    assert answer.status_code == 403 and is_refused(answer)
    sent = httpx.put(
        f"{server.url}/studio/api/corpora/a/recordings?filename=a", content=b"x", headers=headers
    )
    assert sent.status_code == 403
    assert sorted((folder / "corpora").iterdir()) == before


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'"a"', b"\xff", b'{"title": 1}'])
@pytest.mark.parametrize("path", ["corpora", "runs", "comparisons", "exports", "runs/a/resume"])
def test_malformed_bodies_are_refused(server, client, path, body):
    headers = {**client.headers, "Content-Type": "application/json"}
    answer = httpx.post(f"{server.url}/studio/api/{path}", content=body, headers=headers)
    assert is_refused(answer)


def test_numbers_beyond_reason_are_refused(client):
    for steps in (0, -1, 10**30, 1.5, "3"):
        run = {"title": "a", "corpus": "a", "size": "tiny", "steps": steps}
        assert is_refused(client.post("runs", **run))
    assert client.get("corpora/x/clips?start=-5&count=1e9").status_code in (400, 404)


def test_uploads_have_a_largest_size(client, monkeypatch, folder):
    name = client.ok(client.post("corpora", title="Large", language="en"))["id"]
    monkeypatch.setattr(gate, "_RECORDING_BYTES", 1000)
    answer = client.put(f"corpora/{name}/recordings", b"\0" * 5000, filename="a.wav")
    assert answer.status_code == 413
    assert list((folder / "recordings" / name).iterdir()) == []


def test_a_header_that_lies_about_its_length_takes_no_memory(client, tmp_path, folder):
    name = client.ok(client.post("corpora", title="Lies", language="en"))["id"]
    content = bytearray(make_recording(tmp_path / "a.wav", 1).read_bytes())
    content[40:44] = (0x7FFFFFF0).to_bytes(4, "little")
    content[24:28] = (1).to_bytes(4, "little")
    assert is_refused(client.put(f"corpora/{name}/recordings", bytes(content), filename="a.wav"))
    assert list((folder / "recordings" / name).iterdir()) == []


def test_a_full_disk_is_said_before_anything_is_sent(client, monkeypatch):
    name = client.ok(client.post("corpora", title="Full", language="en"))["id"]
    monkeypatch.setattr(receiving, "_SPARE_BYTES", 1 << 62)
    answer = client.put(f"corpora/{name}/recordings", b"x", filename="a.wav")
    assert answer.status_code == 400 and "disk" in answer.json()["error"]["message"]


def test_with_a_key_nothing_of_the_user_is_shown_without_it(tmp_path):
    with running(tmp_path / "clones", studio=tmp_path, api_key="a secret key") as server:
        assert httpx.get(f"{server.url}/studio").status_code == 200
        assert httpx.get(f"{server.url}/studio/static/studio.js").status_code == 200
        assert httpx.get(f"{server.url}/studio/api/overview").status_code == 401
        known = {"Authorization": "Bearer a secret key"}
        assert httpx.get(f"{server.url}/studio/api/overview", headers=known).status_code == 200


def test_the_page_allows_itself_nothing_else(server):
    answer = httpx.get(f"{server.url}/studio")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert httpx.get(server.url).headers["location"] == "/studio"
