"""What a request meets: the key, other origins, metrics, a full queue, and leaving early."""

import json
import re
import socket

import httpx
import pytest

from myxtts.serving.limits import Limits
from myxtts.serving.server import make_config
from tests.helpers.speech_server import SECONDS, HeldModel, running

ASKED = {"model": "tts-1", "voice": "alloy", "input": "Hello.", "response_format": "wav"}
LONG = " ".join(f"This is sentence number {number}." for number in range(60))


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        yield client


def wait_for(condition) -> None:
    """Wait until something holds that another thread brings about."""
    import time

    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_health_and_readiness(client):
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/ready").json() == {"status": "ready"}


def test_the_first_voice_is_loaded_at_once_and_the_others_by_use(tmp_path):
    with running(tmp_path, names=("a", "b", "c"), max_loaded=2) as server:
        assert server.loaded == ["a"]
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            for name in ("b", "a", "c", "a", "b"):
                answer = client.post("/v1/audio/speech", json={**ASKED, "voice": name})
                assert answer.status_code == 200
        # c pushes b out, and b then pushes c out: a was used in between.
        assert server.loaded == ["a", "b", "c", "b"]
        assert server.service.voices.num_loaded == 2


def test_metrics_count_what_was_done(client):
    def value(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    spoken = 'myxtts_requests_total{path="/v1/audio/speech",status="200"}'
    before = value(spoken), value("myxtts_first_sound_seconds_count"), value("myxtts_lines_total")
    client.post("/v1/audio/speech", json={**ASKED, "input": "One. Two."})
    after = value(spoken), value("myxtts_first_sound_seconds_count"), value("myxtts_lines_total")
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 2]
    assert value("myxtts_queue") == 0
    text = client.get("/metrics").text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{[^{}]*\})? [-+.\deE]+", line), line


def test_without_the_key_nothing_is_spoken(tmp_path):
    with running(tmp_path, api_key="a secret key") as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "a secret key"},
                {"Authorization": "Bearer a secret ke\xe9".encode("latin-1")},
            ):
                answer = client.post("/v1/audio/speech", json=ASKED, headers=headers)
                assert answer.status_code == 401
                assert answer.json()["error"]["code"] == "invalid_api_key"
            right = {"Authorization": "Bearer a secret key"}
            assert client.post("/v1/audio/speech", json=ASKED, headers=right).status_code == 200
            for path in ("/v1/audio/voices", "/v1/models", "/metrics"):
                assert client.get(path).status_code == 401
                assert client.get(path, headers=right).status_code == 200
            for path in ("/", "/health", "/ready", "/docs", "/openapi.json"):
                assert client.get(path).status_code == 200


def test_pages_of_other_sites_cannot_use_the_server(tmp_path):
    with running(tmp_path, hosts=("speech.local",)) as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:

            def status(**headers) -> int:
                return client.post("/v1/audio/speech", json=ASKED, headers=headers).status_code

            own = f"http://127.0.0.1:{server.port}"
            assert status() == status(Origin=own) == 200
            assert status(Origin="http://evil.example") == status(Origin="null") == 403
            assert status(Host="evil.example") == status(Host=f"evil.example:{server.port}") == 403
            assert status(Host="speech.local") == status(Host="LOCALHOST:8020") == 200
            answer = client.options(
                "/v1/audio/speech",
                headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"},
            )
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_full_queue_is_429_and_says_when_to_come_back(tmp_path):
    model = HeldModel()
    with running(tmp_path, model=model, max_queue=1) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as held:
            held.sendall(request(ASKED))
            assert model.asked.wait(SECONDS)
            answer = httpx.post(f"{server.url}/v1/audio/speech", json=ASKED, timeout=SECONDS)
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["error"]["type"] == "rate_limit_error"
            model.go.set()
            assert held.recv(15) == b"HTTP/1.1 200 OK"


def request(body: dict) -> bytes:
    content = json.dumps(body).encode()
    head = "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(content) + content


@pytest.mark.parametrize("path", ["speech", "captioned_speech"])
def test_a_client_that_leaves_before_the_first_sound_is_forgotten(tmp_path, path, caplog):
    model = HeldModel()
    with running(tmp_path, model=model) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(request({**ASKED, "input": LONG}).replace(b"/speech", f"/{path}".encode()))
            assert model.asked.wait(SECONDS)
        wait_for(lambda: server.service.metrics.cancelled.total() == 1)
        model.go.set()
        wait_for(lambda: len(server.service.queue) == 0)
        assert server.service.metrics.sentences.total() <= 1
    assert "failed" not in caplog.text  # nobody is to look for a fault in that


def test_a_client_that_leaves_midway_is_not_spoken_for_any_further(tmp_path):
    with running(tmp_path) as server:
        url = f"{server.url}/v1/audio/speech"
        with httpx.stream("POST", url, json={**ASKED, "input": LONG}, timeout=SECONDS) as answer:
            next(answer.iter_bytes())
        wait_for(lambda: len(server.service.queue) == 0)
        wait_for(lambda: server.service.metrics.cancelled.total() == 1)
        assert server.service.metrics.sentences.total() < 60
        assert httpx.post(url, json=ASKED, timeout=SECONDS).status_code == 200


def test_a_request_that_takes_too_long_is_ended(tmp_path):
    model = HeldModel()
    with running(tmp_path, model=model, max_seconds=1) as server:
        answer = httpx.post(f"{server.url}/v1/audio/speech", json=ASKED, timeout=SECONDS)
        assert answer.status_code == 408 and "too long" in answer.json()["error"]["message"]
        model.go.set()
        wait_for(lambda: len(server.service.queue) == 0)


def test_a_voice_that_fails_is_500_before_the_first_sound_and_cut_off_or_told_after_it(tmp_path):
    class Failing(HeldModel):
        def synthesize(self, tokens, text_lengths, *others):
            if max(text_lengths) > 20:
                raise RuntimeError("broken")
            return super().synthesize(tokens, text_lengths, *others)

    model = Failing()
    model.go.set()
    with running(tmp_path, model=model) as server:
        url = f"{server.url}/v1/audio/speech"
        broken = {**ASKED, "input": "Hello to absolutely everybody here."}
        answer = httpx.post(url, json=broken, timeout=SECONDS)
        assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"
        assert "broken" not in answer.text
        later = {**ASKED, "input": "Hello. Hello to absolutely everybody here."}
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(url, json=later, timeout=SECONDS)
        told = httpx.post(url, json={**later, "stream_format": "sse"}, timeout=SECONDS)
        assert told.status_code == 200 and '"type": "error"' in told.text.split("\n\n")[-2]


def test_stopping_lets_whoever_is_being_answered_finish(tmp_path):
    model = HeldModel()
    with running(tmp_path, model=model) as server:
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(request(ASKED))
        assert model.asked.wait(SECONDS)
    # The server has stopped, and the model was let go only when it was asked to.
    with sock:
        sock.settimeout(SECONDS)
        received = b"".join(iter(lambda: sock.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 200 OK") and received.endswith(b"0\r\n\r\n")


def test_limits_are_numbers_above_zero():
    from myxtts.errors import UserError

    with pytest.raises(UserError, match="--max-queue must be at least 1, not 0"):
        Limits(max_queue=0)


def test_a_flood_takes_fewer_files_than_a_process_may_have():
    # A connection that is too many is closed four turns of the loop after it was accepted.
    config = make_config(None, Limits())
    assert Limits().max_connections + 4 * config.backlog < 1024
