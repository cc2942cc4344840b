"""The voices of a studio's folder are served as soon as they are there, and are exported."""

import json
import time

import httpx
import pytest

from myxtts.resources import default_voice
from myxtts.serving.studio import voices
from myxtts.serving.studio.jobs import FINISHED
from tests.helpers.speech_server import SECONDS, running
from tests.helpers.studio_client import StudioClient


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    with running(folder / "clones", studio=folder) as server:
        yield StudioClient(server.url)


def test_a_voice_that_is_put_into_the_folder_is_served(client, folder):
    before = [one["id"] for one in client.ok(client.get("voices"))["voices"]]
    assert before == ["lj", "lj/anna", "lj/ben", "vctk", "vctk/anna", "vctk/ben"]
    (folder / "voices" / "kept").symlink_to(default_voice())
    (folder / "runs" / "empty").mkdir()
    found = {one["id"]: one for one in client.ok(client.get("voices"))["voices"]}
    assert set(found) - set(before) == {"kept"}
    assert (found["kept"]["style_tokens"], found["kept"]["is_exported"]) == (10, True)
    listed = httpx.get(f"{client.headers['Origin']}/v1/audio/voices").json()["voices"]
    assert "kept" in [one["id"] for one in listed]
    (folder / "voices" / "kept").unlink()
    assert [one["id"] for one in client.ok(client.get("voices"))["voices"]] == before


def test_a_voice_is_served_though_nobody_looks_at_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(voices, "_LOOK_SECONDS", 0.05)
    with running(tmp_path / "clones", studio=tmp_path) as server:
        (tmp_path / "voices" / "kept").symlink_to(default_voice())
        until = time.monotonic() + SECONDS
        while server.service.voices.named("kept") is None:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_the_same_voice_is_not_compared_with_itself(client):
    body = {"first": "lj", "second": "lj", "sentences": ["One."], "language": "en"}
    answer = client.post("comparisons", **body)
    assert answer.status_code == 400 and "same voice" in answer.json()["error"]["message"]
    assert client.post("comparisons", **(body | {"second": "nobody"})).status_code == 404


def test_an_export_is_one_file_once_it_has_finished(client, folder):
    export = folder / "exports" / "lj-piper"
    (export / "voice").mkdir(parents=True)
    (export / "voice" / "lj.onnx").write_bytes(b"a graph")
    (export / "studio.json").write_text(json.dumps({"voice": "lj", "target": "piper"}))
    assert client.get("exports/lj-piper/archive").status_code == 404
    job = folder / "jobs" / "20260101-000000-abcdef"
    job.mkdir()
    card = {"kind": "export", "subject": "exports/lj-piper", "title": "lj", "steps": []}
    (job / "job.json").write_text(json.dumps({**card, "created": time.time()}))
    (job / "result.json").write_text(json.dumps({"code": 0}))
    (found,) = client.ok(client.get("exports"))["exports"]
    assert (found["voice"], found["job"]["state"]) == ("lj", FINISHED)
    archive = client.get("exports/lj-piper/archive")
    assert archive.content[:2] == b"PK" and b"lj.onnx" in archive.content
    client.ok(client.delete("exports/lj-piper"))
    assert client.ok(client.get("exports"))["exports"] == []


def test_exports_are_of_known_kinds(client):
    assert client.post("exports", voice="lj", target="floppy").status_code == 400
    assert client.post("exports", voice="nobody", target="piper").status_code == 404
