"""A recording becomes a voice, with the consent of its speaker, and is deleted with it."""

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest
import soundfile

from myxtts.errors import UserError
from myxtts.serving.uploads import Uploads
from tests.helpers.make_voice import make_voice
from tests.helpers.speech_server import SECONDS, running, served

CONSENT = "I, Ada Example, agree that my voice is cloned here."


def recording(seconds: float = 3.0, **how) -> bytes:
    content = io.BytesIO()
    kind = {"format": "WAV", "subtype": "PCM_16", **how}
    soundfile.write(content, make_voice(seconds, 16000), 16000, **kind)
    return content.getvalue()


def send(client, name="Ada", consent=CONSENT, content=None, path="/v1/voices", **fields):
    content = recording() if content is None else content
    form = {"name": name, "consent": consent, **fields}
    return client.post(path, data=form, files={"audio_sample": ("ada.wav", content)})


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "clones"


@pytest.fixture
def client(folder):
    with running(folder) as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            yield client


def test_the_official_client_clones_a_voice_and_speaks_with_it(client, folder):
    with openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="any", max_retries=0) as official:
        voice = official.audio.voices.create(
            name="Ada", consent=CONSENT, audio_sample=("ada.flac", recording(format="FLAC"))
        )

        def say(who) -> bytes:
            asked = {"model": "tts-1", "input": "Hello.", "response_format": "pcm"}
            return official.audio.speech.create(voice=who, **asked).content

        assert say({"id": voice.id}) == say("Ada") != say("lj")
    (kept,) = folder.iterdir()
    assert kept.name == voice.id
    card = json.loads((kept / "voice.json").read_text())
    assert card["consent"] == CONSENT and card["name"] == "Ada" and card["voice"] == "lj"
    samples, rate = soundfile.read(kept / "reference.wav")
    assert len(samples) / rate == pytest.approx(3.0, abs=0.01) and np.abs(samples).max() > 0.01


def test_a_clone_is_listed_outlives_the_server_and_is_deleted_with_all_its_files(folder):
    with running(folder) as server, httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        made = send(client, voice="vctk").json()
        assert made["voice"] == "vctk" and made["object"] == "audio.voice"
    with running(folder) as server, httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        (listed,) = [
            one for one in client.get("/v1/audio/voices").json()["voices"] if one["is_clone"]
        ]
        assert (listed["id"], listed["name"]) == (made["id"], "Ada")
        asked = {"model": "tts-1", "voice": "Ada", "input": "Hello."}
        assert client.post("/v1/audio/speech", json=asked).status_code == 200
        answer = client.delete(f"/v1/voices/{made['id']}")
        assert answer.json() == {
            "id": made["id"],
            "object": "audio.voice.deleted",
            "deleted": True,
        }
        assert list(folder.iterdir()) == []
        assert client.delete(f"/v1/voices/{made['id']}").status_code == 404
        assert client.post("/v1/audio/speech", json=asked).status_code == 400


def test_nothing_is_cloned_without_consent_or_with_a_name_that_is_taken(client, folder):
    for consent in ("", "  ", "yes"):
        answer = send(client, consent=consent)
        assert answer.status_code == 400 and answer.json()["error"]["message"]
    form = {"name": "Ada"}
    answer = client.post("/v1/voices", data=form, files={"audio_sample": ("a.wav", recording())})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "consent"
    assert send(client, voice="nobody").json()["error"]["code"] == "voice_not_found"
    assert not folder.exists()
    assert send(client).status_code == 200
    assert send(client, name=" Ada ").status_code == 409
    assert send(client, name="lj").status_code == send(client, name="alloy").status_code == 409
    assert len(list(folder.iterdir())) == 1


def test_a_voice_that_comes_later_is_not_hidden_by_a_clone_of_its_name(folder):
    with running(folder, names=("lj",)) as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            assert send(client, name="later").status_code == 200
            server.service.voices.replace(served("lj", "later"))
            asked = {"model": "tts-1", "voice": "later", "input": "Hello."}
            assert client.post("/v1/audio/speech", json=asked).status_code == 200
        assert server.loaded == ["lj", "later"]


def test_there_are_no_more_clones_than_allowed(folder):
    with running(folder, max_clones=1) as server:
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            assert send(client, name="Ada").status_code == 200
            answer = send(client, name="Bob")
            assert answer.status_code == 400 and "most allowed" in answer.text


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "..", "a/b", "a\\b", "CON", "voice.json", "%2e%2e%2f"],
)
def test_no_name_becomes_a_path(client, folder, tmp_path, name):
    before = sorted(tmp_path.iterdir())
    answer = send(client, name=name)
    assert answer.status_code == 200
    assert [one.name for one in folder.iterdir()] == [answer.json()["id"]]
    assert sorted(tmp_path.iterdir()) == sorted({*before, folder})
    for path in (f"/v1/voices/{name}", "/v1/voices/..%2f..%2fclones", "/v1/voices/%2e%2e"):
        assert client.delete(path).status_code in (404, 405)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "a\x00b", "a\nb", "\x1b[31m"])
def test_odd_names_are_refused_or_tidied(client, folder, name):
    answer = send(client, name=name)
    if answer.status_code == 200:
        assert answer.json()["name"] == "a b"  # a line break is a space
    else:
        assert answer.status_code == 400 and not folder.exists()


def test_a_folder_that_is_no_clone_is_left_alone(folder, caplog):
    broken = folder / "voice_0123456789abcdef01234567"
    broken.mkdir(parents=True)
    (folder / "notes").mkdir()
    (broken / "voice.json").write_text("{}")
    with running(folder) as server:
        assert len(server.service.clones) == 0
    assert broken.exists() and "is no cloned voice" in caplog.text


def test_recordings_wait_on_the_disk_and_not_in_memory(client, monkeypatch):
    held, most = [], []

    async def decode(self, content):
        held.append(content)
        most.append(len(held))
        await asyncio.sleep(0.1)
        held.remove(content)
        raise UserError("not this one")

    monkeypatch.setattr(Uploads, "decode", decode)
    contents = [recording(1.0 + 0.1 * number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        sent = pool.map(lambda n: send(client, f"Ada {n}", content=contents[n]), range(8))
        assert {answer.status_code for answer in sent} == {400}
    assert len(most) == 8 and max(most) == 2
