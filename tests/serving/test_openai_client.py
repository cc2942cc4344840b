"""The official client of OpenAI speaks with the server: every format, whole and as it comes."""

import base64
import io
import json

import numpy as np
import openai
import pytest
import soundfile

TEXT = "Good morning, all of you. This is a second sentence. And a third one."
RATE = 22050


class Forward(soundfile.SoundFile):
    """Reads on without seeking, as players do: a FLAC that was streamed has no known length."""

    def seekable(self) -> bool:
        return False


def decode(content: bytes) -> tuple[np.ndarray, int]:
    with Forward(io.BytesIO(content)) as file:
        return file.read(min(file.frames, 60 * file.samplerate), dtype="float32"), file.samplerate


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def seconds(client) -> float:
    """How long the text is, by the format that loses nothing."""
    wav = client.audio.speech.create(
        model="tts-1", voice="alloy", input=TEXT, response_format="wav"
    )
    samples, rate = decode(wav.content)
    assert rate == RATE and np.abs(samples).max() > 0.05
    return len(samples) / rate


@pytest.mark.parametrize(
    "form, media",
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/opus"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
    ],
)
def test_every_format_is_spoken(client, seconds, form, media):
    answer = client.audio.speech.create(
        model="gpt-4o-mini-tts", voice="nova", input=TEXT, response_format=form
    )
    assert answer.response.headers["content-type"] == media
    if form == "pcm":
        samples, rate = np.frombuffer(answer.content, "<i2"), 24000
    else:
        samples, rate = decode(answer.content)
    assert len(samples) / rate == pytest.approx(seconds, abs=0.15)


def test_mp3_is_the_default(client):
    answer = client.audio.speech.create(model="tts-1-hd", voice="echo", input="Hello.")
    assert answer.response.headers["content-type"] == "audio/mpeg"


def test_speech_is_streamed_in_several_parts(client, seconds):
    spoken = client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=TEXT, response_format="pcm"
    )
    with spoken as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        parts = list(answer.iter_bytes())
    assert len(parts) >= 3
    assert sum(map(len, parts)) / 2 / 24000 == pytest.approx(seconds, abs=0.01)


def events(answer) -> list[dict]:
    lines = answer.content.decode().split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_events_hold_the_same_sound_and_what_it_took(client):
    asked = {"model": "lj", "voice": "ben", "input": TEXT, "response_format": "pcm"}
    plain = client.audio.speech.create(**asked).content
    answer = client.audio.speech.create(**asked, stream_format="sse")
    assert answer.response.headers["content-type"].startswith("text/event-stream")
    found = events(answer)
    sound = b"".join(base64.b64decode(one["audio"]) for one in found[:-1])
    assert sound == plain
    assert {one["type"] for one in found[:-1]} == {"speech.audio.delta"}
    assert found[-1]["type"] == "speech.audio.done"
    usage = found[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


def test_events_have_the_times_of_words_if_wanted(client):
    asked = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm"}
    extra = {"timestamps": True}
    found = events(client.audio.speech.create(**asked, stream_format="sse", extra_body=extra))
    words = [word for one in found if one["type"] == "speech.audio.words" for word in one["words"]]
    assert [word["word"] for word in words] == TEXT.split()
    times = [time for word in words for time in (word["start_time"], word["end_time"])]
    assert times == sorted(times)


def test_captioned_speech_has_words_with_times_within_the_sound(client):
    body = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "wav"}
    found = client.post("/audio/captioned_speech", body=body, cast_to=object)
    samples, rate = decode(base64.b64decode(found["audio"]))
    assert [word["word"] for word in found["timestamps"]] == TEXT.split()
    assert found["timestamps"][-1]["end_time"] <= len(samples) / rate
    assert found["audio_format"] == "wav"


def test_speed_seed_speaker_language_and_ssml_reach_the_voice(client):
    def say(text: str = "Hello there.", **extra) -> bytes:
        asked = {"model": "lj", "voice": "lj", "input": text, "response_format": "pcm"}
        return client.audio.speech.create(**asked, extra_body=extra).content

    plain = say()
    assert say() == plain
    assert len(say(speed=2.0)) == pytest.approx(len(plain) / 2, rel=0.05)
    assert say(seed=1) != plain and len(say(seed=1)) == len(plain)
    assert say(speaker="ben") != plain
    assert say("سلام.", language="fa")
    with_break = say('<speak>Hello there.<break time="1s"/></speak>', ssml=True)
    assert (len(with_break) - len(plain)) / 2 / 24000 == pytest.approx(1.0, abs=0.02)


def test_built_in_names_stand_for_the_speakers_in_turn(server):
    find = server.service.voices.find
    assert [find(name, "tts-1").id for name in ("alloy", "ash", "ballad", "coral", "echo")] == [
        *("lj/anna", "lj/ben", "vctk/anna", "vctk/ben", "lj/anna"),
    ]
    assert find("ash", "vctk").id == "vctk/ben"


def test_models_and_voices_are_listed(client, server):
    names = [model.id for model in client.models.list()]
    assert names == ["lj", "vctk", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
    assert client.models.retrieve("lj").object == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("whisper-1")
    voices = client.get("/audio/voices", cast_to=object)["voices"]
    assert [voice["id"] for voice in voices][:3] == ["lj", "lj/anna", "lj/ben"]
    assert all(voice["name"] for voice in voices) and voices[0]["languages"] == ["en", "fa"]


def test_instructions_are_ignored_and_a_header_says_so(client):
    asked = {"model": "tts-1", "voice": {"id": "lj"}, "input": "Hello."}
    answer = client.audio.speech.create(**asked, instructions="Whisper.")
    assert "instructions" in answer.response.headers["x-myxtts-warning"]
    assert "x-myxtts-warning" not in client.audio.speech.create(**asked).response.headers


@pytest.mark.parametrize(
    "change, kind, param, said",
    [
        ({"voice": "nobody"}, openai.BadRequestError, "voice", "nobody"),
        ({"model": "whisper-1"}, openai.NotFoundError, "model", "whisper-1"),
        ({"response_format": "aac"}, openai.BadRequestError, "response_format", "libsndfile"),
        ({"speed": 9.0}, openai.BadRequestError, "speed", "4"),
        ({"input": ""}, openai.BadRequestError, "input", "character"),
        ({"input": " \n"}, openai.BadRequestError, "input", "nothing to say"),
        ({"input": "..."}, openai.BadRequestError, "input", ""),
        ({"input": "a" * 20_001}, openai.BadRequestError, "input", "20,000"),
        ({"extra_body": {"language": "xx"}}, openai.BadRequestError, "language", "en, fa"),
        ({"extra_body": {"speaker": "eve"}}, openai.BadRequestError, "speaker", "anna, ben"),
        ({"extra_body": {"style": [1.0]}}, openai.BadRequestError, "style", "style"),
        ({"extra_body": {"ssml": True}}, openai.BadRequestError, "input", "SSML"),
        ({"extra_body": {"timestamps": True}}, openai.BadRequestError, "timestamps", "sse"),
    ],
)
def test_what_is_wrong_is_said_in_the_shape_of_openai(client, change, kind, param, said):
    with pytest.raises(kind) as raised:
        client.audio.speech.create(
            **{"model": "tts-1", "voice": "alloy", "input": "Hello.", **change}
        )
    error = raised.value.body
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param and said in error["message"]
