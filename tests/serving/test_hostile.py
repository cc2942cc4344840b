"""Requests that nobody means well with: they are answered with 4xx, and the server goes on."""

import io
import json
import socket
import time
import zlib

import httpx
import numpy as np
import pytest
import soundfile

from myxtts.serving import gate
from myxtts.serving import server as server_module
from tests.helpers.hostile_audio import mutations
from tests.helpers.speech_server import SECONDS, running

CONSENT = "I, Ada Example, agree that my voice is cloned here."
ASKED = {"model": "tts-1", "voice": "alloy", "input": "Hello.", "response_format": "wav"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server with limits that are soon reached."""
    folder = tmp_path_factory.mktemp("clones")
    with running(folder, max_upload_mb=1, max_text=500, max_connections=20) as found:
        yield found


@pytest.fixture(scope="module")
def client(small):
    with httpx.Client(base_url=small.url, timeout=SECONDS) as client:
        yield client


@pytest.fixture(autouse=True)
def goes_on(client):
    """Whatever was sent, the server speaks afterwards, and nothing is left of it."""
    yield
    assert client.post("/v1/audio/speech", json=ASKED).status_code == 200


def upload(client, content: bytes, filename: str = "a.wav"):
    form = {"name": "Ada", "consent": CONSENT}
    return client.post("/v1/voices", data=form, files={"audio_sample": (filename, content)})


def is_error(answer, *statuses: int) -> bool:
    error = answer.json()["error"]
    return answer.status_code in statuses and set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"input": NaN, "model": "tts-1", "voice": "alloy"}',
        b'{"input": "\\ud800", "model": "tts-1", "voice": "alloy"}',
        b'{"input": "a", "model": "tts-1", "voice": "\\udc00"}',
        b'{"input": "a", "model": "tts-1", "voice": "alloy", "seed": 1' + b"0" * 5000 + b"}",
        b'{"input": "a", "model": "tts-1", "voice": "alloy", "speed": 1e999}',
        b'{"input": {"a": 1}, "model": 1, "voice": [], "\\ud800": 1}',
        b"[" * 50_000,
        b'{"a":' * 10_000,
        json.dumps({**ASKED, "voice": {"id": {"id": "x"}}}).encode(),
        json.dumps({**ASKED, "voice": "../../etc/passwd"}).encode(),
        json.dumps({**ASKED, "model": "/etc/passwd"}).encode(),
        json.dumps({**ASKED, "voice": "lj\r\nX-Injected: 1"}).encode(),
        json.dumps({**ASKED, "input": "\u0000\u0001\ufffe"}).encode(),
        json.dumps({**ASKED, "input": "<speak>" * 60, "ssml": True}).encode(),
        json.dumps(
            {**ASKED, "input": '<!DOCTYPE a [<!ENTITY b "c">]><speak>&b;</speak>', "ssml": True}
        ).encode(),
        json.dumps({**ASKED, "style": [1e308] * 1000}).encode(),
    ],
)
def test_malformed_requests_are_400(client, content):
    answer = client.post("/v1/audio/speech", content=content, headers=JSON)
    assert is_error(answer, 400, 404)
    assert "x-injected" not in answer.headers


@pytest.mark.parametrize(
    "content, param, said",
    [
        (b'{"model":', None, "the body is no JSON: Expecting value"),
        (json.dumps({**ASKED, "voice": {"id": ""}}).encode(), "voice", "at least 1 character"),
        (json.dumps({**ASKED, "style": [0.0, "x"]}).encode(), "style", "valid number"),
    ],
)
def test_what_is_wrong_with_a_body_is_said_of_its_field(client, content, param, said):
    error = client.post("/v1/audio/speech", content=content, headers=JSON).json()["error"]
    assert error["param"] == param and said in error["message"]


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "null", "", "\xff"])
def test_an_origin_that_is_no_address_is_a_foreign_one(client, origin):
    headers = {"Origin": origin.encode("latin-1")}
    answer = client.post("/v1/audio/speech", json=ASKED, headers=headers)
    assert is_error(answer, 403)


def test_a_body_of_another_type_is_400(client):
    for kind in ("text/plain", "application/xml", "multipart/form-data", ""):
        headers = {"Content-Type": kind}
        answer = client.post("/v1/audio/speech", content=json.dumps(ASKED), headers=headers)
        assert is_error(answer, 400, 415)
    packed = zlib.compress(json.dumps(ASKED).encode())
    headers = {**JSON, "Content-Encoding": "deflate"}
    assert is_error(client.post("/v1/audio/speech", content=packed, headers=headers), 400)


def test_a_body_that_is_too_large_is_413_whether_it_says_so_or_not(client):
    body = json.dumps({**ASKED, "input": "a" * 200_000})
    assert is_error(client.post("/v1/audio/speech", content=body, headers=JSON), 413)
    parts = iter([body[:1000].encode()] * 100)
    assert is_error(client.post("/v1/audio/speech", content=parts, headers=JSON), 413)
    assert is_error(upload(client, bytes(3 << 20)), 413)


def test_recordings_that_lie_are_refused(client):
    for name, content in mutations(seed=5, count=6):
        answer = upload(client, content, name)
        assert answer.status_code in (200, 400), (name, answer.text)
        if answer.status_code == 200:
            client.delete(f"/v1/voices/{answer.json()['id']}")


def packed(seconds: float, form: str, subtype: str) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, np.zeros(int(seconds * 8000)), 8000, format=form, subtype=subtype)
    return content.getvalue()


@pytest.mark.parametrize(
    "content, said",
    [
        (packed(600, "FLAC", "PCM_16"), "longer than 120 s"),
        (packed(2, "WAV", "PCM_16"), "silent"),
        (b"PK\x03\x04" + bytes(1000), "cannot open it"),
        (b"RIFF\xff\xff\xff\xffWAVEfmt ", ""),
        (b"", "no bytes"),
        (b"<html></html>", "cannot open it"),
    ],
    ids=["bomb", "silence", "zip", "half", "empty", "page"],
)
def test_what_is_no_speech_is_refused_with_a_reason(client, content, said):
    answer = upload(client, content)
    assert is_error(answer, 400)
    message = answer.json()["error"]["message"]
    assert said in message and "/tmp" not in message


def test_file_names_reach_neither_headers_nor_files(client, small):
    for name in ("../../x.wav", "/etc/passwd", "a\r\nX-Injected: 1", "\x00", "a" * 5000):
        answer = upload(client, b"no recording", name)
        assert is_error(answer, 400) and "x-injected" not in answer.headers
    assert len(small.service.clones) == 0


def test_malformed_forms_are_400(client):
    for kind, content in (
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n"),
        ("multipart/form-data; boundary=x", b"\x00" * 1000),
        ("multipart/form-data; boundary=" + "x" * 300, b"--x--"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="'),
    ):
        answer = client.post("/v1/voices", content=content, headers={"Content-Type": kind})
        assert is_error(answer, 400), answer.text
    many = {f"field{number}": "x" for number in range(1500)}
    files = {"audio_sample": ("a.wav", b"x")}
    assert is_error(client.post("/v1/voices", data=many, files=files), 400)


def raw(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(SECONDS)
        sock.sendall(content)
        try:
            return sock.recv(65536)
        except ConnectionError:
            return b""


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"nonsense\r\n\r\n",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nZZ",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    ],
    ids=["tls", "words", "length", "smuggling", "nul", "path", "headers"],
)
def test_what_is_no_http_is_400_or_cut_off(small, content):
    answer = raw(small.port, content)
    assert answer == b"" or answer.split()[1].startswith(b"4"), answer[:100]


def test_a_request_that_never_ends_is_cut_off_and_so_are_too_many(small, monkeypatch):
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0.5)
    opened = []
    try:
        for number in range(60):
            sock = socket.create_connection(("127.0.0.1", small.port))
            sock.settimeout(SECONDS)
            opened.append(sock)
            try:
                sock.sendall(b"GET /health HTTP/1.1\r\nX-Number: " + str(number).encode())
            except ConnectionError:
                pass
        for sock in opened:
            try:
                assert sock.recv(100) == b""
            except ConnectionError:
                pass
    finally:
        for sock in opened:
            sock.close()


def test_a_body_that_never_comes_is_408(small, monkeypatch):
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.3)
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    assert raw(small.port, head + b"Content-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408")


def test_a_client_that_takes_nothing_is_cut_off(small, monkeypatch):
    monkeypatch.setattr(gate, "STALL_SECONDS", 0.5)
    text = " ".join(["Hello there."] * 38)
    body = json.dumps({**ASKED, "input": text, "response_format": "wav", "speed": 0.25}).encode()
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    cancelled = small.service.metrics.cancelled
    before, until = cancelled.total(), time.monotonic() + SECONDS
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    with sock:
        sock.connect(("127.0.0.1", small.port))
        sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        # The answer is several times what sockets hold, and nobody reads it.
        while cancelled.total() == before and time.monotonic() < until:
            time.sleep(0.02)
    assert cancelled.total() == before + 1
