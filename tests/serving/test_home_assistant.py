"""Home Assistant's own integration speaks with the Wyoming port, where Home Assistant is there."""

import asyncio
import io
import wave
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.speech_server import fake_synthesizer

data = pytest.importorskip("homeassistant.components.wyoming.data", exc_type=ImportError)
tts = pytest.importorskip("homeassistant.components.wyoming.tts", exc_type=ImportError)


def test_it_finds_the_voices_and_hears_what_they_say(server):
    service = asyncio.run(data.WyomingService.create(*server.wyoming))
    assert service.has_services() and service.get_name() == "myxtts"
    provider = tts.WyomingTtsProvider(SimpleNamespace(entry_id="myxtts"), service)
    assert set(provider.supported_languages) == {"en", "fa"}
    assert [one.voice_id for one in provider.async_get_supported_voices("fa")] == ["lj", "vctk"]
    options = {"voice": "lj", "speaker": "ben"}
    kind, content = asyncio.run(provider.async_get_tts_audio("Hello there.", "en", options))
    assert kind == "wav"
    with wave.open(io.BytesIO(content)) as sound:
        heard = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    said = fake_synthesizer().speak("Hello there.", speaker="ben").samples
    np.testing.assert_array_equal(heard, np.round(said * 32768.0).astype(np.int16))
