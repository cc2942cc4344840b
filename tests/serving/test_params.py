"""Errors name the field that they are about, in `param`, as OpenAI's do."""

import io
import json

import httpx
import numpy as np
import pytest
import soundfile

from tests.helpers.speech_server import SECONDS

ASKED = {"model": "tts-1", "voice": "alloy", "input": "Hello.", "response_format": "wav"}
NAMED = '<speak><voice name="eve">Hello.</voice></speak>'
SPOKEN = [
    ("input", {"input": ""}),
    ("input", {"input": 1}),
    ("input", {"input": " \n"}),
    ("input", {"input": "..."}),
    ("input", {"input": "a" * 20_001}),
    ("input", {"input": "Hello.", "ssml": True}),
    ("input", {"input": NAMED, "ssml": True}),
    ("input", {"input": '<speak xml:lang="xx">Hello.</speak>', "ssml": True}),
    ("input", {"input": "<speak/>", "ssml": True}),
    ("model", {"model": ""}),
    ("model", {"model": "whisper-1"}),
    ("voice", {"voice": "nobody"}),
    ("voice", {"voice": {"id": "nobody"}}),
    ("voice", {"voice": {"id": ""}}),
    ("voice", {"voice": {}}),
    ("voice", {"voice": None}),
    ("response_format", {"response_format": "aac"}),
    ("response_format", {"response_format": "ogg"}),
    ("speed", {"speed": 9}),
    ("speed", {"speed": "fast"}),
    ("instructions", {"instructions": 1}),
    ("language", {"language": "xx"}),
    ("language", {"language": ""}),
    ("speaker", {"speaker": "eve"}),
    ("speaker", {"speaker": ["anna"]}),
    ("speaker", {"speaker": "eve", "input": "<speak>Hello.</speak>", "ssml": True}),
    ("seed", {"seed": -1}),
    ("seed", {"seed": 1.5}),
    ("style", {"style": [1.0]}),
    ("style", {"style": [0.0, "x"]}),
    ("style", {"style": [0.0] * 257}),
    ("style", {"style": [1.0], "input": "<speak>Hello.</speak>", "ssml": True}),
    ("ssml", {"ssml": "yes"}),
]
STREAMED = [
    ("stream_format", {"stream_format": "websocket"}),
    ("timestamps", {"timestamps": True}),
    ("timestamps", {"timestamps": "yes", "stream_format": "sse"}),
]
AGREED = {"name": "Ada", "consent": "I, Ada, agree that my voice is cloned here."}
CLONED = [
    ("name", {"name": ""}),
    ("name", {"name": "A" * 65}),
    ("name", {"name": "Ada\x07"}),
    ("name", {"name": "alloy"}),
    ("name", {"name": "lj/anna"}),
    ("consent", {"consent": "yes"}),
    ("consent", {"consent": "yes " * 501}),
    ("voice", {"voice": "nobody"}),
    ("voice", {"voice": "a" * 201}),
]


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        yield client


def param_of(answer: httpx.Response) -> str | None:
    assert 400 <= answer.status_code < 500, answer.text
    return answer.json()["error"]["param"]


@pytest.mark.parametrize("param, change", SPOKEN)
def test_of_a_text_that_is_to_be_spoken(client, param, change):
    for path in ("speech", "captioned_speech"):
        answer = client.post(f"/v1/audio/{path}", json={**ASKED, **change})
        assert param_of(answer) == param, path


@pytest.mark.parametrize("param, change", STREAMED)
def test_of_how_speech_is_sent(client, param, change):
    assert param_of(client.post("/v1/audio/speech", json={**ASKED, **change})) == param


@pytest.mark.parametrize("name", ["input", "model", "voice"])
def test_of_a_field_that_is_missing(client, name):
    rest = {key: value for key, value in ASKED.items() if key != name}
    assert param_of(client.post("/v1/audio/speech", json=rest)) == name


def recording(seconds: float = 2.0, level: float = 0.1) -> bytes:
    content = io.BytesIO()
    samples = level * np.sin(np.arange(int(16000 * seconds)) * 0.05)
    soundfile.write(content, samples, 16000, format="WAV")
    return content.getvalue()


@pytest.mark.parametrize("param, change", CLONED)
def test_of_a_voice_that_is_to_be_cloned(client, param, change):
    sample = {"audio_sample": ("a.wav", recording())}
    answer = client.post("/v1/voices", data={**AGREED, **change}, files=sample)
    assert param_of(answer) == param


@pytest.mark.parametrize(
    "content", [b"", b"no sound at all", recording(0.2), recording(level=0.0), recording(121.0)]
)
def test_of_a_recording_that_cannot_be_used(client, content):
    answer = client.post("/v1/voices", data=AGREED, files={"audio_sample": ("a.wav", content)})
    assert param_of(answer) == "audio_sample"


@pytest.mark.parametrize("name", ["name", "consent", "audio_sample"])
def test_of_a_part_of_a_form_that_is_missing(client, name):
    data = {key: value for key, value in AGREED.items() if key != name}
    files = {} if name == "audio_sample" else {"audio_sample": ("a.wav", recording())}
    answer = client.post("/v1/voices", data=data, files=files or {"other": b""})
    assert param_of(answer) == name


def test_of_what_an_address_names(client):
    assert param_of(client.get("/v1/models/whisper-1")) == "model"
    assert param_of(client.delete("/v1/voices/voice_0")) == "id"


def test_where_no_field_is_wrong_there_is_no_name(client):
    content = json.dumps(ASKED).encode()[:-1]
    headers = {"Content-Type": "application/json"}
    assert param_of(client.post("/v1/audio/speech", content=content, headers=headers)) is None
    assert param_of(client.get("/v1/nothing")) is None
