"""Asks a studio as its page does, and waits for its jobs."""

import re
import time
from pathlib import Path
from typing import Any

import httpx

from myxtts.serving.studio.jobs import RUNNING

SECONDS = 120  # for which a job may run


class StudioClient:
    """Sends what the studio's page sends, with its token and its origin."""

    def __init__(self, url: str):
        self._http = httpx.Client(base_url=url, timeout=60)
        page = self._http.get("/studio").text
        token = re.search(r'name="studio-token" content="([^"]+)"', page)
        assert token is not None
        self.headers = {"Origin": url, "X-Studio-Token": token[1]}

    def get(self, path: str) -> httpx.Response:
        return self._http.get(f"/studio/api/{path}")

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self._http.post(f"/studio/api/{path}", json=body, headers=self.headers)

    def delete(self, path: str) -> httpx.Response:
        return self._http.delete(f"/studio/api/{path}", headers=self.headers)

    def put(self, path: str, content: Any, **query: str) -> httpx.Response:
        place = f"/studio/api/{path}"
        return self._http.put(place, params=query, content=content, headers=self.headers)

    def ok(self, answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_for(self, job: dict[str, Any]) -> dict[str, Any]:
        """Wait until a job has ended."""
        until = time.monotonic() + SECONDS
        while True:
            found = self.ok(self.get(f"jobs/{job['id']}"))
            if found["state"] != RUNNING:
                return found
            assert time.monotonic() < until, found["log"]
            time.sleep(0.1)

    def add_recording(self, corpus: str, path: Path) -> str:
        sent = self.put(f"corpora/{corpus}/recordings", path.read_bytes(), filename=path.name)
        return self.ok(sent)["name"]
