"""A client of Wyoming, as Home Assistant is one: voices, speech, and text that comes in chunks."""

import asyncio
import json
import socket
from functools import partial

import numpy as np
import pytest
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from tests.helpers.speech_server import SECONDS, HeldModel, fake_synthesizer, running

RATE = 22050


def talk(server, *events) -> list:
    """Send events, and return what comes back up to the last one that is due."""

    async def run() -> list:
        received = []
        async with asyncio.timeout(SECONDS), AsyncTcpClient(*server.wyoming) as client:
            for event in events:
                await client.write_event(event.event())
            is_streamed = isinstance(events[-1], SynthesizeStop)
            ends = SynthesizeStopped if is_streamed else AudioStop
            while (event := await client.read_event()) is not None:
                received.append(event)
                if ends.is_type(event.type) or event.type in ("info", "error"):
                    break
        return received

    return asyncio.run(run())


def samples_of(events) -> np.ndarray:
    chunks = [AudioChunk.from_event(one) for one in events if AudioChunk.is_type(one.type)]
    assert all((one.rate, one.width, one.channels) == (RATE, 2, 1) for one in chunks)
    return np.frombuffer(b"".join(one.audio for one in chunks), "<i2")


def expected(text: str, **options) -> np.ndarray:
    samples = fake_synthesizer().speak(text, **options).samples
    return np.round(samples * 32768.0).astype(np.int16)


def test_voices_are_described(server):
    (event,) = talk(server, Describe())
    (program,) = Info.from_event(event).tts
    assert program.supports_synthesize_streaming and program.installed
    assert [voice.name for voice in program.voices] == ["lj", "vctk"]
    assert program.voices[0].languages == ["en", "fa"]
    assert [one.name for one in program.voices[0].speakers] == ["anna", "ben"]


@pytest.mark.parametrize(
    "voice, options",
    [
        (None, {}),
        (SynthesizeVoice(name="lj", speaker="ben"), {"speaker": "ben"}),
        (SynthesizeVoice(name="vctk/ben"), {"speaker": "ben"}),
        (SynthesizeVoice(language="fa"), {"language": "fa"}),
    ],
)
def test_a_text_is_spoken(server, voice, options):
    text = "سلام." if options.get("language") == "fa" else "Hello there."
    events = talk(server, Synthesize(text=text, voice=voice))
    assert AudioStart.is_type(events[0].type) and AudioStop.is_type(events[-1].type)
    np.testing.assert_array_equal(samples_of(events), expected(text, **options))


def test_ssml_is_spoken(server):
    document = '<speak>Hello.<break time="1s"/></speak>'
    events = talk(server, Synthesize(text=document, text_format="ssml"))
    more = len(samples_of(events)) - len(expected("Hello."))
    assert more / RATE == pytest.approx(1.0, abs=0.02)


def test_a_text_in_chunks_is_spoken_sentence_by_sentence(server):
    text = "Hello there. This is it. The end"
    chunks = [SynthesizeChunk(text=text[at : at + 3]) for at in range(0, len(text), 3)]
    # The whole text once more is for servers that do not stream.
    events = talk(server, SynthesizeStart(), *chunks, Synthesize(text=text), SynthesizeStop())
    kinds = [one.type for one in events]
    assert kinds.count("audio-start") == kinds.count("audio-stop") == 1
    assert kinds[-1] == "synthesize-stopped"
    pause = np.zeros(round(0.25 * RATE), np.int16)
    # Behind "This is it." there is too little to know that it ends a sentence.
    whole = np.concatenate([expected("Hello there."), pause, expected("This is it. The end")])
    np.testing.assert_array_equal(samples_of(events), whole)


def test_the_first_sentence_is_spoken_before_the_last_one_is_known(server):
    async def run() -> list[str]:
        async with asyncio.timeout(SECONDS), AsyncTcpClient(*server.wyoming) as client:
            await client.write_event(SynthesizeStart().event())
            await client.write_event(SynthesizeChunk(text="Hello there. This is not").event())
            first = await client.read_event()  # although the text goes on
            await client.write_event(SynthesizeStop().event())
            kinds = [first.type]
            while kinds[-1] != "synthesize-stopped":
                kinds.append((await client.read_event()).type)
            return kinds

    assert asyncio.run(run())[0] == "audio-start"


def test_a_streamed_text_without_words_ends_without_sound(server):
    events = talk(server, SynthesizeStart(), SynthesizeChunk(text=" ... "), SynthesizeStop())
    assert [one.type for one in events] == ["synthesize-stopped"]


def test_what_cannot_be_spoken_is_an_error_and_the_connection_goes_on(server):
    async def run() -> list[str]:
        async with asyncio.timeout(SECONDS), AsyncTcpClient(*server.wyoming) as client:
            said = []
            for voice in ("nobody", "lj"):
                asked = Synthesize(text="Hello.", voice=SynthesizeVoice(name=voice))
                await client.write_event(asked.event())
                event = await client.read_event()
                said.append(Error.from_event(event).text if event.type == "error" else event.type)
            return said

    first, second = asyncio.run(run())
    assert "nobody" in first and second == "audio-start"


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff\n",
        b"[]\n",
        b"{}\n",
        b'{"type": 1}\n',
        b'{"type": "synthesize"}\n',
        b'{"type": "synthesize", "data": {"text": 1}}\n',
        b'{"type": "synthesize", "data": {"text": "a", "voice": {"name": [1]}}}\n',
        b'{"type": "synthesize", "data": [], "data_length": -1}\n',
        b'{"type": "describe", "data_length": 99999999999}\n',
        b'{"type": "describe", "payload_length": 99999999999}\n',
        b'{"type": "describe", "payload_length": "x"}\n',
        b"[" * 50_000 + b"\n",
        b"a" * 200_000,
    ],
)
def test_what_is_no_event_ends_the_connection_and_nothing_else(server, content):
    with socket.create_connection(server.wyoming) as sock:
        sock.settimeout(SECONDS)
        try:
            sock.sendall(content)
            assert b"audio-start" not in sock.recv(1000)
        except ConnectionError:
            pass
    assert len(talk(server, Describe())) == 1


def test_a_client_that_leaves_is_not_spoken_for(tmp_path):
    model = HeldModel()
    with running(tmp_path, model=model) as server:
        event = {"type": "synthesize", "data": {"text": "One. Two. Three. Four. Five."}}
        with socket.create_connection(server.wyoming) as sock:
            sock.sendall(json.dumps(event).encode() + b"\n")
            assert model.asked.wait(SECONDS)
        cancelled = partial(server.service.metrics.cancelled.total)
        while not cancelled():
            pass
        model.go.set()
        talk(server, Synthesize(text="Hello."))
        assert len(model.batches) == 2
