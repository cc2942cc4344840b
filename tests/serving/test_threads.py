"""The threads of a server: known by their names, and no more of them than there are cores for."""

import os
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

from myxtts.monitoring.cores import available_cores
from tests.helpers.speech_server import SECONDS, running

CLIENTS = 24
ASKED = {"model": "tts-1", "voice": "alloy", "input": "One. Two. Three.", "response_format": "mp3"}


def test_threads_are_bounded_and_end_with_the_server(tmp_path):
    before = set(threading.enumerate())

    def pools():
        new = (one for one in threading.enumerate() if one not in before)
        return Counter(re.sub(r"[-_ ]\d+.*", "", one.name) for one in new)

    with running(tmp_path / "clones", studio=tmp_path, max_queue=CLIENTS) as server:

        def ask(number: int) -> set[int]:
            with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
                spoken = [client.post("/v1/audio/speech", json=ASKED) for _ in range(2)]
                return {one.status_code for one in (*spoken, client.get("/studio/api/voices"))}

        with ThreadPoolExecutor(CLIENTS, "client") as clients:
            statuses = set().union(*clients.map(ask, range(CLIENTS)))
            found = pools()
        assert statuses == {200}
    assert found.pop("client") == CLIENTS
    assert found.pop("asyncio") <= min(32, (os.cpu_count() or 1) + 4)  # that of the event loop
    assert found.pop("AnyIO worker thread", 0) <= 40  # for the studio's routes; they end when idle
    assert found.pop("vocoder") <= available_cores()
    assert found.pop("speech") == found.pop("Thread") == 1
    assert found.pop("blas-limit", 0) <= 1
    assert not found
    left = [one.name for one in threading.enumerate() if one not in before]
    assert [name for name in left if not name.startswith("blas-limit")] == []
